"""Commands to the agent."""
