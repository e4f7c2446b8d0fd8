"""Numbers of the session protocol, apart so that a fast client need not load its types."""

PROTOCOL = (1, 0)
"""Major and minor; another major ends the session."""
MAX_FRAME_BYTES = 8 * 1024 * 1024
