"""Real processes, end to end."""
