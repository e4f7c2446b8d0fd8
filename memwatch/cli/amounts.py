"""Numbers as a person types them: `float` alone would take `nan`, `inf` and signs, too."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError

_MOST = 1e9
_UNITS_S = {"d": 86_400, "h": 3600, "m": 60, "min": 60, "s": 1}
_DURATION = re.compile(r"(?:\d{1,6}(?:d|h|min|m|s))+", re.ASCII)
_PART = re.compile(r"(\d+)(d|h|min|m|s)", re.ASCII)
_LONGEST_S = 30 * 86_400


def amount(text: str) -> float:
    """Return a number from 0; raises ArgumentTypeError.

    >>> amount("1.5")
    1.5
    """
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= _MOST:  # nor is nan
        raise ArgumentTypeError(f"{text[:40]!r} is no number from 0 to {_MOST:g}")
    return number


def span(text: str) -> float:
    """Return a number of seconds above 0; raises ArgumentTypeError."""
    number = amount(text)
    if number == 0:
        raise ArgumentTypeError("it must be more than 0 seconds")
    return number


def whole(text: str) -> int:
    """Return a whole number above 0; raises ArgumentTypeError.

    >>> whole("5000000")
    5000000
    """
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= 18 and int(text)):
        raise ArgumentTypeError(f"{text[:40]!r} is no whole number above 0")
    return int(text)


def duration(text: str) -> int:
    """Return a time in seconds, at most 30 days; raises ArgumentTypeError.

    >>> duration("8h"), duration("1h30m"), duration("2d"), duration("90s")
    (28800, 5400, 172800, 90)
    """
    parts = _PART.findall(text) if _DURATION.fullmatch(text) else []
    seconds = sum(int(count) * _UNITS_S[unit] for count, unit in parts)
    if not 0 < seconds <= _LONGEST_S:
        raise ArgumentTypeError(f"{text[:40]!r} is no time up to 30 days, such as 8h, 45m or 1h30m")
    return seconds
