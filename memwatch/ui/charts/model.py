"""Course of a run -> what the chart shows, in whole cells: layers, thresholds, marks, axes. Pure.

The stack is the process tree: the tiers, and on top what no tier accounts for. Rows count from
the bottom, 1 is the lowest.
"""

from __future__ import annotations

from msgspec import Struct

from memwatch.domain.snapshot import Event, Limits
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text
from memwatch.ui.charts.axis import Tick, time_ticks, value_top
from memwatch.ui.charts.course import Course
from memwatch.ui.charts.deeds import NO_EFFECT

Mark = tuple[int, str, str]
"""Column, glyph, name of its style."""

_MARKS = {
    "checkpoint.full": ("C", "mark"),
    "checkpoint.incremental": ("c", "mark"),
    "purge": ("p", "mark"),
    "note": ("n", "note"),
    "phase": ("▏", "dim"),
}
_RANK = "!RCzgkxpcn▏"
"""The mark that wins when several fall in one column, first wins."""


class Threshold(Struct, frozen=True):
    """A share of the limit as a line across the chart."""

    row: int
    label: str
    short: str
    """For a chart with little room."""
    style: str


class ChartModel(Struct, frozen=True, kw_only=True):
    """A chart in cells; `rows` × `columns`."""

    columns: int
    rows: int
    top_bytes: float
    layers: tuple[tuple[int, ...], ...]
    """Per layer, bottom first, the height in rows of the stack up to and with it, per column."""
    peaks: tuple[int, ...]
    """Row of the greatest value where it stands above the stack, else 0."""
    thresholds: tuple[Threshold, ...]
    beyond: str
    """The nearest threshold above the chart and how far it is from the greatest value; or empty."""
    value_labels: tuple[tuple[int, str], ...]
    """Row and label of the value axis."""
    ticks: tuple[Tick, ...]
    marks: tuple[Mark, ...]
    empty: bool
    """Nothing was recorded in this span."""


def chart_model(
    course: Course, limits: Limits, rows: int, previous_top: float | None = None
) -> ChartModel:
    """Return the chart of a course in so many rows."""
    known = [peak for peak in course.peaks if peak is not None]
    limit = limits.binding.bytes if limits.binding else None
    top = value_top(max(known, default=0.0), limit, previous_top)
    layers = _layers(course, top, rows)
    lines, beyond = _thresholds(limits, top, rows, max(known, default=0.0))
    return ChartModel(
        columns=course.span.columns,
        rows=rows,
        top_bytes=top,
        layers=layers,
        peaks=_peaks(course, layers[-1], top, rows),
        thresholds=lines,
        beyond=beyond,
        value_labels=_value_labels(top, rows),
        ticks=time_ticks(course.span),
        marks=_marks(course),
        empty=not known,
    )


def height(value: float, top: float, rows: int) -> int:
    """Return how many rows a value fills: at least one for anything over half a row.

    >>> [height(v, 100.0, 10) for v in (0.0, 4.0, 6.0, 55.0, 100.0, 300.0)]
    [0, 0, 1, 6, 10, 10]
    """
    return min(int(value / top * rows + 0.5), rows)


def _layers(course: Course, top: float, rows: int) -> tuple[tuple[int, ...], ...]:
    sums = [0.0] * course.span.columns
    layers: list[tuple[int, ...]] = []
    for _, values in course.tiers:
        sums = [total + value for total, value in zip(sums, values, strict=True)]
        layers.append(_heights(sums, course, top, rows))
    whole = [
        max(used or 0.0, total) for used, total in zip(course.memory, sums, strict=True)
    ]  # tiers may claim more than the tree holds: then nothing is unaccounted for
    layers.append(_heights(whole, course, top, rows))
    return tuple(layers)


def _heights(values: list[float], course: Course, top: float, rows: int) -> tuple[int, ...]:
    return tuple(
        0 if used is None else height(value, top, rows)
        for value, used in zip(values, course.memory, strict=True)
    )


def _peaks(course: Course, stack: tuple[int, ...], top: float, rows: int) -> tuple[int, ...]:
    reached = [0 if peak is None else height(peak, top, rows) for peak in course.peaks]
    return tuple(peak if peak > filled else 0 for peak, filled in zip(reached, stack, strict=True))


