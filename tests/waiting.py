"""Waiting for a condition, with a deadline: tests never just sleep."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

DEADLINE_S = 20.0
_LOOK_S = 0.01

_Answer = TypeVar("_Answer")


def until(condition: Callable[[], object], deadline_s: float = DEADLINE_S) -> None:
    """Return as soon as the condition holds; fails the test when the deadline passes first."""
    end = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"still not so after {deadline_s} s")
        time.sleep(_LOOK_S)


def wait_for(look: Callable[[], _Answer | None], what: str, seconds: float = DEADLINE_S) -> _Answer:
    """Return the first true answer of `look`; a failure names `what` and the last answer."""
    end = time.monotonic() + seconds
    while not (answer := look()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds:g} s in vain for {what}: {answer!r}")
        time.sleep(_LOOK_S)
    return answer
