"""Tests of settings and folders."""
