"""Checkpoints: when one is due, how it is captured, written, committed, pruned."""
