"""The bundled experiment engine: a small real agent that searches compression settings."""
