"""Chart model -> rows of glyphs: the only place that knows plotext.

plotext keeps its figure in the module: one lock, and a clear before each frame, or series pile
up. Colours come later, from the glyphs: each layer has its own.
"""

from __future__ import annotations

import threading
from typing import Any

from memwatch.ui.charts.model import ChartModel
from memwatch.ui.frame import Glyphs

_lock = threading.Lock()


def rows_of_glyphs(model: ChartModel, glyphs: Glyphs) -> list[str]:
    """Return the plot area, top row first, each row `model.columns` glyphs long.

    Layers are drawn from the top of the stack down, each over the one before; then the thresholds
    at every other column, so that what lies behind stays visible; then the peaks.
    """
    import plotext  # not at the top: 50 ms that the first paint does not wait for

    drawn = [*glyphs.tiers[: len(model.layers) - 1], glyphs.unaccounted]
    with _lock:
        plotext.clear_figure()
        _size(plotext, model)
        for heights, glyph in reversed(list(zip(model.layers, drawn, strict=True))):
            _scatter(plotext, heights, glyph, filled=True)
        for threshold in model.thresholds:
            line = [threshold.row if column % 2 == 0 else 0 for column in range(model.columns)]
            _scatter(plotext, line, glyphs.line, filled=False)
        _scatter(plotext, model.peaks, glyphs.peak, filled=False)
        text: str = plotext.uncolorize(plotext.build())
        plotext.clear_figure()
    rows = text.split("\n")[: model.rows]
    rows += [""] * (model.rows - len(rows))
    return [row[: model.columns].ljust(model.columns) for row in rows]


def _size(plotext: Any, model: ChartModel) -> None:
    plotext.theme("clear")
    plotext.limitsize(False, False)
    plotext.plotsize(model.columns, model.rows)
    plotext.xaxes(False, False)
    plotext.yaxes(False, False)
    plotext.xticks([])
    plotext.yticks([])
    plotext.xlim(0, max(model.columns - 1, 1))
    plotext.ylim(0, max(model.rows - 1, 1))


def _scatter(plotext: Any, rows: tuple[int, ...] | list[int], glyph: str, *, filled: bool) -> None:
    columns = [column for column, row in enumerate(rows) if row > 0]
    if columns:
        levels = [rows[column] - 1 for column in columns]
        plotext.scatter(columns, levels, marker=glyph, fillx=filled)
