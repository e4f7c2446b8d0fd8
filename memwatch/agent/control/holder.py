"""Who works for the experiment in progress: whom an abort may be raised in (R8).

In a plain program that is the thread that began it. In an event loop, where all tasks share one,
it is the task that began it and those that it began since. One that was begun by a task which
ended and left it open can be given up wherever its thread comes by.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

_working_for: ContextVar[Holder | None] = ContextVar("memwatch_working_for", default=None)


class Holder:
    """Of one experiment. Made where it begins."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        task = _current_task()
        self._task: Callable[[], Any] = (lambda: None) if task is None else weakref.ref(task)
        _working_for.set(self)  # tasks that begin from here take it over

    def is_here(self) -> bool:
        """Say whether the caller works for the experiment."""
        if threading.get_ident() != self._thread:
            return False
        task = self._task()
        if task is None or task.done() or _working_for.get() is self:
            return True
        return task is _current_task()


def _current_task() -> Any:
    asyncio = sys.modules.get("asyncio")  # not loaded by an agent that uses no event loop
    try:
        return None if asyncio is None else asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return None
