"""Tests of memwatch.agent.work."""
