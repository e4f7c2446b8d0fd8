"""The guard process, its ring in memory, the session protocol and its two ends."""
