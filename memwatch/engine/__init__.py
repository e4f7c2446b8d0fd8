"""Figures to levels. Pure, the clock is passed in."""
