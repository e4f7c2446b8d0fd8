"""Commands to the agent: the control spool."""
