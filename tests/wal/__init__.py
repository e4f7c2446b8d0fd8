"""Tests of the log format: bytes to records and back."""
