"""The guard process: its threads, its own log, its ledger, what it offers to viewers."""
