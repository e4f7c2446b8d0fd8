"""Frames of a session as they come: snapshots from the bridge -> what is painted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from textual import events, on
from textual.app import App

from memwatch.config.locations import theme_dirs
from memwatch.domain.clock import SystemClock
from memwatch.domain.snapshot import Event, Snapshot
from memwatch.domain.text import inert
from memwatch.ui import messages, view
from memwatch.ui.bell import Bell
from memwatch.ui.bridge import LISTED, TRIAL, Bridge
from memwatch.ui.cost import CostMeter
from memwatch.ui.event_log import KEPT, EventLog, with_answer, with_snapshot
from memwatch.ui.frame import Frame
from memwatch.ui.screens.dashboard import DashboardScreen
from memwatch.ui.terminal.driver import ThriftyDriver
from memwatch.ui.theme import chosen_name, load_look
from memwatch.ui.view import View
from memwatch.ui.widgets.chart import Drawing

if TYPE_CHECKING:
    from textual.screen import Screen

    from memwatch.runtime.session import Session
    from memwatch.ui.screens.listing import ListingScreen
    from memwatch.ui.widgets.lines import LinesView

SAID_S = 5.0
"""How long a passing word stays."""
BEAT_S = 1.0
"""How often the age of the data is looked at, whether anything comes or not."""
BACKLOG = 4000
"""Characters that may be on their way to the terminal when a frame is painted."""


class LiveApp(App[None]):
    """Paints a session on the dashboard, and tells what comes of what was asked.

    `connect` is called in threads, again after each loss, once per thread: a session is used by
    the thread that made it alone. It raises SessionError when there is nobody to talk to.
    """

    listing: ListingScreen | None = None
    """The long table that covers the dashboard."""

    def __init__(  # noqa: PLR0913 - one argument per thing the command line decides
        self,
        connect: Callable[[], Session],
        *,
        theme: str = "auto",
        ascii_only: bool = False,
        view_only: bool = False,
        target: str = "",
        refresh_s: float = 1.0,
        dirs: Sequence[Path] | None = None,
    ) -> None:
        look = load_look(chosen_name(theme), theme_dirs() if dirs is None else dirs)
        super().__init__(driver_class=ThriftyDriver, ansi_color=look.textual.ansi or None)
        self.animation_level = "none"
        self.look = look
        self.ascii_only = ascii_only
        self.bridge = Bridge(connect, self.post_message, refresh_s)
        glyphs = self.look.ascii_glyphs if ascii_only else self.look.glyphs
        self.frame = Frame(glyphs=glyphs, view_only=view_only, target=target, refresh_s=refresh_s)
        self._events = EventLog()
        self._events_asked: str | None = None  # the start of the guard that is being asked
        self._newest: Snapshot | None = None
        self._bell = Bell()
        self._cost = CostMeter(self._bytes_written)
        self._clock = SystemClock()
        self._said = 0
        self.register_theme(self.look.textual)
        self.theme = self.look.textual.name

    # -- life --------------------------------------------------------------------------------

    def get_default_screen(self) -> Screen[Any]:
        """Open with the dashboard."""
        self.dashboard = DashboardScreen(self._ask_chart, self._dress)
        return self.dashboard

    def on_load(self) -> None:
        """Connect while the screen is still being set up."""
        self.bridge.start()

    def on_mount(self) -> None:
        """Fit borders to the terminal; paint what came meanwhile with the first frame."""
        self.dashboard.set_class(self.ascii_only, "-ascii")
        self._snapshot_ready()
        self.set_interval(BEAT_S, self._mind_silence)

    def on_resize(self, event: events.Resize) -> None:
        """Take nothing for granted: a terminal of another size may show anything."""
        if isinstance(self._driver, ThriftyDriver):
            self._driver.resize(event.size.width, event.size.height)

    def on_unmount(self) -> None:
        """Let the threads end."""
        self.bridge.stop()

    def _dress(self, widget: LinesView) -> None:
        widget.dress(self.look.styles, self.ascii_only)

    def _bytes_written(self) -> int | None:
        return self._driver.bytes_written if isinstance(self._driver, ThriftyDriver) else None

    def _is_behind(self) -> bool:
        """Return whether earlier output still waits: a newer frame comes soon enough."""
        return isinstance(self._driver, ThriftyDriver) and self._driver.backlog > BACKLOG

    # -- frames ------------------------------------------------------------------------------

    @on(messages.SnapshotReady)
    def _snapshot_ready(self) -> None:
        snapshot = self.bridge.take()
        if snapshot is None:
            return
        self._newest = snapshot
        if self._bell.rings(snapshot):
            self.bell()
        self._events = with_snapshot(self._events, snapshot)
        if not self._events.complete and self._events_asked is None:
            self._events_asked = snapshot.guard.start_id
            self.bridge.ask("events", lambda session: session.events(0, KEPT))
        if not self._is_behind():
            self._next_frame()
        self._look_at(snapshot)

    @on(messages.LinkChanged)
    def _link_changed(self) -> None:
        self._next_frame()

    def _mind_silence(self) -> None:
        """Paint when nothing comes: a guard that hangs must not look as if all were well."""
        link = self.bridge.link
        if self.frame.past or self.frame.stale or replace(self.frame, link=link).stale:
            self._next_frame()

    def _next_frame(self) -> None:
        """Paint what is known now; a frozen view keeps its snapshot."""
        frozen = self.frame.view.frozen and self.frame.snapshot is not None
        snapshot = self.frame.snapshot if frozen else self._newest
        self._show(
            replace(
                self.frame,
                snapshot=snapshot,
                link=self.bridge.link,
                own=self._cost.look(),
                now_us=self._clock.wall_us(),
                events=self.frame.events if frozen else self._events_in_view(),
            )
        )

    def _show(self, frame: Frame) -> None:
        self.frame = frame
        below = self.listing or self.dashboard  # a listing covers all of the dashboard
        below.update(frame)
        top = self.screen
        if top is not below and hasattr(top, "update"):
            top.update(frame)

    def _events_in_view(self) -> tuple[Event, ...]:
        drawing = self.dashboard.chart.drawing if self.dashboard.is_mounted else None
        if self.frame.view.live or drawing is None:
            return self._events.events
        return drawing.course.log

    def say(self, text: str) -> None:
        """Show a passing word at the foot."""
        self._said += 1
        number = self._said
        self._show(replace(self.frame, said=inert(text, 160)))
        self.set_timer(SAID_S, lambda: self._unsay(number))

    def _unsay(self, number: int) -> None:
        if number == self._said:
            self._show(replace(self.frame, said=""))

    # -- answers of the bridge ---------------------------------------------------------------

    def _ask_chart(self, job: Callable[[Session], Drawing]) -> None:
        self.bridge.ask("chart", job)

    @on(messages.Answered)
    def _answered(self, message: messages.Answered) -> None:
        if message.slot == "chart":
            drawing = message.answer if isinstance(message.answer, Drawing) else None
            self.dashboard.chart.take(drawing)
            if not self.frame.view.live:
                self._next_frame()
        elif message.slot == "events":
            asked, self._events_asked = self._events_asked or "", None
            if isinstance(message.answer, list):
                self._events = with_answer(self._events, message.answer, asked)
                self._next_frame()
        elif message.slot == "first":
            if isinstance(message.answer, int):
                self.frame = replace(self.frame, first_us=message.answer)
                self._change_view(view.inside)
        elif message.slot.startswith(TRIAL):
            self._tried(message)
        elif message.slot.startswith(LISTED):
            self._listed(message)
        elif message.error:
            self.say(f"not sent: {message.error}")
        else:  # from here on the snapshots tell how far it came
            self._unsay(self._said)

    # -- for those who know keys -----------------------------------------------------------------

    def _change_view(self, change: Callable[[View, view.Bounds], View]) -> None:
        self.frame = replace(self.frame, view=change(self.frame.view, self.frame.bounds))
        self._next_frame()

    def _look_at(self, snapshot: Snapshot) -> None:
        """Take notice of a new snapshot, once it is painted."""

    def _listed(self, message: messages.Answered) -> None:
        """Take the rows of a long table."""

    def _tried(self, message: messages.Answered) -> None:
        """Take what the agent says that it would do."""
