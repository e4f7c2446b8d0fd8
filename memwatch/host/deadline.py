"""Calls that a dead disk or network mount may never answer, made in a helper thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

_Answer = TypeVar("_Answer")


class _Call(Generic[_Answer]):
    """One call on its way; the thread is a daemon, for nothing can end a hanging system call."""

    def __init__(self, ask: Callable[[], _Answer]) -> None:
        self._ask = ask
        self._done = threading.Event()
        self.answer: _Answer | None = None

    def run(self) -> None:
        try:
            self.answer = self._ask()
        except OSError:
            self.answer = None
        finally:
            self._done.set()

    def wait(self, seconds: float) -> bool:
        return self._done.wait(seconds)


_hanging: dict[str, _Call[Any]] = {}
_lock = threading.Lock()


def ask(name: str, question: Callable[[], _Answer], deadline_s: float) -> _Answer | None:
    """Return the answer, or None when it failed with OSError or did not come in time.

    While a question of the same name hangs no second one is asked: None comes at once, and one
    thread is all that a dead mount costs.
    """
    with _lock:
        before = _hanging.get(name)
        if before is not None and not before.wait(0):
            return None
        _hanging.pop(name, None)
    call = _Call(question)
    threading.Thread(target=call.run, name=f"memwatch-ask-{name}"[:60], daemon=True).start()
    if call.wait(deadline_s):
        return call.answer
    with _lock:
        _hanging[name] = call
    return None
