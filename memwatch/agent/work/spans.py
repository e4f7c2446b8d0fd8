"""Steps and tool calls: what the agent does now, inside an experiment or outside of one."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from types import TracebackType
from typing import Any, Literal

from msgspec import Struct

from memwatch.agent.context import Context
from memwatch.agent.work.block import Block
from memwatch.domain.errors import LogError
from memwatch.domain.record import whole
from memwatch.domain.text import sayable

What = Literal["step", "tool"]


class Span(Struct):
    """A step or tool call in progress; its agent may say how it went."""

    id: str
    name: str
    status: str = "done"
    bytes_out: int | None = None
    """Size of what it brought."""


class Spans:
    """Makes the steps and tool calls of one start, and numbers them."""

    def __init__(self, context: Context, check: Callable[[], None]) -> None:
        self.record = context.record
        self.check = check
        """Called where a span begins: raises when the experiment is to be aborted."""
        self._numbers = count(1)

    def next(self, what: What, name: str) -> Span:
        """Return a span with an id that no other of this start has."""
        return Span(f"{what[0]}{next(self._numbers)}", sayable(name))


class SpanBlock(Block[Span]):
    """Logs begin and end of a span; an exception makes it `failed`, and goes on."""

    def __init__(self, spans: Spans, what: What, name: str) -> None:
        super().__init__(name)
        self._spans, self._what = spans, what
        self._span: Span | None = None
        self._began_ns = 0

    def again(self, name: str) -> SpanBlock:
        """Return a block of the same kind, not begun."""
        return SpanBlock(self._spans, self._what, name)

    def __enter__(self) -> Span:
        """Begin; raises LogError, and what aborts the experiment."""
        self._spans.check()
        span = self._span = self._spans.next(self._what, self.name)
        self._spans.record(f"{self._what}.begin", {"id": span.id, "name": span.name})
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
        assert span is not None
        members: dict[str, Any] = {
            "id": span.id,
            "name": sayable(span.name),
            "status": sayable(span.status) if error is None else "failed",
            "duration_us": (time.monotonic_ns() - self._began_ns) // 1000,
        }
        if span.bytes_out is not None:
            members["bytes_out"] = whole(span.bytes_out)
        if error is None:
            self._spans.record(f"{self._what}.end", members)
        else:
            with suppress(LogError):  # what happened inside matters more
                self._spans.record(f"{self._what}.end", members)
