"""A widget that paints lines, and on an update repaints only those that changed."""

from __future__ import annotations

from collections.abc import Mapping

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from memwatch.ui.line import Line, ascii_text, width_of


class LinesView(Widget):
    """Lines of text in named styles.

    Cells that did not change are not written again: over a slow line each byte counts.
    """

    DEFAULT_CSS = "LinesView { height: auto; }"

    styles_by_name: Mapping[str, Style]
    """What the names mean, set by the theme before the first paint."""
    ascii_only = False

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.styles_by_name = {}
        self.lines: list[Line] = []
        self.stale = False

    def dress(self, styles: Mapping[str, Style], ascii_only: bool) -> None:
        """Take the styles of a theme."""
        self.styles_by_name = styles
        self.ascii_only = ascii_only

    def show(self, lines: list[Line], *, stale: bool = False) -> None:
        """Paint `lines`; `stale` ones are all dim."""
        before, self.lines = self.lines, lines
        if stale != self.stale:
            self.stale = stale
            self.refresh()
            return
        width = self.content_size.width
        changed = [
            Region(0, row, width, 1)
            for row in range(max(len(before), len(lines)))
            if _line(before, row) != _line(lines, row)
        ]
        if changed:
            self.refresh(*changed)

    def render_line(self, y: int) -> Strip:
        """Return one line in the widget's width."""
        width = self.content_size.width
        base = self.rich_style
        segments = [
            Segment(ascii_text(text) if self.ascii_only else text, base + self._style(name))
            for text, name in _line(self.lines, y)
        ]
        return Strip(segments).adjust_cell_length(width, base)

    def get_content_height(self, *_sizes: object) -> int:
        """As high as the lines are many, where the layout asks."""
        return max(len(self.lines), 1)

    def get_content_width(self, *_sizes: object) -> int:
        """As wide as the longest line, where the layout asks."""
        return max((width_of(line) for line in self.lines), default=0)

    def _style(self, name: str) -> Style:
        if self.stale and name not in ("alarm", "notice"):
            name = "stale"
        return self.styles_by_name.get(name or "text", _PLAIN)


_PLAIN = Style()


def _line(lines: list[Line], row: int) -> Line:
    return lines[row] if row < len(lines) else []
