"""Tests of what this machine tells."""
