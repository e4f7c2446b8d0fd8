"""The command line: one command a file, heavy imports only where used."""
