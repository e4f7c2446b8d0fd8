"""The agent's log folded for a report, record by record in their order. Bounded memory.

What the guard had counted already (`Tally`, in its own log) is not counted again: behind a full
checkpoint the agent drops old log, and those tallies are all that is left of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from memwatch.analytics.checkpoints.course import Seen
from memwatch.analytics.checkpoints.fold import checkpoint_of
from memwatch.analytics.report.course import Axis, Course, Dwell
from memwatch.analytics.report.model import ClaimRow, Start
from memwatch.analytics.since import Tally
from memwatch.analytics.told import best_of
from memwatch.domain.record import Record, whole
from memwatch.domain.text import inert

_KEPT_CHECKPOINTS = 4096
_KEPT_STARTS = 64
_KEPT_NAMES = 64
"""Tiers, statuses, errors: who names more of them is not believed."""
_KEPT_LOSSES = 8
DIED: Final = "died without a word"
"""How a death is told from an ordered end."""
_HELD: Final = frozenset({"paused", "read_only", "draining"})


class AgentFold:
    """Takes records; the figures stand in its members."""

    def __init__(self, tallies: Sequence[Tally] = (), since_us: int = 0) -> None:
        self._tallies = tallies
        self._since_us = since_us
        self._began = False
        self._axis = Axis()
        self.records = 0
        self.first_us = self.last_us = 0
        """Wall times of the first and the last record in the time that is told of."""
        self.log_from_us = 0
        """Wall time of the first record of the log, told of or not."""
        self.from_us = 0
        """Place of the axis where that time begins."""
        self.starts: list[Start] = []
        self.experiments: Counter[str] = Counter()
        self.best = ""
        self.took_us = 0
        self.took = 0
        self.open: tuple[int | None, int] | None = None
        """The experiment in progress, and when it began on the axis."""
        self.holds = Dwell("running")
        self.memory = Course()
        """Of its own process, by its own account."""
        self.tiers: dict[str, Course] = {}
        self.saved: list[Seen] = []
        self.failed_saves = 0
        self.counted_saves = 0
        """Committed ones that no tally counts."""
        self.claims: dict[tuple[str, str], ClaimRow] = {}
        self.errors: Counter[str] = Counter()
        self.ended = False
        self._limits: dict[str, int] = {}

    @property
    def seconds(self) -> float:
        """Time that it covers."""
        return (self._axis.at_us - self.from_us) / 1e6

    def take(self, record: Record) -> None:
        """Take the next record."""
        begins = record.kind == "run.begin"
        self.log_from_us = self.log_from_us or record.t_us
        self._axis.move(record, anew=begins)
        if not self._began and record.t_us >= self._since_us:
            self._begin(record.t_us, self._axis.at(self._since_us, record))
        if begins:
            self._run_begin(record)
        self.records += 1
        self.last_us = record.t_us
        handler = _HANDLERS.get(record.kind)
        if handler is not None:
            handler(self, record)

    def close(self) -> None:
        """Count the time up to the last record; where all is older, nothing is told."""
        if not self._began:
            self._begin(0, self._axis.at_us)
            self.last_us = 0
        self.holds.pass_by(self._axis.at_us)

    def _begin(self, t_us: int, at_us: int) -> None:
        """Forget all but what is so: here begins what is told of."""
        self._began = True
        self.first_us, self.from_us, self.records = t_us, at_us, 0
        self.holds.begin(at_us)
        fresh = AgentFold()
        for name in ("starts", "experiments", "claims", "errors", "saved", "memory", "tiers"):
            setattr(self, name, getattr(fresh, name))
        self.took = self.took_us = self.failed_saves = self.counted_saves = 0

    def _is_counted(self, record: Record) -> bool:
        return any(
            record.lsn <= tally.agent_lsn and record.t_us >= tally.from_us
            for tally in self._tallies
        )

    # -- starts ------------------------------------------------------------------------------

    def _run_begin(self, record: Record) -> None:
        first = self.records == 0 and record.lsn == 1
        if not first and self.last_us and len(self.starts) < _KEPT_STARTS:
            self.starts.append(self._start(record))
        self.open, self.ended = None, False
        self.holds.enter("running", self._axis.at_us)

    def _start(self, record: Record) -> Start:
        what = "started again" if self.ended else f"{DIED}, started again"
        number, since_us = self.open or (None, self._axis.at_us)
        down_us = record.t_us - self.last_us
        redo_s = (self._axis.at_us - since_us) / 1e6 if self.open and not self.ended else None
        return Start(
            t_us=record.t_us,
            what=what,
            experiment=number if redo_s is not None else None,
            redo_s=redo_s,
            down_s=max(down_us, 0) / 1e6,
        )

    def _recovery(self, record: Record) -> None:
        if not self.starts:
            return
        last, lost = self.starts[-1], record.members.get("lost")
        losses = lost[:_KEPT_LOSSES] if isinstance(lost, list) else []
        took_us = record.number("duration_us")
        parts = [inert(record.text("full"), 40) or "the log alone"]
        parts += [
            f"{count} {name}" for name in ("deltas", "records") if (count := record.number(name))
        ]
        words = ", ".join(parts) + (f" in {took_us / 1e6:.2g}s" if took_us is not None else "")
        self.starts[-1] = Start(
            t_us=last.t_us,
            what=last.what,
            experiment=last.experiment,
            redo_s=last.redo_s,
            down_s=last.down_s,
            recovered=words,
            lost=tuple(inert(str(one), 120) for one in losses),
        )

    def _run_end(self, _: Record) -> None:
        self.ended, self.open = True, None

    # -- work --------------------------------------------------------------------------------

    def _experiment_begin(self, record: Record) -> None:
        self.open = record.experiment, self._axis.at_us

    def _experiment_end(self, record: Record) -> None:
        self.open = None
        took_us = record.number("duration_us")
        if took_us is not None and took_us >= 0:
            self.took += 1
            self.took_us += took_us
        self.best = best_of(record) or self.best
        if not self._is_counted(record):
            self.experiments[_bounded(self.experiments, record.text("status", "done"))] += 1

    def _mode(self, record: Record) -> None:
        mode = record.text("mode")
        self.holds.enter(mode if mode in _HELD else "running", self._axis.at_us)

    def _error(self, record: Record) -> None:
        said = f"{record.members.get('kind', 'error')}: {record.text('message')}"
        self.errors[_bounded(self.errors, said)] += 1

    # -- memory ------------------------------------------------------------------------------

    def _sample(self, record: Record) -> None:
        process, tiers = record.members.get("process"), record.members.get("tiers")
        if isinstance(process, dict):
            rss, swap = whole(process.get("rss_bytes")), whole(process.get("swap_bytes"))
            if rss is not None:
                self.memory.take(record.t_us, self._axis.at_us, float(rss + (swap or 0)))
        for name, held in list(tiers.items())[:_KEPT_NAMES] if isinstance(tiers, dict) else ():
            size = whole(held.get("bytes")) if isinstance(held, dict) else None
            if size is not None and (name in self.tiers or len(self.tiers) < _KEPT_NAMES):
                course = self.tiers.setdefault(inert(name, 40), Course())
                course.take(record.t_us, self._axis.at_us, float(size))

    def _purge_end(self, record: Record) -> None:
        tier, cause = inert(record.text("tier"), 40), inert(record.text("cause"), 20)
        known = self.claims.get((tier, cause))
        if known is None:
            if len(self.claims) >= _KEPT_NAMES:
                return
            known = ClaimRow(tier=tier, cause=cause, times=0, entries=0, freed_bytes=0)
        self.claims[tier, cause] = ClaimRow(
            tier=tier,
            cause=cause,
            times=known.times + 1,
            entries=known.entries + max(record.number("entries") or 0, 0),
            freed_bytes=known.freed_bytes + max(record.number("freed_bytes") or 0, 0),
        )

    # -- checkpoints -------------------------------------------------------------------------

    def _commit(self, record: Record) -> None:
        if not self._is_counted(record):
            self.counted_saves += 1
        one = checkpoint_of(record, inert(record.text("id"), 80))
        self.saved.append(Seen(self._axis.at_us, one))
        if len(self.saved) > _KEPT_CHECKPOINTS:
            del self.saved[: _KEPT_CHECKPOINTS // 2]

    def _abort(self, _: Record) -> None:
        self.failed_saves += 1


def _bounded(counter: Counter[str], said: str) -> str:
    name = inert(said, 80)
    return name if name in counter or len(counter) < _KEPT_NAMES else "other"


_HANDLERS: Final[dict[str, Callable[[AgentFold, Record], Any]]] = {
    "recovery": AgentFold._recovery,
    "run.end": AgentFold._run_end,
    "experiment.begin": AgentFold._experiment_begin,
    "experiment.end": AgentFold._experiment_end,
    "mode": AgentFold._mode,
    "error": AgentFold._error,
    "sample": AgentFold._sample,
    "purge.end": AgentFold._purge_end,
    "checkpoint.commit": AgentFold._commit,
    "checkpoint.abort": AgentFold._abort,
}
