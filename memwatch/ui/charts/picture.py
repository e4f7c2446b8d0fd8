"""Chart model and its glyphs -> lines with axes, labels, marks and styles. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from rich.cells import cell_len, set_cell_size

from memwatch.domain.snapshot import Snapshot
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text
from memwatch.ui.charts.course import OTHERS, Course, layer_names
from memwatch.ui.charts.model import ChartModel
from memwatch.ui.frame import Glyphs
from memwatch.ui.line import Line, Span, cut_line, fit, width_of

LEFT = 6
"""Cells of the value axis."""
BELOW = 2
"""Lines under the plot: marks and time axis."""
LEAST_COLUMNS = 16
LEAST_ROWS = 3


def right_cells(width: int) -> int:
    """Return the cells that threshold labels get in a chart of this width."""
    return 15 if width >= 66 else 10 if width >= 48 else 0


def plot_columns(width: int) -> int:
    """Return the columns of the plot area in a chart of this width; 0 when it has no room."""
    columns = width - LEFT - right_cells(width)
    return columns if columns >= LEAST_COLUMNS else 0


def picture(
    model: ChartModel,
    rows: Sequence[str],
    glyphs: Glyphs,
    width: int,
    nothing: str = "nothing recorded in this span",
) -> list[Line]:
    """Return the plot with its axes: `model.rows` + 2 lines of `width` cells.

    Without data there is no scale either: only `nothing`, in words.
    """
    if model.empty:
        blank: list[Line] = [[(" " * width, "")] for _ in range(model.rows)]
        blank[model.rows // 2] = [(fit(" " * LEFT + nothing, width), "dim")]
        return [*blank, _marks(model, width), _time_axis(model, width)]
    values = dict(model.value_labels)
    thresholds = {line.row: line for line in model.thresholds}
    styles = glyph_styles(len(model.layers) - 1, glyphs)
    room = right_cells(width)
    lines: list[Line] = []
    for index, row_text in enumerate(rows):
        row = model.rows - index
        threshold = thresholds.get(row)
        line: Line = [(f"{values.get(row, ''):>{LEFT - 1}}", "dim"), ("│", "dim")]
        line += _coloured(row_text, styles, glyphs.line, threshold.style if threshold else "dim")
        line.append(_label(model, row, room))
        lines.append(line)
    return [*lines, _marks(model, width), _time_axis(model, width)]


def _label(model: ChartModel, row: int, room: int) -> Span:
    """Return what stands at the right end of a row: its threshold, or the next one above."""
    threshold = next((line for line in model.thresholds if line.row == row), None)
    label, style = "", ""
    if threshold is not None:
        label = threshold.label if cell_len(threshold.label) < room else threshold.short
        style = threshold.style
    elif model.beyond and row == model.rows:
        label, style = f"↑ {model.beyond}", "dim"
    return fit(f" {label}" if label else "", room), style


def glyph_styles(tiers: int, glyphs: Glyphs) -> dict[str, str]:
    """Return the name of the style of each glyph in the plot."""
    styles = {glyph: f"tier{index}" for index, glyph in enumerate(glyphs.tiers[:tiers])}
    return styles | {glyphs.unaccounted: "unaccounted", glyphs.peak: "strong", " ": ""}


def _coloured(text: str, styles: dict[str, str], line_glyph: str, line_style: str) -> Line:
    """Cut a row into runs of one style."""
    runs: Line = []
    start = 0
    style_of = {**styles, line_glyph: line_style}
    for index in range(1, len(text) + 1):
        if index == len(text) or style_of.get(text[index]) != style_of.get(text[start]):
            runs.append((text[start:index], style_of.get(text[start], "")))
            start = index
    return runs


def _marks(model: ChartModel, width: int) -> Line:
    line: Line = [(" " * LEFT, "")]
    at = 0
    for column, glyph, style in sorted(model.marks):
        if column > at:
            line.append((" " * (column - at), ""))
        line.append((glyph, style))
        at = column + 1
    line.append((" " * (width - LEFT - at), ""))
    return line


def _time_axis(model: ChartModel, width: int) -> Line:
    axis = ["─"] * model.columns
    for column, label in model.ticks:
        text = f"┴{label}"
        if column >= 0 and column + len(text) <= model.columns:
            axis[column : column + len(text)] = text
    text = " " * (LEFT - 1) + "└" + "".join(axis)
    return [(fit(text, width), "dim")]


class Values(Struct, frozen=True, kw_only=True):
    """What the layers of a chart hold at one instant, in bytes."""

    tiers: tuple[tuple[str, float | None], ...]
    """Name and bytes, lowest layer first."""
    unaccounted: float | None
    tree: float | None


def present(snapshot: Snapshot) -> Values:
    """Return the values of now."""
    names = layer_names(snapshot)
    used: dict[str, float | None] = {tier.name: tier.bytes for tier in snapshot.tiers}
    if OTHERS in names and OTHERS not in used:
        used[OTHERS] = sum(used[name] or 0 for name in used if name not in names)
    memory, unaccounted = snapshot.resource("memory"), snapshot.resource("unaccounted")
    return Values(
        tiers=tuple((name, used.get(name)) for name in names),
        unaccounted=unaccounted.used if unaccounted else None,
        tree=memory.used if memory else None,
    )


def at_right_edge(course: Course) -> Values:
    """Return the values of a chart's last column; none where that is a gap."""
    tree = course.memory[-1]
    known = tree is not None
    tiers = tuple((name, values[-1] if known else None) for name, values in course.tiers)
    rest = None if tree is None else tree - sum(amount or 0 for _, amount in tiers)
    return Values(tiers=tiers, unaccounted=rest, tree=tree)


_LEGENDS = (
    (12, "unaccounted", " ", " ", "= tree "),
    (12, "unaccounted", "", " ", "= tree "),
    (9, "unacc.", "", " ", "="),
    (9, "unacc.", "", "", "="),
    (6, "unacc.", "", " ", "="),
    (5, "rest", "", " ", "="),
    (3, "rst", "", " ", "="),
    (0, "", "", " ", "="),
)
"""Cells of a tier's name, what the rest is called, the blanks behind a glyph and behind a value,
and the equals sign."""


def legend(values: Values, glyphs: Glyphs, width: int) -> Line:
    """Return glyph, name and value of each layer, and their sum; names give way.

    Fields are fixed, so that it stands still while the figures change.
    """
    line: Line = []
    for room, rest, blank, behind, equals in _LEGENDS:
        line = []
        for index, (name, amount) in enumerate(values.tiers):
            short = set_cell_size(inert(name, 24), room).rstrip()
            worth = _worth(blank + short, amount)
            line += [(glyphs.tiers[index], f"tier{index}"), (worth + behind, "")]
        worth = _worth(blank + rest, values.unaccounted)
        line += [(glyphs.unaccounted, "unaccounted"), (worth + behind, "")]
        line += [(equals, "dim"), (fit(bytes_text(values.tree), 4), "strong")]
        if width_of(line) <= width:
            break
    return cut_line(line, width)


def _worth(name: str, amount: float | None) -> str:
    return f"{name} {fit(bytes_text(amount), 4)}"
