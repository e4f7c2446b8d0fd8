"""Finds the command that the first word names, and words errors for people."""

from __future__ import annotations


def main() -> int:
    """Run the command line; returns the exit status."""
    return 2
