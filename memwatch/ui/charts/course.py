"""What a chart asks the session for: the columns of each series, and the events in that span.

Columns lie on a fixed grid of time, so that a finished column never changes again, and the span
moves on by blocks of columns: the picture stands still while it fills up on the right, which is
calm to look at and cheap to send.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memwatch.domain.sample import HELD_S, Column
from memwatch.domain.snapshot import Event, Snapshot
from memwatch.ui.charts.deeds import DeedMark
from memwatch.ui.view import Bounds, View, window_s

if TYPE_CHECKING:
    from memwatch.runtime.session import Session

MAX_TIERS = 5
OTHERS = "others"
_LONGEST_US = 128 * 86_400_000_000
_FINE_US = 5_000_000
_LOOK_COLUMNS = 256
_BLOCKS = 12
_EVENTS = 400
_PURGES = 1000
"""Purges are asked for apart: they are many, and must not crowd the other marks out."""
MARKED = (
    "checkpoint.full", "checkpoint.incremental", "checkpoint.abort", "note", "phase", "run",
    "error", "level", "process",
)  # fmt: skip
"""Kinds of events that may leave a mark on the time axis, but for purges."""
_HOLD_US = round(HELD_S * 1e6)


class Span(Struct, frozen=True, kw_only=True):
    """Columns of equal width on the grid of time."""

    first: int
    """Number of the first column on the grid: it starts at first × step_us."""
    step_us: int
    columns: int
    now_us: int
    """Columns that begin after this lie in the future."""

    @property
    def t0_us(self) -> int:
        """Left edge."""
        return self.first * self.step_us

    @property
    def t1_us(self) -> int:
        """Right edge."""
        return (self.first + self.columns) * self.step_us

    def column_of(self, t_us: int) -> int:
        """Return the column that an instant falls in; it may lie outside."""
        return t_us // self.step_us - self.first


class Course(Struct, frozen=True, kw_only=True, eq=False):
    """Everything that was recorded in a span."""

    span: Span
    memory: tuple[float | None, ...]
    """Last value of the tree per column; None = gap or future."""
    peaks: tuple[float | None, ...]
    """Greatest value of the tree per column."""
    tiers: tuple[tuple[str, tuple[float, ...]], ...]
    """Name and bytes per column, lowest layer first."""
    events: tuple[Event, ...] = ()
    """Those that may leave a mark."""
    purges_from_us: int | None = None
    """Purges before this are not known here: there were too many; None = all are."""
    log: tuple[Event, ...] = ()
    """The newest of all kinds, oldest first; only for a look back."""
    deeds: tuple[DeedMark, ...] = ()


def span_of(view: View, bounds: Bounds, columns: int) -> Span:
    """Return the grid of a view in a chart of so many columns."""
    step_us = max(math.ceil(window_s(view, bounds) * 1e6 / columns), 1)
    if view.end_us is not None:
        last = view.end_us // step_us
    else:
        block = max(columns // _BLOCKS, 1)
        last = (bounds.now_us // step_us // block + 1) * block - 1
    first = last - columns + 1
    return Span(first=first, step_us=step_us, columns=columns, now_us=bounds.now_us)


def layer_names(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the tiers that get a layer of their own; more than five share the last."""
    names = tuple(tier.name for tier in snapshot.tiers)
    return names if len(names) <= MAX_TIERS else (*names[: MAX_TIERS - 1], OTHERS)


def fetch(session: Session, span: Span, tiers: tuple[str, ...], *, log: bool = False) -> Course:
    """Ask the session for a span, with all events of it for the log too. Raises SessionError."""
    memory = _finite(session.series("memory", span.t0_us, span.t1_us, span.columns), span)
    recorded = [column is not None for column in memory]
    hold = max(_HOLD_US // span.step_us, 1)
    bytes_of = {
        name: _held(
            _finite(session.series(f"tier:{name}", span.t0_us, span.t1_us, span.columns), span),
            recorded,
            hold,
        )
        for name in tiers
    }
    time_span = span.t0_us, span.t1_us
    events = session.events(0, _EVENTS, *time_span, MARKED)
    purges = session.events(0, _PURGES, *time_span, ("purge",))
    return Course(
        span=span,
        memory=tuple(column.last if column else None for column in memory),
        peaks=tuple(column.max if column else None for column in memory),
        tiers=_layers(bytes_of),
        events=(*events, *purges),
        purges_from_us=purges[0].t_us if len(purges) >= _PURGES else None,
        log=tuple(session.events(0, _EVENTS, *time_span)) if log else (),
    )


def first_sample_us(session: Session, now_us: int) -> int | None:
    """Return when the run was first measured, to some seconds; None when it never was.

    Looks for the first column with data, then into that column. Raises SessionError.
    """
    start_us, end_us = now_us - _LONGEST_US, now_us
    while end_us - start_us > _FINE_US:
        columns = session.series("memory", start_us, end_us, _LOOK_COLUMNS)
        found = next((i for i, one in enumerate(columns) if not one.gap), None)
        if found is None:
            return None
        step_us = (end_us - start_us) // _LOOK_COLUMNS
        start_us, end_us = start_us + found * step_us, start_us + (found + 1) * step_us
    return start_us


def from_the_left(course: Course) -> Course:
    """Begin with the first column that was recorded: what is young fills up from the left."""
    empty = next((i for i, used in enumerate(course.memory) if used is not None), 0)
    if not empty:
        return course
    nothing, zero = (None,) * empty, (0.0,) * empty
    return replace(
        course,
        span=replace(course.span, first=course.span.first + empty),
        memory=(*course.memory[empty:], *nothing),
        peaks=(*course.peaks[empty:], *nothing),
        tiers=tuple((name, (*values[empty:], *zero)) for name, values in course.tiers),
    )


def _finite(columns: list[Column], span: Span) -> list[Column | None]:
    """Return one entry per column of the span; None where there is no number to draw."""
    kept: list[Column | None] = []
    for index in range(span.columns):
        column = columns[index] if index < len(columns) else None
        future = (span.first + index) * span.step_us > span.now_us
        if column is None or future or column.gap or not _is_number(column.last):
            kept.append(None)
        else:
            peak = column.max if _is_number(column.max) else column.last
            kept.append(Column(column.min, peak, column.last))
    return kept


def _is_number(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and value >= 0


def _held(columns: list[Column | None], recorded: list[bool], hold: int) -> tuple[float, ...]:
    """Return the bytes of a tier per column, holding its last value while the run is recorded."""
    values: list[float] = []
    held, age = 0.0, hold
    for column, there in zip(columns, recorded, strict=True):
        if column is not None and column.last is not None:
            held, age = column.last, 0
        else:
            age += 1
        values.append(held if there and age < hold else 0.0)
    return tuple(values)


def _layers(bytes_of: dict[str, tuple[float, ...]]) -> tuple[tuple[str, tuple[float, ...]], ...]:
    if len(bytes_of) <= MAX_TIERS:
        return tuple(bytes_of.items())
    own = list(bytes_of.items())[: MAX_TIERS - 1]
    rest = list(bytes_of.values())[MAX_TIERS - 1 :]
    return (*own, (OTHERS, tuple(sum(column) for column in zip(*rest, strict=True))))
