"""Panels and strips: a pure function from a frame to lines, and the widget that holds them."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.content import Content

from memwatch.ui.frame import Frame
from memwatch.ui.line import Line, ascii_text, cut
from memwatch.ui.messages import EvidenceRequested, PanelFocused
from memwatch.ui.widgets.lines import LinesView

DrawPanel = Callable[[Frame, int, int], list[Line]]
DrawStrip = Callable[[Frame, int, int], list[Line]]
"""Frame, width and height of the screen -> lines."""
Title = Callable[[Frame], str]


def no_title(_frame: Frame) -> str:
    """Say nothing in the lower edge."""
    return ""


class PanelView(LinesView, can_focus=True):
    """A framed panel; Enter or a click on the focused one asks for its evidence."""

    FOCUS_ON_CLICK = False

    def __init__(
        self, name: str, number: int, heading: Title, draw: DrawPanel, below: Title = no_title
    ) -> None:
        super().__init__(id=name)
        self.panel = name
        self.frame = Frame()
        self._number = number
        self._heading = heading
        self._below = below
        self._draw_panel = draw
        self._titles = ("", "", 0)

    def update(self, frame: Frame) -> None:
        """Take a frame and paint what changed."""
        self.frame = frame
        self.draw()

    def draw(self) -> None:
        """Paint the present frame."""
        width, height = self.content_size
        self._draw_titles()
        if width and height:
            lines = self._draw_panel(self.frame, width, height)
            self.show(lines, stale=self.frame.stale)

    def _draw_titles(self) -> None:
        pointer = "▸" if self.has_focus else ""
        top = f"{pointer}{self._number} {self._heading(self.frame)}"
        titles = (top, self._below(self.frame), self.size.width)
        if titles != self._titles:
            self._titles = titles
            shown = [self._fitted(text) for text in titles[:2]]
            self.border_title, self.border_subtitle = Content(shown[0]), Content(shown[1])

    def _fitted(self, title: str) -> str:
        short = cut(title, self.size.width - 6)
        return ascii_text(short) if self.ascii_only else short

    def on_resize(self) -> None:
        """Fill the new size."""
        self.draw()

    def on_focus(self) -> None:
        """Come to the front."""
        self._draw_titles()
        self.post_message(PanelFocused(self.panel))

    def on_blur(self) -> None:
        """Take the pointer off the title."""
        self._draw_titles()

    def on_click(self, _event: events.Click) -> None:
        """Come to the front; a panel that is there already shows its evidence."""
        if self.has_focus:
            self.post_message(EvidenceRequested(self.panel))
        else:
            self.focus(scroll_visible=False)


class StripView(LinesView):
    """Lines over the whole width, as high as there are lines; gone when there are none."""

    def __init__(self, name: str, draw: DrawStrip) -> None:
        super().__init__(id=name)
        self.frame = Frame()
        self._draw_strip = draw

    def update(self, frame: Frame) -> None:
        """Take a frame and paint what changed."""
        self.frame = frame
        self.draw()

    def draw(self) -> None:
        """Paint the present frame in the width of the screen."""
        lines = self._draw_strip(self.frame, *self.app.size)
        if len(lines) != len(self.lines):
            self.display = bool(lines)
            self.refresh(layout=True)
        self.show(lines, stale=self.frame.stale)

    def on_resize(self) -> None:
        """Fill the new width."""
        self.draw()
