"""A long table over the whole screen: checkpoints, interventions. Its rows come from the session.

They are asked for when the snapshot shows that some changed, and never while nothing did; what the
snapshot itself holds of them is newer and replaces its row.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import ClassVar, Protocol

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen

from memwatch.runtime.session import RowKind
from memwatch.ui.actions import ACTIONS
from memwatch.ui.bridge import LISTED, Job
from memwatch.ui.frame import Frame
from memwatch.ui.line import Line, ascii_text, cut
from memwatch.ui.panels.banner import banner
from memwatch.ui.panels.footer import listing_footer
from memwatch.ui.panels.header import header
from memwatch.ui.panels.lights import lights
from memwatch.ui.panels.sheet import Cursor, Sheet, moved, placed, rows_in, sheet_lines
from memwatch.ui.screens.overlay import DrawText, Dress
from memwatch.ui.widgets.lines import LinesView
from memwatch.ui.widgets.panel import StripView

ROWS = 500
_LIGHTS_FROM = 20
"""From this height on the lights stand above the table."""

Ask = Callable[[str, Job], None]


class Listing(Protocol):
    """What a listing screen shows; it holds the rows and how they are sorted."""

    name: RowKind

    @property
    def hint(self) -> str:
        """Its own key, for the foot."""
        ...

    def known(self, frame: Frame) -> Hashable:
        """Return what changes when rows must be asked for again."""
        ...

    def take(self, rows: Sequence[object]) -> None:
        """Take the session's rows."""
        ...

    def sheet(self, frame: Frame, width: int) -> Sheet:
        """Return the table."""
        ...

    def title(self, frame: Frame) -> str:
        """Return the title of the table."""
        ...

    def sort(self) -> None:
        """Sort by the next figure, where there is a choice."""
        ...

    def evidence(self, row_id: str) -> tuple[str, DrawText]:
        """Return title and text of the evidence behind a row."""
        ...


class SheetView(LinesView):
    """The table in its frame."""

    def __init__(self, resized: Callable[[], None]) -> None:
        super().__init__(id="sheet")
        self._resized = resized

    def on_resize(self) -> None:
        """Fill the new size."""
        self._resized()


class ListingScreen(Screen[None]):
    """One listing; what acts on the agent, and help, are the app's keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", show=False),
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "move(-1000000)", show=False),
        Binding("end", "move(1000000)", show=False),
        Binding("s", "sort", show=False),
        Binding("enter", "evidence", show=False),
    ]

    def __init__(
        self,
        frame: Frame,
        listing: Listing,
        ask: Ask,
        dress: Dress,
        show_text: Callable[[str, DrawText], None],
    ) -> None:
        super().__init__()
        self.listing = listing
        self.frame = frame
        self._ask = ask
        self._dress = dress
        self._show_text = show_text
        self._cursor = Cursor()
        self._sheet = Sheet()
        self._asked: Hashable = None
        self._titles: tuple[str, int] = ("", 0)

    def compose(self) -> ComposeResult:
        """Mount everything once: later only lines change."""
        self._strips = [
            StripView("header", lambda frame, width, _: [header(frame, width)]),
            StripView("banner", lambda frame, width, _: banner(frame, width)),
            StripView("lights", _lights),
        ]
        self._view = SheetView(self._draw)
        self._foot = StripView(
            "footer", lambda frame, width, _: [listing_footer(frame, self.listing.hint, width)]
        )
        for widget in (*self._strips, self._view, self._foot):
            self._dress(widget)
        yield from (*self._strips, self._view, self._foot)

    def on_mount(self) -> None:
        """Show what is known."""
        self._show(self.frame)

    def update(self, frame: Frame) -> None:
        """Take a newer frame, and ask for the rows where they changed."""
        self.frame = frame
        if self.is_mounted:
            self._show(frame)

    def _show(self, frame: Frame) -> None:
        if not frame.view.frozen or self._asked is None:
            known = self.listing.known(frame)
            if frame.snapshot is not None and known != self._asked:
                self._asked = known
                self._ask(f"{LISTED}{self.listing.name}", self._job())
        for strip in (*self._strips, self._foot):
            strip.update(frame)
        self._draw()

    def _job(self) -> Job:
        name = self.listing.name
        return lambda session: session.rows(name, ROWS)

    def answered(self, slot: str, answer: object) -> None:
        """Take the rows; without an answer those of the snapshot stay."""
        if slot == f"{LISTED}{self.listing.name}" and isinstance(answer, list):
            self.listing.take(answer)
            self._draw()

    def _draw(self) -> None:
        width, height = self._view.content_size
        if not width or not height:
            return
        self._sheet = self.listing.sheet(self.frame, width)
        self._cursor = placed(self._cursor, self._sheet, height)
        lines: list[Line] = sheet_lines(self._sheet, self._cursor, width, height)
        self._view.show(lines, stale=self.frame.stale)
        titles = self.listing.title(self.frame), width
        if titles != self._titles:
            self._titles = titles
            short = cut(titles[0], width - 4)
            shown = ascii_text(short) if self._view.ascii_only else short
            self._view.border_title = Content(shown)

    # -- keys ------------------------------------------------------------------------------------

    def action_leave(self) -> None:
        """Back to where it was opened."""
        self.dismiss()

    def action_move(self, step: int) -> None:
        """Mark another row."""
        self._cursor = moved(self._cursor, self._sheet, step)
        self._draw()

    def action_page(self, pages: int) -> None:
        """Mark a row a page away."""
        self.action_move(pages * rows_in(self._sheet, self._view.content_size.height))

    def action_sort(self) -> None:
        """Sort by the next figure; the first row is marked then."""
        self.listing.sort()
        self._cursor = Cursor()
        self._foot.draw()
        self._draw()

    def action_evidence(self) -> None:
        """Show what is known of the marked row."""
        if self._sheet.rows:
            self._show_text(*self.listing.evidence(self._sheet.rows[self._cursor.at].id))

    def on_key(self, event: events.Key) -> None:
        """Keep keys from the dashboard below that only change what it shows."""
        if event.key in _OF_THE_DASHBOARD:
            event.stop()
            event.prevent_default()


def _lights(frame: Frame, width: int, height: int) -> list[Line]:
    return lights(frame, width, height) if height >= _LIGHTS_FROM else []


_ALSO_HERE = ("checkpoints", "interventions", "freeze", "policy", "mouse", "redraw", "help")
_OF_THE_DASHBOARD = {
    key
    for action in ACTIONS
    if action.group == "look" and action.id not in _ALSO_HERE and not action.id.startswith("panel:")
    for key in action.keys
} - {"escape", "q", "enter", "end"}
