"""Processes: the agent's tree, largest members first, orphans named."""

from __future__ import annotations

from memwatch.domain.sample import ProcessInfo
from memwatch.domain.snapshot import Snapshot
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text, counted
from memwatch.ui.format import age_text, count_text
from memwatch.ui.frame import Frame
from memwatch.ui.line import Line, cut_line
from memwatch.ui.panels.table import Cell, TableColumn, table

_COLUMNS = (
    TableColumn("pid", 7),
    TableColumn("name", 0, "left"),
    TableColumn("rss", 5),
    TableColumn("swap", 5),
    TableColumn("thr", 4),
    TableColumn("age", 6),
    TableColumn("parent", 7, needs=60),
)


def processes(frame: Frame, width: int, height: int) -> list[Line]:
    """Return the counts of the tree and its largest members."""
    snapshot = frame.snapshot
    if snapshot is None:
        return []
    found = snapshot.processes
    if not found.count:
        return [[(_nothing(frame, snapshot), "dim")]]
    head: Line = [(counted(found.count, "process", "processes"), "")]
    if found.orphans:
        head.append((f", {found.orphans} ORPHAN{'' if found.orphans == 1 else 'S'}", "warn"))
    head.append((f", {counted(found.threads, 'thread')}", ""))
    if found.fds is not None:
        head.append((f", {count_text(found.fds)} descriptors", ""))
    rows = [_row(member) for member in found.members]
    lines = [cut_line(head, width), *table(_COLUMNS, rows, width)]
    return lines[:height]


def _nothing(frame: Frame, snapshot: Snapshot) -> str:
    """Say why there is no process to show."""
    if snapshot.checkpoints.source != "native":
        return "nobody holds a file of this store open for writing"
    return "the run is over, no process is left" if frame.past else "not measured yet"


def _row(member: ProcessInfo) -> list[Cell]:
    style = "warn" if member.orphan else ""
    name = inert(member.name, 60) + (" (orphan)" if member.orphan else "")
    return [
        Cell(str(member.pid), "dim"),
        Cell(name, style),
        Cell(bytes_text(member.rss_bytes)),
        Cell(bytes_text(member.swap_bytes) if member.swap_bytes else "0", "dim"),
        Cell(str(member.threads), "dim"),
        Cell(age_text(member.age_s), "dim"),
        Cell(str(member.ppid), "dim"),
    ]
