"""memwatch watches the memory of autonomous agents that run for hours."""

__version__ = "0.1.0"
