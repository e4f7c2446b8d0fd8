"""The terminal itself: fewest bytes to it, and its end."""
