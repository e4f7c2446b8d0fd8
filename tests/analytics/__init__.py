"""Tests of the pure figures."""
