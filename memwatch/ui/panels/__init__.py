"""What each panel says: pure functions from a frame to lines."""
