"""Tests of what an intervention did."""
