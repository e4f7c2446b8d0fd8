"""Memory by tier over time: asks for the course when a column changed, and shows the picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memwatch.domain.snapshot import Limits, Snapshot
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text, window_label
from memwatch.ui.charts.course import (
    Course,
    Span,
    fetch,
    from_the_left,
    layer_names,
    span_of,
)
from memwatch.ui.charts.deeds import DeedMark, all_deeds, deed_marks
from memwatch.ui.charts.picture import (
    BELOW,
    LEAST_ROWS,
    at_right_edge,
    legend,
    picture,
    plot_columns,
    present,
)
from memwatch.ui.frame import Frame, Glyphs
from memwatch.ui.line import Line
from memwatch.ui.view import window_s
from memwatch.ui.widgets.panel import PanelView

if TYPE_CHECKING:
    from memwatch.runtime.session import Session

_REDRAW_US = 10_000_000
"""The newest column is drawn again at least this often, however long it lasts."""
_LEGEND = 1


class Wanted(Struct, frozen=True, kw_only=True):
    """What a picture shows; another picture is asked for only when this differs."""

    first: int
    step_us: int
    columns: int
    rows: int
    width: int
    tiers: tuple[str, ...]
    limits: Limits
    glyphs: Glyphs
    tick: int | None
    """Counts finished columns while the view moves on; None for a look back."""
    nothing: str = ""
    """Said where nothing was recorded."""
    deeds: tuple[DeedMark, ...] = ()
    """What was done, as the snapshot knows it; a look back asks for more."""

    def same_view(self, other: Wanted | None) -> bool:
        """Return whether a picture of `other` still belongs here, if only for a moment."""
        if other is None or (self.tick is None) != (other.tick is None):
            return False
        if self.tick is None and self.first != other.first:
            return False
        same = replace(self, first=other.first, tick=other.tick, limits=other.limits)
        return replace(same, deeds=other.deeds) == other


class Drawing(Struct, frozen=True, kw_only=True, eq=False):
    """A picture, what it was asked to show, and the course behind it."""

    wanted: Wanted
    course: Course
    lines: list[Line]
    top_bytes: float


Ask = Callable[[Callable[["Session"], Drawing]], None]


class ChartView(PanelView):
    """The chart's panel."""

    def __init__(self, name: str, number: int, ask: Ask) -> None:
        super().__init__(name, number, _heading, self._lines, _note)
        self._ask = ask
        self._wanted: Wanted | None = None
        self.drawing: Drawing | None = None

    def draw(self) -> None:
        """Paint what is there, and ask for another picture when a column changed."""
        super().draw()
        wanted = self._want()
        if wanted is not None and wanted != self._wanted:
            self._wanted = wanted
            now_us = self.frame.bounds.now_us
            previous = self.drawing.top_bytes if self.drawing else None
            self._ask(lambda session: drawn(session, wanted, now_us, previous))

    def take(self, drawing: Drawing | None) -> None:
        """Show a picture; None = it could not be had, ask again with the next frame."""
        if drawing is None:
            self._wanted = None
        elif drawing.wanted.same_view(self._wanted):
            self.drawing = drawing
            super().draw()

    def _want(self) -> Wanted | None:
        snapshot = self.frame.snapshot
        width, height = self.content_size
        columns, rows = plot_columns(width), height - BELOW - _LEGEND
        if snapshot is None or not columns or rows < LEAST_ROWS:
            return None
        view, bounds = self.frame.view, self.frame.bounds
        span = span_of(view, bounds, columns)
        beat_us = min(span.step_us, _REDRAW_US)
        return Wanted(
            first=span.first,
            step_us=span.step_us,
            columns=columns,
            rows=rows,
            width=width,
            tiers=layer_names(snapshot),
            limits=snapshot.limits,
            glyphs=self.frame.glyphs,
            tick=bounds.now_us // beat_us if view.live else None,
            nothing=_nothing(snapshot),
            deeds=tuple(
                mark for mark in deed_marks(snapshot.interventions) if mark.t_us >= span.t0_us
            ),
        )

    def _lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        snapshot = frame.snapshot
        if snapshot is None:
            return []
        drawing = self._fitting(height - BELOW - _LEGEND)
        looks_back = drawing is not None and drawing.wanted.tick is None
        values = at_right_edge(drawing.course) if drawing and looks_back else present(snapshot)
        above = drawing.lines[: height - _LEGEND] if drawing else []
        above += [[]] * (height - _LEGEND - len(above))
        return [*above, legend(values, frame.glyphs, width)]

    def _fitting(self, rows: int) -> Drawing | None:
        """Return the picture, drawn again from its course where the height is another by now.

        A banner takes a row, and just then there may be nobody to ask for another picture.
        """
        held = self.drawing
        if held is not None and held.wanted.rows != rows >= LEAST_ROWS:
            wanted = replace(held.wanted, rows=rows)
            self.drawing = held = painted(held.course, wanted, held.top_bytes)
        return held


def drawn(session: Session, wanted: Wanted, now_us: int, previous_top: float | None) -> Drawing:
    """Fetch a course and draw it; runs in a thread. Raises SessionError."""
    span = Span(first=wanted.first, step_us=wanted.step_us, columns=wanted.columns, now_us=now_us)
    course = fetch(session, span, wanted.tiers, log=wanted.tick is None)
    deeds = wanted.deeds if wanted.tick is not None else all_deeds(session) or wanted.deeds
    course = replace(course, deeds=deeds)
    if wanted.tick is not None:
        course = from_the_left(course)
    return painted(course, wanted, previous_top)


def painted(course: Course, wanted: Wanted, previous_top: float | None) -> Drawing:
    """Draw a course."""
    from memwatch.ui.charts.canvas import rows_of_glyphs
    from memwatch.ui.charts.model import chart_model

    model = chart_model(course, wanted.limits, wanted.rows, previous_top)
    rows = [] if model.empty else rows_of_glyphs(model, wanted.glyphs)
    lines = picture(model, rows, wanted.glyphs, wanted.width, wanted.nothing)
    return Drawing(wanted=wanted, course=course, lines=lines, top_bytes=model.top_bytes)


def _nothing(snapshot: Snapshot) -> str:
    """Say why there is nothing to draw, where there is nothing."""
    if snapshot.checkpoints.source != "native":
        return "a checkpoint store: memory is measured while a process writes it"
    if snapshot.resource("memory") is None:
        return "waiting for the first sample"
    return "nothing recorded in this span"


def _heading(frame: Frame) -> str:
    text = f"memory by tier ─ {window_label(window_s(frame.view, frame.bounds))}"
    binding = frame.snapshot.limits.binding if frame.snapshot else None
    if binding is not None:
        text += f" ─ limit {bytes_text(binding.bytes)} ({inert(binding.name, 30)})"
    return text


def _note(frame: Frame) -> str:
    return inert(frame.snapshot.profile_note, 100) if frame.snapshot else ""
