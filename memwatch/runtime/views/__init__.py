"""The ring in memory, and what a snapshot shows of it. Nothing here does input or output."""
