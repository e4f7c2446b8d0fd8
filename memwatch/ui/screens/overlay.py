"""What lies over the dashboard for a moment: help, evidence, the line for a note."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen

from memwatch.ui.frame import Frame
from memwatch.ui.line import Line
from memwatch.ui.messages import NoteWritten
from memwatch.ui.panels.banner import banner
from memwatch.ui.widgets.lines import LinesView

BOX_CELLS = 96
"""Width of the box where the terminal is wide enough; the style sheet says the same."""
FRAME_CELLS = 6

DrawText = Callable[[Frame, int], list[Line]]
Dress = Callable[[LinesView], None]


class Overlay(ModalScreen[None]):
    """A box over the dashboard; Esc or q closes it. The banner stays in sight."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,question_mark", "dismiss", "close", show=False),
    ]

    def __init__(self, frame: Frame, title: str, draw: DrawText, dress: Dress) -> None:
        super().__init__()
        self._frame = frame
        self._title = title
        self._draw = draw
        self._dress = dress

    def compose(self) -> ComposeResult:
        """Mount a line for what must not be overlooked, and the text, which scrolls."""
        self._banner, self._text = LinesView(id="overlay-banner"), LinesView(id="overlay-text")
        for view in (self._banner, self._text):
            self._dress(view)
        with Vertical(id="overlay-box") as box:
            box.border_title = Content(self._title)
            box.border_subtitle = Content("arrows scroll, Esc closes")
            yield self._banner
            with VerticalScroll():
                yield self._text

    def on_mount(self) -> None:
        """Fill in the text."""
        self.update(self._frame)

    def on_resize(self) -> None:
        """Fill the new width."""
        self.update(self._frame)

    def update(self, frame: Frame) -> None:
        """Take a newer frame."""
        self._frame = frame
        if not self.is_mounted:
            return
        width = max(min(self.app.size.width, BOX_CELLS) - FRAME_CELLS, 10)
        said = banner(frame, width)
        self._banner.display = bool(said)
        self._fill(self._banner, said)
        self._fill(self._text, self._draw(frame, width))

    @staticmethod
    def _fill(view: LinesView, lines: list[Line]) -> None:
        grown = len(lines) != len(view.lines)
        view.show(lines)
        if grown:
            view.refresh(layout=True)


class NoteScreen(ModalScreen[None]):
    """One line to write a note in; Enter sends it, Esc drops it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "close", show=False),
    ]

    def compose(self) -> ComposeResult:
        """Mount the line."""
        from textual.widgets import Input  # only here: a first paint does without it

        line = Input(placeholder="a note on the time axis", max_length=160)
        line.cursor_blink = False
        with Vertical(id="note-box") as box:
            box.border_title = Content("note")
            box.border_subtitle = Content("Enter records it, Esc drops it")
            yield line

    def on_input_submitted(self, event: object) -> None:
        """Hand the note over."""
        text = str(getattr(event, "value", "")).strip()
        if text:
            self.app.post_message(NoteWritten(text))
        self.dismiss()
