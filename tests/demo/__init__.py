"""Tests of memwatch.demo."""
