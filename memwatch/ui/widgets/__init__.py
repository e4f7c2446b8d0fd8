"""The few widgets: lines that repaint only what changed."""
