"""Waiting for a condition, with a deadline: tests never just sleep."""

from __future__ import annotations

import time
from collections.abc import Callable

DEADLINE_S = 20.0
_LOOK_S = 0.01


def until(condition: Callable[[], object], deadline_s: float = DEADLINE_S) -> None:
    """Return as soon as the condition holds; fails the test when the deadline passes first."""
    end = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"still not so after {deadline_s} s")
        time.sleep(_LOOK_S)
