"""What a guard must remember of the one before it, from the end of its own log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from memwatch.domain.record import Batch, Record
from memwatch.ingest.tailer import LogTailer
from memwatch.wal.spool_format import DEADLINE_US, TTL_US

_LONGEST_S = 2.0
"""A guard that begins may not be kept waiting by its past."""
_HORIZON_US = 2 * (TTL_US + DEADLINE_US)
"""A request older than this has come to its end, whoever knows how."""
_LOOK_BACK_US = 3600 * 1_000_000
"""Of what was told to people and seen by viewers this much lies in the log at any time: both are
written down again in less (`notifier.STANDS_S`, `leaving.KEPT_S`), as is what a person lets the
engine do, and what the engine remembers."""
_TOLD = frozenset({"alert", "notify", "viewer", "level", "plan", "gap", "guard.begin", "store"})
_ENGINE = frozenset({"engine.state", "engine.mode"})
_RECOVERY = frozenset({"estimate", "restart"})
_KEPT = _TOLD | _ENGINE | _RECOVERY | {"intervention", "efficacy"}


class Recollection(Struct):
    """What was found."""

    state: list[Record] = []
    """The newest `engine.state`, if there is one."""
    modes: list[Record] = []
    """What people let the engine do, in order."""
    epoch: int = 0
    """The highest that a guard had."""
    requests: list[Record] = []
    """Records of requests, in order."""
    told: list[Record] = []
    """What alerts and viewers were told of, in order."""
    estimates: list[Record] = []
    """What a crash would have cost, and restarts that came, in order."""
    efficacy: list[Record] = []
    """What interventions did, in order."""


def recollect(wal_dir: Path, now_us: int) -> Recollection:
    """Read a guard's log, newest segment first, until all that must be remembered is found."""
    found: dict[int, Record] = {}
    tailer = LogTailer(wal_dir, "guard")
    until = time.monotonic() + _LONGEST_S
    try:
        oldest_us, newest_us, segment = now_us, 0, None
        for batch in _newest_first(tailer):
            if batch.start.segment != segment:
                state_known = any(record.kind == "engine.state" for record in found.values())
                far_us = min(now_us - _HORIZON_US, newest_us - _LOOK_BACK_US)
                if state_known and oldest_us < far_us:
                    break
                segment = batch.start.segment
            oldest_us = min((record.t_us for record in batch.records), default=oldest_us)
            newest_us = max([newest_us, *(record.t_us for record in batch.records)])
            kept = (r for r in batch.records if r.kind in _KEPT)
            found |= {record.lsn: record for record in kept}
            if time.monotonic() > until:
                break
    finally:
        tailer.close()
    return _put_together([found[lsn] for lsn in sorted(found)], now_us)


def _newest_first(tailer: LogTailer) -> Iterator[Batch]:
    """Give the newest segment, then older ones; each is read forwards."""
    more = True
    while more:
        yield from tailer.poll()
        more = tailer.more
    while (batch := tailer.backfill()) is not None:
        yield batch


def _put_together(records: list[Record], now_us: int) -> Recollection:
    since_us = now_us - _HORIZON_US

    def of(kind: str) -> list[Record]:
        return [record for record in records if record.kind == kind]

    return Recollection(
        state=of("engine.state")[-1:],
        modes=of("engine.mode"),
        epoch=max((record.number("epoch") or 0 for record in of("guard.begin")), default=0),
        requests=[record for record in of("intervention") if record.t_us >= since_us],
        told=[record for record in records if record.kind in _TOLD],
        estimates=[record for record in records if record.kind in _RECOVERY],
        efficacy=of("efficacy"),
    )
