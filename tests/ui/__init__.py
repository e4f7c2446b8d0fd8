"""The dashboard, against a fake session."""
