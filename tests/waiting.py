"""Waiting for a condition, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

_Found = TypeVar("_Found")
_POLL_S = 0.02


def wait_for(look: Callable[[], _Found | None], what: str, seconds: float = 20.0) -> _Found:
    """Return the first true answer of `look`; fails after `seconds` with what was waited for."""
    until = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > until:
            raise AssertionError(f"waited {seconds:g} s in vain for {what}; last answer {found!r}")
        time.sleep(_POLL_S)


def until(condition: Callable[[], object], deadline_s: float = 20.0) -> None:
    """Return as soon as the condition holds; fails when the deadline passes first."""
    wait_for(condition, "the condition of the test", deadline_s)
