"""What this viewer looks at: span of time, zoom, freeze. Keys are pure functions on it.

Decisions never depend on it; recording goes on whatever is shown.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

LADDER_S = (
    60, 120, 180, 300, 600, 1200, 1800, 3600, 7200, 10_800, 21_600, 43_200,
    86_400, 172_800, 345_600, 604_800,
)  # fmt: skip
"""Spans of time that zooming steps through, in seconds."""


class View(Struct, frozen=True, kw_only=True):
    """The part of time that charts show, and whether the screen stands still."""

    window_s: float | None = None
    """Span shown; None = the profile's."""
    end_us: int | None = None
    """Right end of the span; None = now, moving on."""
    frozen: bool = False
    """The screen stands still (time, never the agent)."""

    @property
    def live(self) -> bool:
        """The newest data are in view."""
        return self.end_us is None


class Bounds(Struct, frozen=True, kw_only=True):
    """What a view can move in: the run from its start to now, and the profile's span."""

    start_us: int
    now_us: int
    default_s: float


def window_s(view: View, bounds: Bounds) -> float:
    """Return the span shown, in seconds."""
    return view.window_s or bounds.default_s


def zoom_in(view: View, bounds: Bounds) -> View:
    """Show the next shorter span, around the same right end.

    >>> zoom_in(View(), Bounds(start_us=0, now_us=0, default_s=3600)).window_s
    1800
    """
    shown = window_s(view, bounds)
    shorter = [step for step in LADDER_S if step < shown]
    return replace(view, window_s=shorter[-1]) if shorter else view


def zoom_out(view: View, bounds: Bounds) -> View:
    """Show the next longer span; the last one holds the whole run."""
    shown = window_s(view, bounds)
    run_s = (bounds.now_us - bounds.start_us) / 1e6
    longer = [step for step in LADDER_S if step > shown]
    if not longer or shown >= max(run_s, bounds.default_s):
        return view
    return replace(view, window_s=longer[0])


def pan_back(view: View, bounds: Bounds) -> View:
    """Move a quarter of the span back in time, not before the run's start."""
    span_us = round(window_s(view, bounds) * 1e6)
    end_us = bounds.now_us if view.end_us is None else view.end_us
    earliest_us = min(bounds.start_us + span_us, bounds.now_us)
    moved_us = max(end_us - span_us // 4, earliest_us)
    return view if moved_us >= end_us else replace(view, end_us=moved_us)


def pan_forward(view: View, bounds: Bounds) -> View:
    """Move a quarter of the span towards now; once there, move on with it."""
    if view.end_us is None:
        return view
    moved_us = view.end_us + round(window_s(view, bounds) * 1e6) // 4
    return replace(view, end_us=moved_us if moved_us < bounds.now_us else None)


def inside(view: View, bounds: Bounds) -> View:
    """Keep a look back within the run, when its start becomes known only later."""
    if view.end_us is None:
        return view
    earliest_us = bounds.start_us + round(window_s(view, bounds) * 1e6)
    if earliest_us >= bounds.now_us:
        return replace(view, end_us=None)
    return replace(view, end_us=max(view.end_us, earliest_us))


def to_now(view: View, _bounds: Bounds) -> View:
    """Back to now, moving."""
    return replace(view, end_us=None, frozen=False)


def toggle_freeze(view: View, _bounds: Bounds) -> View:
    """Stand still, or move on."""
    return replace(view, frozen=not view.frozen)
