"""The one frozen value that a frame is painted from: the snapshot and what the viewer adds."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from memwatch.domain.snapshot import PAST, Event, Snapshot
from memwatch.ui.view import Bounds, View

DAY_US = 86_400_000_000


class Link(Struct, frozen=True, kw_only=True):
    """The connection to the guard."""

    state: Literal["connecting", "live", "silent", "lost"] = "connecting"
    """`silent`: the guard is there and does not answer; `lost`: there is none."""
    why: str = ""
    age_s: float = 0.0
    """Time since the last snapshot came (since the start, before the first)."""
    quiet_s: float = 0.0
    """Time since the guard last answered anything, "nothing new" too."""


class OwnCost(Struct, frozen=True, kw_only=True):
    """What this viewer costs."""

    rss_bytes: int | None = None
    cpu_percent: float | None = None
    terminal_bytes_per_s: float | None = None


class Glyphs(Struct, frozen=True, kw_only=True):
    """The characters that charts are drawn with, each one cell wide and unlike the others."""

    tiers: tuple[str, ...] = ("█", "▓", "▒", "░", "■")
    unaccounted: str = "╱"
    line: str = "┄"
    peak: str = "'"


class Frame(Struct, frozen=True, kw_only=True, eq=False):
    """Everything that one frame shows."""

    snapshot: Snapshot | None = None
    link: Link = Link()
    view: View = View()
    own: OwnCost = OwnCost()
    events: tuple[Event, ...] = ()
    """Events for the log, oldest first: the newest, or those of the span in view."""
    glyphs: Glyphs = Glyphs()
    view_only: bool = False
    target: str = ""
    refresh_s: float = 1.0
    said: str = ""
    """A passing word of the viewer itself: why a key did nothing, what was sent."""
    now_us: int = 0
    """Wall time of this viewer, for how long ago a run ended."""
    first_us: int | None = None
    """When the first sample of the run was taken, once a person looked back."""
    panel: str = "tiers"
    """The panel in front where there is room for one."""

    @property
    def past(self) -> bool:
        """The run is over: all figures are those of its end."""
        return self.snapshot is not None and self.snapshot.run.state in PAST

    @property
    def stale(self) -> bool:
        """What is shown is not what is: the guard is gone, silent, or has nothing new."""
        return self.link.state == "lost" or self.silent or self.idle

    @property
    def silent(self) -> bool:
        """The guard answers nothing, not even that there is nothing new."""
        return self.link.state == "silent" or self.link.quiet_s > self.silence_s

    @property
    def idle(self) -> bool:
        """The guard answers, but had no new figures for long; a run that is over has none."""
        return not self.past and self.link.age_s > self.silence_s

    @property
    def silence_s(self) -> float:
        """How long nothing may come before it is said."""
        return max(5.0, 3 * self.refresh_s)

    @property
    def bounds(self) -> Bounds:
        """What the view can move in: until the first sample is known, a day at least.

        This start may not be the run's first.
        """
        if self.snapshot is None:
            return Bounds(start_us=0, now_us=0, default_s=3600.0)
        now_us = self.snapshot.t_us
        start_us = self.first_us
        if start_us is None:
            start_us = min(self.snapshot.run.started_us or now_us, now_us - DAY_US)
        return Bounds(start_us=start_us, now_us=now_us, default_s=self.snapshot.chart_window_s)
