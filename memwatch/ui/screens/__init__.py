"""The dashboard and what lies over it."""
