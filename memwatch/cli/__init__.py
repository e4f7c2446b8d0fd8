"""The command line: one command a file, heavy imports only where used."""

from memwatch.cli.entry import main

__all__ = ["main"]
