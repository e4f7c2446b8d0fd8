"""What an agent is doing now: an experiment, and inside it steps and tool calls."""

from __future__ import annotations

import time
from contextlib import suppress
from types import TracebackType
from typing import Any, Literal

from msgspec import Struct

from memwatch.agent.memory.tiers import Recorder
from memwatch.domain.errors import LogError

Status = Literal["done", "kept", "discarded", "failed", "aborted"]


class Experiment(Struct):
    """The experiment in progress; its agent fills in how it went."""

    number: int
    """Counted from 1 over the life of the run."""
    title: str
    phase: str
    status: Status = "done"
    metrics: dict[str, float | int | str | None] = {}


class Span(Struct):
    """A step or tool call in progress."""

    id: str
    name: str
    status: str = "done"
    bytes_out: int | None = None


class Spanning:
    """Logs begin and end of a span around a `with` block; an exception makes it `failed`."""

    def __init__(self, record: Recorder, what: Literal["step", "tool"], span: Span) -> None:
        self._record, self._what, self._span = record, what, span
        self._began_ns = 0

    def __enter__(self) -> Span:
        """Begin."""
        span = self._span
        self._record(f"{self._what}.begin", {"id": span.id, "name": span.name})
        self._began_ns = time.monotonic_ns()
        return span

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End."""
        span = self._span
        members: dict[str, Any] = {
            "id": span.id,
            "name": span.name,
            "status": span.status if error is None else "failed",
            "duration_us": (time.monotonic_ns() - self._began_ns) // 1000,
        }
        if span.bytes_out is not None:
            members["bytes_out"] = span.bytes_out
        if error is None:
            self._record(f"{self._what}.end", members)
        else:
            with suppress(LogError):  # what happened inside matters more
                self._record(f"{self._what}.end", members)
