"""From the files of a run back to its state, and what was lost on the way."""
