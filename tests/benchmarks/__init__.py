"""Benchmarks: `python -m tests.benchmarks` prints one table."""
