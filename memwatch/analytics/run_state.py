"""The agent's log folded into what the run is like now: pure, incremental, order-free.

The newest segment is read first and older ones later, so each figure remembers the lsn it comes
from and an older record never overrides a newer one; counts simply add up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from memwatch.analytics.checkpoints.fold import CheckpointFold
from memwatch.analytics.deed_fold import DeedFold
from memwatch.analytics.narrate import KNOWN_KINDS
from memwatch.analytics.recovery.restarts import Restarts
from memwatch.analytics.told import End, ExperimentEnd, Instant, Purge, Start, keep
from memwatch.domain.checkpoints import Checkpoint
from memwatch.domain.record import Fault, Record, figure, whole
from memwatch.domain.sample import TierSample
from memwatch.domain.text import inert

_KEPT_CHECKPOINTS = 64
_KEPT_EXPERIMENTS = 64
_KEPT_PURGES = 64
_KEPT_SWITCHES = 32
_KEPT_STATUSES = 32


class RunState:
    """What the agent's log says. Fold every record once, in any order of segments."""

    def __init__(self) -> None:
        self._at: dict[str, int] = {}
        self.records = 0
        self.last = Instant()
        """The newest record."""
        self.progress = Instant()
        """The newest record that says that the work goes on."""
        self.start: Start | None = None
        self.starts = 0
        self.restarts = Restarts()
        self.deeds = DeedFold()
        self.end: End | None = None
        """When it belongs to the newest start."""
        self.mode: str | None = None
        self.mode_at = Instant()
        """The record that told the mode."""
        self.phase: str | None = None
        self.experiment: int | None = None
        self.experiment_title = ""
        self.experiment_at = Instant()
        """The record that began it."""
        self.tiers: dict[str, TierSample] = {}
        self.tiers_at = Instant()
        """The `sample` that told the tiers."""
        self.experiments: Counter[str] = Counter()
        self.recent_experiments: list[ExperimentEnd] = []
        self.best = ""
        self.steps = 0
        self.saved = CheckpointFold()
        self.asked: dict[str, tuple[str, str]] = {}
        """Who asked for a checkpoint, and the id of the request, by its own id; others were due."""
        self.spans: dict[str, tuple[int, int]] = {}
        """First and last record of each purge that was asked for, by the id of the request."""
        self._switches: dict[str, tuple[int, float]] = {}
        self.purges: list[Purge] = []
        """The newest."""
        self.purge_count = 0
        self.commands: dict[str, tuple[str, str, int]] = {}
        """State, detail and time of each command id that the agent answered."""
        self.faults: Counter[str] = Counter()
        self.unknown = 0

    def fold(self, records: Iterable[Record]) -> None:
        """Take records of one segment, in their order."""
        handlers = _HANDLERS
        count, last = 0, None
        for record in records:
            if record.kind == "run.begin" and last is not None:
                self.deeds.ends(last)
            count += 1
            last = record
            handler = handlers.get(record.kind)
            if handler is not None:
                handler(self, record)
            elif record.kind not in KNOWN_KINDS:
                self.unknown += 1
        self.records += count
        if last is None:
            return
        self.deeds.ends(last)
        if last.lsn > self.last.lsn:
            self.last = Instant.of(last)

    @property
    def checkpoints(self) -> dict[str, Checkpoint]:
        """Newest checkpoints by id, in order of their lsn."""
        return self.saved.known

    @property
    def checkpoint_at(self) -> dict[str, Instant]:
        """The newest record of each of these."""
        return self.saved.at

    @property
    def checkpoint_counts(self) -> Counter[str]:
        """All that ended, by state: committed, aborted."""
        return self.saved.counts

    @property
    def last_lsn(self) -> int:
        """Number of the newest record."""
        return self.last.lsn

    @property
    def last_t_us(self) -> int:
        """Wall time of the newest record."""
        return self.last.t_us

    def fold_faults(self, faults: Iterable[Fault]) -> None:
        """Count what is wrong in the log; numbers that come again make older figures void."""
        for fault in faults:
            self.faults[fault.kind] += 1
            if fault.kind == "repeated" and fault.lsn is not None:
                limit = fault.lsn - 1
                self._at = {slot: min(lsn, limit) for slot, lsn in self._at.items()}
                self.last = self.last._replace(lsn=min(self.last.lsn, limit))
                self.progress = self.progress._replace(lsn=min(self.progress.lsn, limit))

    def _newer(self, slot: str, record: Record) -> bool:
        if record.lsn <= self._at.get(slot, 0):
            return False
        self._at[slot] = record.lsn
        return True

    def _progress(self, record: Record) -> None:
        if record.lsn > self.progress.lsn:
            self.progress = Instant.of(record)

    def _run_begin(self, record: Record) -> None:
        self.starts += 1
        self.restarts.take(record)
        self.deeds.take(record)
        if self._newer("start", record):
            self.start = Start(record)
            if record.lsn > self._at.get("end", 0):
                self.end = None
            if self._newer("mode", record):
                self.mode, self.mode_at = "running", Instant.of(record)
            if self._newer("sample", record):
                self.tiers, self.tiers_at = {}, Instant()
            if self._newer("experiment", record):
                self.experiment, self.experiment_title, self.phase = None, "", None

    def _recovery(self, record: Record) -> None:
        self.restarts.take(record)

    def _run_end(self, record: Record) -> None:
        if record.lsn > self._at.get("start", 0) and self._newer("end", record):
            self.end = End(record)

    def _deed(self, record: Record) -> None:
        self.deeds.take(record)

    def _mode(self, record: Record) -> None:
        self.deeds.take(record)
        if self._newer("mode", record):
            self.mode, self.mode_at = inert(record.text("mode"), 20), Instant.of(record)

    @property
    def switches(self) -> dict[str, float]:
        """What the agent's present start says of its switches; another process has its own."""
        began = self.start.lsn if self.start else 0
        return {name: value for name, (lsn, value) in self._switches.items() if lsn >= began}

    def _switch(self, record: Record) -> None:
        name, value = inert(record.text("name"), 40), figure(record.members.get("value"))
        if value is None:
            return
        if (name in self._switches or len(self._switches) < _KEPT_SWITCHES) and self._newer(
            f"switch {name}", record
        ):
            self._switches[name] = (record.lsn, float(value))

    def _experiment_begin(self, record: Record) -> None:
        self._progress(record)
        self.deeds.take(record)
        if self._newer("experiment", record):
            self.experiment = record.experiment
            self.experiment_title = inert(record.text("title"), 80)
            self.experiment_at = Instant.of(record)
            self.phase = inert(record.text("phase"), 20) or None

    def _experiment_end(self, record: Record) -> None:
        self._progress(record)
        end = ExperimentEnd(record)
        room = end.status in self.experiments or len(self.experiments) < _KEPT_STATUSES
        self.experiments[end.status if room else "other"] += 1
        keep(self.recent_experiments, end, _KEPT_EXPERIMENTS)
        self.saved.experiment_ended(end.lsn, end.status)
        metrics = record.members.get("metrics")
        best = record.members.get(
            "best", metrics.get("best") if isinstance(metrics, dict) else None
        )
        best = best if isinstance(best, str) else figure(best)
        if best is not None and self._newer("best", record):
            self.best = inert(f"{best:.4g}" if isinstance(best, float) else str(best), 40)

    def _step(self, record: Record) -> None:
        self.steps += 1
        self._progress(record)

    def _sample(self, record: Record) -> None:
        if not self._newer("sample", record):
            return
        tiers = record.members.get("tiers")
        if isinstance(tiers, dict):
            self.tiers, self.tiers_at = tier_samples(tiers), Instant.of(record)

    def _checkpoint(self, record: Record) -> None:
        self.saved.take(record)

    def _purge_end(self, record: Record) -> None:
        self.purge_count += 1
        keep(self.purges, Purge(record), _KEPT_PURGES)

    def _command(self, record: Record) -> None:
        self.deeds.take(record)
        name = record.text("id")
        if name and self._newer(f"command {name}", record):
            detail = inert(record.text("detail"), 120)
            self.commands[name] = (inert(record.text("state"), 12), detail, record.t_us)
            if len(self.commands) > 64:
                oldest = next(iter(self.commands))
                del self.commands[oldest]
                self._at.pop(f"command {oldest}", None)
                self.spans.pop(oldest, None)
        if name in self.commands and record.text("op") == "purge":
            first, last = self.spans.get(name, (record.lsn, record.lsn))
            self.spans[name] = (min(first, record.lsn), max(last, record.lsn))
        self._checkpoint_asked(record, name)

    def _checkpoint_asked(self, record: Record, name: str) -> None:
        result = record.members.get("result")
        made = result.get("id") if isinstance(result, dict) else None
        if record.text("op") == "checkpoint" and isinstance(made, str):
            origin = inert(record.text("origin", "operator"), 20)
            self.asked[inert(made, 80)] = (origin, name)
            if len(self.asked) > _KEPT_CHECKPOINTS:
                del self.asked[next(iter(self.asked))]


def tier_samples(tiers: dict[str, Any]) -> dict[str, TierSample]:
    """Read the `tiers` member of a `sample` record; members of a wrong type are left out."""

    def number(members: dict[str, Any], name: str) -> int | None:
        value = whole(members.get(name))
        return value if value is not None and value >= 0 else None

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


_HANDLERS: dict[str, Callable[[RunState, Record], None]] = {
    "run.begin": RunState._run_begin,
    "run.end": RunState._run_end,
    "recovery": RunState._recovery,
    "mode": RunState._mode,
    "switch": RunState._switch,
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
    "context.compact": RunState._deed,
    "retention": RunState._deed,
}
