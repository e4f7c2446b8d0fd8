"""The time in an id of version 6 (RFC 9562): 60 bits of 100 ns since 1582."""

from __future__ import annotations

import re

_SHAPE = re.compile(
    r"([0-9a-f]{8})-([0-9a-f]{4})-6([0-9a-f]{3})-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE
)
_EPOCH = 0x01B21DD213814000
"""1970 in 100 ns since 15 October 1582."""


def time_us(text: str | None) -> int | None:
    """Return µs since the epoch, or None for what is no such id or lies before 1970.

    >>> time_us("1f1ec9b3-1be6-64d6-bfff-dbc48e81973e")
    1796028672384328
    >>> time_us("checkpoint-5"), time_us(None)
    (None, None)
    """
    match = _SHAPE.fullmatch(text or "")
    if match is None:
        return None
    ticks = int("".join(match.groups()), 16) - _EPOCH
    return ticks // 10 if ticks > 0 else None