def _thresholds(
    limits: Limits, top: float, rows: int, peak: float
) -> tuple[tuple[Threshold, ...], str]:
    """Return the lines in view, lowest first, and words for the nearest one above the chart."""
    if limits.binding is None:
        return (), ""
    limit = limits.binding.bytes
    named = [
        ("limit", 1.0, "crit"),
        ("hard", limits.hard_share, "crit"),
        ("emergency", limits.emergency, "crit"),
        ("intervene", limits.intervene, "act"),
        ("warn", limits.warn, "warn"),
        ("soft", limits.soft_share, "soft"),
    ]
    rows_of: dict[int, list[tuple[str, float, str]]] = {}
    above: list[tuple[str, float, str]] = []
    for name, share, style in named:
        row = height(share * limit, top, rows) if share * limit <= top * 1.001 else 0
        if row:
            rows_of.setdefault(row, []).append((name, share, style))
        else:
            above.append((name, share, style))
    lines = tuple(
        Threshold(row, _threshold_label(found, limits), found[0][0][:9], found[0][2])
        for row, found in sorted(rows_of.items())
    )
    if not above:
        return lines, ""
    nearest = min(above, key=lambda one: one[1])
    return lines, f"{nearest[0]} +{bytes_text(nearest[1] * limit - peak)}"


def _threshold_label(found: list[tuple[str, float, str]], limits: Limits) -> str:
    """Return the names of the lines that share a row; the limit itself with its bytes."""
    parts = []
    for name, share, _ in found:
        if name == "limit" and limits.binding is not None:
            parts.append(f"limit {bytes_text(limits.binding.bytes)}")
        elif len({share for _, share, _ in found}) == 1:
            parts.append(name if (name, share) != found[-1][:2] else f"{name} {share * 100:.0f}%")
        else:
            parts.append(f"{name[:5]}{share * 100:.0f}")
    return " ".join(parts)


def _value_labels(top: float, rows: int) -> tuple[tuple[int, str], ...]:
    """Return labels for the top, and for parts of it as the height allows."""
    parts = 4 if rows >= 12 else 2
    labels = {max(round(rows * part / parts), 1): part / parts for part in range(1, parts + 1)}
    return tuple((row, bytes_text(top * share)) for row, share in sorted(labels.items()))


def _marks(course: Course) -> tuple[Mark, ...]:
    best: dict[int, tuple[int, str, str]] = {}
    span = course.span
    told = [(event.t_us, mark_of(event)) for event in course.events]
    told += [(deed.t_us, (deed.glyph, "mark")) for deed in course.deeds if deed.glyph]
    for t_us, found in told:
        column = span.column_of(t_us)
        if found is None or not 0 <= column < span.columns:
            continue
        rank = _RANK.index(found[0])
        if column not in best or rank < best[column][0]:
            best[column] = (rank, *found)
    for column in [span.column_of(deed.t_us) + 1 for deed in course.deeds if deed.in_vain]:
        if 0 < column < span.columns:
            best.setdefault(column, (len(_RANK), NO_EFFECT, "warn"))
    if course.purges_from_us is not None:
        column = max(span.column_of(course.purges_from_us) - 1, 0)
        best.setdefault(column, (len(_RANK), "…", "dim"))
    marks: list[Mark] = [(column, glyph, style) for column, (_, glyph, style) in best.items()]
    marks.sort()
    return (*marks, *_phase_names(course, marks))


def mark_of(event: Event) -> tuple[str, str] | None:
    """Return glyph and style of an event on the time axis, or None for one that leaves no mark."""
    if event.severity == "error":
        return "!", "crit"
    if event.kind == "run":
        return "R", "mark"
    return _MARKS.get(event.kind) or (("▏", "dim") if event.kind.startswith("phase") else None)


def _phase_names(course: Course, marks: list[Mark]) -> list[Mark]:
    """Return the letters of a phase's name behind its mark, where nothing else stands."""
    taken = sorted({column for column, _, _ in marks} | {course.span.columns})
    letters: list[Mark] = []
    for event in course.events:
        column = course.span.column_of(event.t_us)
        if not event.kind.startswith("phase") or (column, "▏", "dim") not in marks:
            continue
        room = next(other for other in taken if other > column) - column - 1
        name = inert(event.text, 24).removeprefix("phase ").strip()
        if 3 <= len(name) <= room and name.isascii():
            letters += [(column + 1 + i, letter, "dim") for i, letter in enumerate(name)]
    return letters
