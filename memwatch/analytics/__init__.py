"""Samples to figures: buckets, growth, efficacy, lights. Pure, incremental."""
