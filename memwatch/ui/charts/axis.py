"""Scales of a chart: where values end, and where the time is written. Pure."""

from __future__ import annotations

import math
import time

from memwatch.ui.charts.course import Span

Tick = tuple[int, str]
"""Column and label of the time axis."""

_NICE = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_STEPS_S = (
    1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
    172_800,
)  # fmt: skip
_LABEL_CELLS = 16
_FITS_LIMIT, _LEAVES_LIMIT = 0.25, 0.2
"""Over this share of the limit the chart is as high as the limit, for how much is left is the
point; under that share it follows the data again."""


def value_top(peak: float, limit: float | None, previous: float | None = None) -> float:
    """Return the value at the top of the chart.

    Over a quarter of the limit it is the limit; else it follows the data, up and down, in steps
    and with some reluctance, so that it does not flicker.

    >>> value_top(120.0, 300.0), value_top(40.0, 300.0), value_top(310.0, 300.0)
    (300.0, 50.0, 400.0)
    >>> value_top(38.0, None, 60.0), value_top(9.0, None, 60.0), value_top(0.0, None)
    (60.0, 10.0, 1000000.0)
    """
    if limit and peak > limit * (_LEAVES_LIMIT if previous == limit else _FITS_LIMIT):
        return float(limit) if peak <= limit else nice_above(peak)
    if peak <= 0:
        return 1e6
    if previous and previous * 0.4 <= peak <= previous * 0.97 and previous != limit:
        return previous
    return nice_above(peak * 1.1)


def nice_above(value: float) -> float:
    """Return the round number at or above a value, one byte at least.

    >>> [nice_above(v) for v in (44.0, 1.0, 7e8, 10.5)]
    [50.0, 1.0, 800000000.0, 15.0]
    """
    value = max(value, 1.0)
    scale = 10.0 ** math.floor(math.log10(value))
    return scale * next(step for step in _NICE if value <= scale * step * 1.000001)


def time_ticks(span: Span) -> tuple[Tick, ...]:
    """Return round local times along the axis, far enough apart to read."""
    step_s = span.step_us / 1e6
    spacing_s = next((s for s in _STEPS_S if s >= step_s * _LABEL_CELLS), _STEPS_S[-1])
    offset_s = time.localtime(span.t0_us / 1e6).tm_gmtoff
    first = math.ceil((span.t0_us / 1e6 + offset_s) / spacing_s)
    ticks: list[Tick] = []
    for number in range(first, first + span.columns):
        t_s = number * spacing_s - offset_s
        column = span.column_of(round(t_s * 1e6))
        if column >= span.columns:
            break
        ticks.append((column, _tick_label(t_s, spacing_s)))
    return tuple(ticks)


def _tick_label(t_s: float, spacing_s: int) -> str:
    moment = time.localtime(t_s)
    if spacing_s < 60:
        return time.strftime("%H:%M:%S", moment)
    return time.strftime("%H:%M" if spacing_s < 43_200 else "%m-%d %H:%M", moment)
