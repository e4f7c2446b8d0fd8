"""The two ends of the session protocol: frames, server, client, and a client that starts fast."""
