"""Tests of what reads files and processes."""
