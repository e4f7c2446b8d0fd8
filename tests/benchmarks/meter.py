"""Counts the processor time that the library takes: outermost calls into it, and its threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from msgspec import structs

from memwatch.agent import Run, RunOptions, Tier
from memwatch.agent.work.experiment import ExperimentBlock
from memwatch.agent.work.spans import SpanBlock

CALLS: dict[type, tuple[str, ...]] = {
    Run: ("experiment", "step", "tool", "safe_point", "record", "note", "error", "close"),
    Tier: ("put", "build", "get", "peek", "entry", "entries", "delete", "clear"),
    ExperimentBlock: ("__enter__", "__exit__"),
    SpanBlock: ("__enter__", "__exit__"),
}


class Meter:
    """Wraps what an agent calls; only in a process that is made to be measured."""

    def __init__(self) -> None:
        self.calls_s = 0.0
        """What the agent's own threads spent in the library."""
        self.threads_s = 0.0
        """What the library's threads spent."""
        self._lock = threading.Lock()
        self._local = threading.local()

    def watch(self, options: RunOptions) -> RunOptions:
        """Count from now on; the agent's own functions that the library calls do not count."""
        for kind, names in CALLS.items():
            for name in names:
                if hasattr(kind, name):
                    setattr(kind, name, self._timed(getattr(kind, name)))
        real = threading.Thread.run

        def count(seconds: float) -> None:
            with self._lock:
                self.threads_s += seconds

        def run(self: threading.Thread) -> None:
            real(self)
            if self.name.startswith("memwatch-"):
                count(time.thread_time())

        setattr(threading.Thread, "run", run)  # noqa: B010 -- mypy refuses the assignment
        builders = {name: self._untimed(make) for name, make in options.builders.items()}
        return structs.replace(options, builders=builders)

    def _add(self, seconds: float) -> None:
        with self._lock:
            self.calls_s += seconds

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        local = self._local

        @wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            if getattr(local, "inside", False):
                return function(*args, **kwargs)
            local.inside = True
            began = time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                local.inside = False
                self._add(time.thread_time() - began)

        return timed

    def _untimed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def untimed(*args: Any, **kwargs: Any) -> Any:
            began = time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                if getattr(self._local, "inside", False):
                    self._add(began - time.thread_time())

        return untimed
