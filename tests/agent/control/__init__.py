"""The agent's half of control."""
