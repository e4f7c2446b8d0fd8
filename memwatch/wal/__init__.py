"""Bytes of a run directory to records and back: codec, framing, segments, manifests. Pure."""
