"""What a recovery of a native run could start from: the log's word held against the disk."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from memwatch.analytics.checkpoints.fold import CheckpointFold, Saved
from memwatch.analytics.tally import Sums
from memwatch.ingest.checkpoint_scan import OnDisk

_NAMED = 8


class Chained(NamedTuple):
    """The newest full checkpoint that is there, and the increments behind it to the first gap."""

    full: Saved | None = None
    end: Saved | None = None
    """The newest checkpoint that it could load."""
    deltas: Sums = Sums()
    """As the log tells them: persisted values are among their bytes."""
    file_bytes: int = 0
    """Of their files."""
    missing: tuple[str, ...] = ()
    """Committed ones that are not on disk, or not whole."""
    damaged: Mapping[str, str] = MappingProxyType({})
    """Those that lie there and are not whole: why, by id. The full one of the older chain, which
    the agent keeps as well, is among them."""


def chain_of(saved: CheckpointFold, disk: OnDisk | None) -> Chained:
    """Follow the increments behind the newest full one that is there."""
    full, before = None, None
    faults = dict[str, str]()
    for one in reversed(saved.fulls):
        fault = disk.fault(one) if disk is not None else None
        if fault is None:
            full = one
            break
        faults[one.checkpoint.id] = fault
        before = one.at.lsn  # increments behind that one build on it
    if full is None:
        newest = dict(list(faults.items())[:1])  # older ones may have been dropped long ago
        return Chained(missing=tuple(newest), damaged=_damaged(saved, disk, newest))
    end = full
    for delta in _deltas(saved, full.at.lsn, before):
        fault = disk.fault(delta) if disk is not None else None
        if fault is not None:
            faults[delta.checkpoint.id] = fault
            before = min(before or delta.at.lsn, delta.at.lsn)
        elif before is None or delta.at.lsn < before:
            end = delta
    sums = saved.deltas.between(full.at.lsn, before)
    size = _file_bytes(disk, full, end)
    return Chained(
        full,
        end,
        sums,
        sums.own_bytes if size is None else size,
        tuple(faults)[:_NAMED],
        _damaged(saved, disk, faults),
    )


def _damaged(saved: CheckpointFold, disk: OnDisk | None, faults: dict[str, str]) -> dict[str, str]:
    kept = {one.checkpoint.id: disk.fault(one) for one in saved.fulls[-2:]} if disk else {}
    return {name: fault for name, fault in (kept | faults).items() if fault}


def _file_bytes(disk: OnDisk | None, full: Saved, end: Saved) -> int | None:
    """Return the bytes on disk of the increments between two checkpoints; None if not looked at."""
    if disk is None or end.at.lsn > disk.known_lsn:
        return None
    return sum(
        size
        for (first, last), size in disk.deltas.items()
        if first > full.covers_lsn and last <= end.covers_lsn
    )


def _deltas(saved: CheckpointFold, after: int, before: int | None) -> list[Saved]:
    """Return the increments between two records, as far as they are known one by one."""
    return [
        one
        for one in saved.committed()
        if one.checkpoint.kind != "full" and after < one.at.lsn < (before or one.at.lsn + 1)
    ]
