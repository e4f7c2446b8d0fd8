"""Tests of guard, ring, session and recorder."""
