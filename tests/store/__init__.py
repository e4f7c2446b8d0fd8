"""Tests of the history, on real DuckDB files."""
