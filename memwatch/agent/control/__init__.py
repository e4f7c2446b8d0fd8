"""The agent's half of the control spool: jobs, holds, acknowledgements."""
