"""Tests of memwatch.agent."""
