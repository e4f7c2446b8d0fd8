"""The dashboard (Textual). Talks to a session only."""
