"""Runs by name and place: catalogue, meta.json, sockets, and one look without a guard."""
