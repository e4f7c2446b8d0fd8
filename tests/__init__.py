"""Tests mirror the layers."""
