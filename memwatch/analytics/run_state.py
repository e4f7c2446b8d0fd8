"""The agent's log folded into what the run is like now: pure, incremental, order-free.

The newest segment is read first and older ones later, so each figure remembers the lsn it comes
from and an older record never overrides a newer one; counts simply add up.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from msgspec.structs import replace

from memwatch.analytics.narrate import KNOWN_KINDS
from memwatch.domain.record import Fault, Record
from memwatch.domain.sample import TierSample
from memwatch.domain.snapshot import Checkpoint
from memwatch.domain.text import inert

_KEPT_CHECKPOINTS = 64
_KEPT_EXPERIMENTS = 64
_KEPT_PURGES = 64


class Start:
    """One `run.begin`."""

    def __init__(self, record: Record) -> None:
        self.lsn = record.lsn
        self.t_us = record.t_us
        self.start_id = inert(record.text("start_id"), 80)
        self.boot_id = record.text("boot")
        self.pid = record.number("pid") or 0
        limits = record.members.get("limits")
        limit = limits.get("memory_bytes") if isinstance(limits, dict) else None
        self.memory_limit_bytes = limit if type(limit) is int and limit > 0 else None


class ExperimentEnd:
    """One `experiment.end`."""

    def __init__(self, record: Record) -> None:
        self.lsn = record.lsn
        self.t_us = record.t_us
        self.number = record.experiment
        self.status = inert(record.text("status", "done"), 20)
        self.duration_us = record.number("duration_us")


class Purge:
    """One `purge.end`."""

    def __init__(self, record: Record) -> None:
        self.lsn = record.lsn
        self.t_us = record.t_us
        self.m_us = record.m_us
        self.tier = inert(record.text("tier"), 40)
        self.how = inert(record.text("how"), 20)
        self.cause = inert(record.text("cause"), 20)
        self.entries = record.number("entries")
        self.freed_bytes = record.number("freed_bytes")
        self.duration_us = record.number("duration_us") or 0


class RunState:
    """What the agent's log says. Fold every record once, in any order of segments."""

    def __init__(self) -> None:
        self._at: dict[str, int] = {}
        self.records = 0
        self.last_lsn = 0
        self.last_t_us = 0
        self.last_progress_us = 0
        self.start: Start | None = None
        self.starts = 0
        self.end: tuple[int, str, str] | None = None
        """Time, status and reason of `run.end`, when it belongs to the newest start."""
        self.mode: str | None = None
        self.phase: str | None = None
        self.experiment: int | None = None
        self.experiment_title = ""
        self.tiers: dict[str, TierSample] = {}
        self.tiers_t_us = 0
        self.tiers_m_us = 0
        self.experiments: Counter[str] = Counter()
        self.recent_experiments: list[ExperimentEnd] = []
        self.best = ""
        self.steps = 0
        self.checkpoints: dict[str, Checkpoint] = {}
        """Newest checkpoints by id, in order of their lsn."""
        self.checkpoint_lsn: dict[str, int] = {}
        self.purges: list[Purge] = []
        self.commands: dict[str, tuple[str, str, int]] = {}
        """State, detail and time of each command id that the agent answered."""
        self.faults: Counter[str] = Counter()
        self.unknown = 0

    def fold(self, records: Iterable[Record]) -> None:
        """Take records of one segment, in their order."""
        handlers = _HANDLERS
        count, last = 0, None
        for record in records:
            count += 1
            last = record
            handler = handlers.get(record.kind)
            if handler is not None:
                handler(self, record)
            elif record.kind not in KNOWN_KINDS:
                self.unknown += 1
        self.records += count
        if last is not None and last.lsn > self.last_lsn:
            self.last_lsn = last.lsn
            self.last_t_us = last.t_us

    def fold_faults(self, faults: Iterable[Fault]) -> None:
        """Count what is wrong in the log; numbers that come again make older figures void."""
        for fault in faults:
            self.faults[fault.kind] += 1
            if fault.kind == "repeated" and fault.lsn is not None:
                limit = fault.lsn - 1
                self._at = {slot: min(lsn, limit) for slot, lsn in self._at.items()}
                self.last_lsn = min(self.last_lsn, limit)

    def _newer(self, slot: str, record: Record) -> bool:
        if record.lsn <= self._at.get(slot, 0):
            return False
        self._at[slot] = record.lsn
        return True

    def _progress(self, record: Record) -> None:
        self.last_progress_us = max(self.last_progress_us, record.t_us)

    def _run_begin(self, record: Record) -> None:
        self.starts += 1
        if self._newer("start", record):
            self.start = Start(record)
            if record.lsn > self._at.get("end", 0):
                self.end = None
            if self._newer("mode", record):
                self.mode = "running"

    def _run_end(self, record: Record) -> None:
        if record.lsn > self._at.get("start", 0) and self._newer("end", record):
            status = inert(record.text("status", "done"), 20)
            self.end = (record.t_us, status, inert(record.text("reason"), 120))

    def _mode(self, record: Record) -> None:
        if self._newer("mode", record):
            self.mode = inert(record.text("mode"), 20)

    def _experiment_begin(self, record: Record) -> None:
        self._progress(record)
        if self._newer("experiment", record):
            self.experiment = record.experiment
            self.experiment_title = inert(record.text("title"), 80)
            self.phase = inert(record.text("phase"), 20) or None

    def _experiment_end(self, record: Record) -> None:
        self._progress(record)
        end = ExperimentEnd(record)
        self.experiments[end.status] += 1
        _insert(self.recent_experiments, end, _KEPT_EXPERIMENTS)
        best = record.members.get("best")
        if best is not None and self._newer("best", record):
            self.best = inert(f"{best:.4g}" if isinstance(best, float) else str(best), 40)

    def _step(self, record: Record) -> None:
        self.steps += 1
        self.last_progress_us = max(self.last_progress_us, record.t_us)

    def _sample(self, record: Record) -> None:
        if not self._newer("sample", record):
            return
        tiers = record.members.get("tiers")
        if isinstance(tiers, dict):
            self.tiers = tier_samples(tiers)
            self.tiers_t_us, self.tiers_m_us = record.t_us, record.m_us

    def _checkpoint(self, record: Record) -> None:
        name = inert(record.text("id", f"lsn {record.lsn}"), 80)
        known = self.checkpoints.pop(name, None)
        self.checkpoints[name] = _checkpoint(record, name, known)
        self.checkpoint_lsn[name] = max(record.lsn, self.checkpoint_lsn.get(name, 0))
        order = sorted(self.checkpoints, key=self.checkpoint_lsn.__getitem__)
        kept = order[-_KEPT_CHECKPOINTS:]
        self.checkpoints = {name: self.checkpoints[name] for name in kept}
        self.checkpoint_lsn = {name: self.checkpoint_lsn[name] for name in kept}

    def _purge_end(self, record: Record) -> None:
        _insert(self.purges, Purge(record), _KEPT_PURGES)

    def _command(self, record: Record) -> None:
        name = record.text("id")
        if name and self._newer(f"command {name}", record):
            detail = inert(record.text("detail"), 120)
            self.commands[name] = (inert(record.text("state"), 12), detail, record.t_us)
            if len(self.commands) > 64:
                oldest = next(iter(self.commands))
                del self.commands[oldest]
                self._at.pop(f"command {oldest}", None)


