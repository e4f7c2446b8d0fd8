"""Numbers as a person types them: `float` alone would take `nan`, `inf` and signs, too."""

from __future__ import annotations

from argparse import ArgumentTypeError

_MOST = 1e9


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
