"""Tests of memory in tiers."""