_Told = TypeVar("_Told", ExperimentEnd, Purge)


def _insert(told: list[_Told], item: _Told, limit: int) -> None:
    """Keep the newest `limit` by lsn, whatever the order they come in."""
    insort(told, item, key=lambda one: one.lsn)
    if len(told) > limit:
        del told[0]


def tier_samples(tiers: dict[str, Any]) -> dict[str, TierSample]:
    """Read the `tiers` member of a `sample` record; members of a wrong type are left out."""

    def number(members: dict[str, Any], name: str) -> int | None:
        value = members.get(name)
        return value if type(value) is int and value >= 0 else None

    return {
        inert(name, 40): TierSample(
            entries=number(members, "entries"),
            bytes=number(members, "bytes"),
            tokens=number(members, "tokens"),
            limit=number(members, "limit"),
        )
        for name, members in list(tiers.items())[:64]
        if isinstance(members, dict)
    }


def _checkpoint(record: Record, name: str, known: Checkpoint | None) -> Checkpoint:
    state = {"checkpoint.begin": "begun", "checkpoint.commit": "committed"}.get(
        record.kind, "aborted"
    )
    duration_us, stall_us = record.number("duration_us"), record.number("stall_us")
    began_us = record.t_us - (duration_us or 0)
    said = record.text("kind") or (known.kind if known else "")
    kind = "full" if said == "full" else "incremental"
    base = inert(record.text("base"), 80) or (known.base if known else None)
    if known is not None and known.state != "begun" and state == "begun":
        # Its end was read first, and may not repeat what its beginning says.
        return replace(known, kind=kind, base=base, began_us=record.t_us)
    return Checkpoint(
        id=name,
        kind=kind,
        state=state,  # type: ignore[arg-type]  # one of the three literals above
        base=base,
        first_lsn=record.number("first_lsn"),
        last_lsn=record.number("last_lsn"),
        bytes=record.number("bytes"),
        entries=record.number("entries"),
        began_us=known.began_us if known is not None and known.state == "begun" else began_us,
        committed_us=record.t_us if state == "committed" else None,
        duration_s=duration_us / 1e6 if duration_us is not None else None,
        stall_s=stall_us / 1e6 if stall_us is not None else None,
        reason=inert(record.text("reason"), 120),
    )


_HANDLERS: dict[str, Callable[[RunState, Record], None]] = {
    "run.begin": RunState._run_begin,
    "run.end": RunState._run_end,
    "mode": RunState._mode,
    "experiment.begin": RunState._experiment_begin,
    "experiment.end": RunState._experiment_end,
    "step.end": RunState._step,
    "tool.end": RunState._step,
    "step.begin": RunState._progress,
    "tool.begin": RunState._progress,
    "sample": RunState._sample,
    "checkpoint.begin": RunState._checkpoint,
    "checkpoint.commit": RunState._checkpoint,
    "checkpoint.abort": RunState._checkpoint,
    "purge.end": RunState._purge_end,
    "command": RunState._command,
}
