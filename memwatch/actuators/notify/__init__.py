"""Telling people who do not look: commands, webhooks, the desktop."""
