"""What a checkpoint is made of, taken at a safe point without copying anything.

This is all that the agent waits for. Its tables stand still until `release`, with what changes
meanwhile on top of them, and an entry is replaced by a change, never changed itself (R5).
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from msgspec import Struct

from memwatch.agent.checkpoints.cadence import Kind
from memwatch.agent.checkpoints.slices import SLICE, breathe, let_go
from memwatch.agent.context import Context
from memwatch.agent.journal import Journal, Line
from memwatch.agent.memory.entry import Change, Entry
from memwatch.agent.memory.tiers import Tiers
from memwatch.wal.segment import delta_name, full_name


class Header(Struct, frozen=True, kw_only=True):
    """What a checkpoint is, before it is written."""

    run_id: str
    id: str
    name: str
    """Of its directory or file."""
    kind: Kind
    base: str | None
    first_lsn: int
    last_lsn: int
    began_us: int
    """Wall clock."""
    began_boot_us: int
    experiments: int
    """Number of the newest experiment."""
    open: int | None
    """Number of the one in progress."""
    phase: str


class Captured(Struct, kw_only=True):
    """The state as of `header.last_lsn`."""

    header: Header
    asked: Kind
    tiers: dict[str, Mapping[str, Entry]]
    """Entries by key, in the tier's order."""
    changes: dict[str, dict[str, Change]]
    """Taken out of the tiers: to be given back when the checkpoint fails."""
    journal: list[Line]
    persist: int | None
    """Experiment whose rebuildable values are to be persisted (R8)."""
    stall_us: int
    """How long the agent waited."""


def capture(
    context: Context, tiers: Tiers, journal: Journal, asked: Kind, base: str | None, after_lsn: int
) -> Captured:
    """Take hold of the state: all of it without a base, else for what follows `after_lsn`."""
    clock, full = context.clock, asked == "full" or base is None
    began_us, began_ns = clock.boot_us(), time.perf_counter_ns()
    with tiers.lock, journal.lock:
        held = tiers.capture()
        lines = journal.lines(0 if full else after_lsn)
        experiments, number, phase = journal.experiments, context.experiment, context.phase
        changes = tiers.take_changes()
    stall_us = (time.perf_counter_ns() - began_ns) // 1000
    name = full_name(held.last_lsn) if full else delta_name(after_lsn + 1, held.last_lsn)
    header = Header(
        run_id=context.run_id,
        id=name.removesuffix(".wal"),
        name=name,
        kind="full" if full else asked,
        base=None if full else base,
        first_lsn=1 if full else after_lsn + 1,
        last_lsn=held.last_lsn,
        began_us=clock.wall_us(),
        began_boot_us=began_us,
        experiments=experiments,
        open=number,
        phase=phase,
    )
    return Captured(
        header=header,
        asked=asked,
        tiers=held.tiers,
        changes=changes,
        journal=lines,
        persist=number if asked == "experiment" else None,
        stall_us=stall_us,
    )


def release(tiers: Tiers, captured: Captured) -> None:
    """Give the tiers back what was captured, and free what only the checkpoint still held."""
    while not tiers.release(SLICE):
        breathe()
    for changes in captured.changes.values():
        left = list(changes.values())
        changes.clear()
        let_go(left)
