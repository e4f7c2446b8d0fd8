"""Growth: each tier, what is unaccounted for, and the tree, over three spans of time."""

from __future__ import annotations

from collections.abc import Mapping

from memwatch.domain.snapshot import Limits, Resource, Snapshot, Tier
from memwatch.domain.text import inert
from memwatch.domain.units import arrival_text, bytes_text, share_text
from memwatch.ui.format import LEVEL_STYLES, count_text, rate_text
from memwatch.ui.frame import Frame
from memwatch.ui.line import Line, cut_line, joined, width_of, wrapped
from memwatch.ui.panels.table import Cell, TableColumn, table

_FAST = 0.05
"""Share of the limit: a row that grows by more in the middle window, at that rate, stands out."""


def growth(frame: Frame, width: int, height: int) -> list[Line]:
    """Return the table of growth per minute, and when the limit is reached."""
    snapshot = frame.snapshot
    if snapshot is None:
        return []
    columns = [
        TableColumn("tier", 0, "left"),
        TableColumn("now", 5),
        TableColumn("share", 5, needs=44),
        TableColumn("entries", 7, needs=60),
        TableColumn("mean", 5, needs=52),
        TableColumn("cap", 5, needs=72),
        *(TableColumn(window, 6) for window in snapshot.windows),
    ]
    limit = snapshot.limits.binding.bytes if snapshot.limits.binding else None
    rows = [_tier(tier, snapshot, limit) for tier in snapshot.tiers]
    rows += [
        _resource(resource, label, snapshot, limit)
        for label, resource in (
            ("unaccounted", snapshot.resource("unaccounted")),
            ("tree", snapshot.resource("memory")),
        )
        if resource is not None
    ]
    if not rows and snapshot.checkpoints.source != "native":
        why = "a checkpoint store has no tiers; no process that writes it was measured"
        return wrapped(why, width, "dim")[:height]
    lines = table(columns, rows, width)
    room = height - len(lines)
    notes = _notes(snapshot, width, room)
    if len(notes) < room:
        lines.append([])
    return (lines + [cut_line(note, width) for note in notes])[:height]


def _tier(tier: Tier, snapshot: Snapshot, limit: int | None) -> list[Cell]:
    style = LEVEL_STYLES[tier.level]
    return [
        Cell(inert(tier.name), style),
        Cell(bytes_text(tier.bytes), style),
        _share(tier.share, style),
        Cell(count_text(tier.entries)),
        Cell(bytes_text(tier.mean_bytes)),
        Cell(bytes_text(tier.limit), "dim"),
        *_rates(tier.growth_per_min, snapshot.windows, limit),
    ]


def _resource(resource: Resource, label: str, snapshot: Snapshot, limit: int | None) -> list[Cell]:
    style = LEVEL_STYLES[resource.level]
    share = resource.share
    if share is None and limit and resource.used is not None:
        share = resource.used / limit
    return [
        Cell(label, style or "strong"),
        Cell(bytes_text(resource.used), style or "strong"),
        _share(share, style),
        Cell(""),
        Cell(""),
        Cell(bytes_text(resource.limit), "dim"),
        *_rates(resource.growth_per_min, snapshot.windows, limit),
    ]


def _share(share: float | None, style: str) -> Cell:
    """Return a share; one over its threshold says so without colour, too."""
    return Cell(share_text(share) + ("!" if style else ""), style)


def _rates(
    per_min: Mapping[str, float | None], windows: tuple[str, ...], limit: int | None
) -> list[Cell]:
    cells: list[Cell] = []
    for window in windows:
        rate = per_min.get(window)
        fast = rate is not None and limit is not None and rate > limit * _FAST
        style = "dim" if rate is None else "warn" if fast else ""
        cells.append(Cell(rate_text(rate), style))
    return cells


def _notes(snapshot: Snapshot, width: int, room: int) -> list[Line]:
    memory = snapshot.resource("memory")
    lines: list[Line] = []
    if memory is not None and memory.time_to_limit_s is not None:
        arrival = arrival_text(*memory.time_to_limit_s)
        lines.append([("limit in ", "dim"), (arrival, "warn"), (" if this goes on", "dim")])
    limits = limit_lines(snapshot.limits)
    together = joined(limits, (" · ", "dim"))
    crowded = len(lines) + len(limits) + bool(snapshot.profile_note) > room
    lines += [together] if crowded and width_of(together) <= width else limits
    if snapshot.profile_note:
        lines.append([(inert(snapshot.profile_note), "dim")])
    return lines


def limit_lines(limits: Limits) -> list[Line]:
    """Return the binding limit, and the others with what they are worth."""
    if limits.binding is None:
        return [[("no limit known", "dim")]]
    binding = limits.binding
    lines: list[Line] = [
        [("limit ", "dim"), (f"{bytes_text(binding.bytes)} {inert(binding.name, 40)}", "")]
    ]
    others = [
        f"{inert(limit.name, 24)} {bytes_text(limit.bytes)}"
        + ("" if limit.in_force else " (not in force)")
        for limit in limits.others
    ]
    if others:
        lines.append([(f"others: {', '.join(others)}", "dim")])
    return lines
