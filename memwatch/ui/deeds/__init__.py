"""What keys ask for, of the agent and of the guard, and what a person is asked before. Pure."""
