"""The guard's own log folded for a report, record by record in their order. Bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from memwatch.analytics.report.course import Axis, Course, Dwell
from memwatch.analytics.report.model import AlertRow, Estimate, Gap
from memwatch.analytics.since import Tally
from memwatch.domain.intervention import Intervention
from memwatch.domain.level import LEVELS
from memwatch.domain.record import Record, figure
from memwatch.domain.recovery import PastRecovery, Span
from memwatch.domain.text import inert

_KEPT_PLANS = _KEPT_DEEDS = _KEPT_REQUESTS = 5000
_KEPT_ALERTS, _KEPT_GAPS, _KEPT_ROWS = 200, 100, 200
_LEAST_GAP_US = 5_000_000
_ESTIMATES = 12
"""Spans of time that the estimates are told by."""
_HOLDS: Final = {
    "pause": "paused",
    "read_only": "read_only",
    "resume": "running",
    "read_write": "running",
}
_GONE: Final = ("crashed", "killed")


class Death(NamedTuple):
    """The agent's process went without a word."""

    t_us: int
    down_s: float | None = None
    """Until it was there again; None where it was not."""


class GuardFold:
    """Takes records; the figures stand in its members."""

    def __init__(self, since_us: int = 0) -> None:
        self._since_us = since_us
        self._began = False
        self._axis = Axis()
        self.first_us = self.last_us = 0
        self.from_us = 0
        self.modes = Dwell()
        self.levels = Dwell("normal")
        self.holds = Dwell("running")
        """What the agent was asked to be, and said it was."""
        self.deaths: list[Death] = []
        self.memory, self.unaccounted = Course(), Course()
        self.limit: int | None = None
        self.limit_name = ""
        self.plans: dict[str, Record] = {}
        """The newest word of each."""
        self.deeds: dict[str, Intervention] = {}
        self.requests: dict[str, tuple[str, str]] = {}
        """Of people: operation and state by id."""
        self.estimates: list[Estimate] = []
        self.restarts: list[PastRecovery] = []
        self.alerts: list[AlertRow] = []
        self.alert_count = 0
        self.gaps: list[Gap] = []
        self.stores: Counter[str] = Counter()
        self._before_us, self._last_kind = 0, ""
        """Of the last two records: wall time of the one, kind of the other."""
        self._tally: Tally | None = None
        self._tallies: list[Tally] = []

    @property
    def seconds(self) -> float:
        """Time that a guard was there."""
        return (self._axis.at_us - self.from_us) / 1e6

    @property
    def tallies(self) -> list[Tally]:
        """What was counted of the agent's log, span after span; those of the time told of."""
        found = [*self._tallies, *([self._tally] if self._tally else [])]
        return [one for one in found if one.from_us >= self._since_us]

    def take(self, record: Record) -> None:
        """Take the next record."""
        begins = record.kind == "guard.begin"
        if begins:
            self._absent(record)
        self._axis.move(record, anew=begins)
        if not self._began and record.t_us >= self._since_us:
            self._begin(record.t_us, self._axis.at(self._since_us, record))
        self._before_us, self.last_us, self._last_kind = self.last_us, record.t_us, record.kind
        handler = _HANDLERS.get(record.kind)
        if handler is not None:
            handler(self, record)

    def close(self) -> None:
        """Count the time up to the last record; where all is older, nothing is told."""
        if not self._began:
            self._begin(0, self._axis.at_us)
            self.last_us = 0
        for dwell in (self.modes, self.levels, self.holds):
            dwell.pass_by(self._axis.at_us)

    def _begin(self, t_us: int, at_us: int) -> None:
        """Forget all but what is so: here begins what is told of."""
        fresh = GuardFold()
        standing = [one for one in self.alerts if one.stands]
        kept = {
            "_since_us",
            "_axis",
            "_before_us",
            "_last_kind",
            "last_us",
            "modes",
            "levels",
            "holds",
            "limit",
            "limit_name",
            "_tally",
            "_tallies",
        }
        for name in vars(fresh).keys() - kept:
            setattr(self, name, getattr(fresh, name))
        self.alerts, self.alert_count = standing, len(standing)
        self._began = True
        self.first_us, self.from_us = t_us, at_us
        for dwell in (self.modes, self.levels, self.holds):
            dwell.begin(at_us)

    def _absent(self, record: Record) -> None:
        """Note the time between two guards: the first word of one is what it counted, then this."""
        counted = self._last_kind == "viewer"
        if counted:
            self._axis.step_back()
        from_us = self._before_us if counted else self.last_us
        if from_us and record.t_us - from_us >= _LEAST_GAP_US and len(self.gaps) < _KEPT_GAPS:
            self.gaps.append(Gap(from_us=from_us, until_us=record.t_us, why="no guard was there"))

    # -- the guard itself --------------------------------------------------------------------

    def _mode(self, record: Record) -> None:
        self.modes.enter(inert(record.text("mode"), 10), self._axis.at_us)

    def _viewer(self, record: Record) -> None:
        """Keep what was counted: of each span its newest word."""
        try:
            tally = msgspec.convert(record.members.get("known"), Tally)
        except msgspec.ValidationError:
            return
        if self._tally is not None and tally.from_us != self._tally.from_us:
            self._tallies.append(self._tally)
        self._tally = tally

    def _gap(self, record: Record) -> None:
        from_us, until_us = record.number("from_us"), record.number("until_us")
        if from_us is not None and until_us is not None and len(self.gaps) < _KEPT_GAPS:
            self.gaps.append(Gap(from_us=from_us, until_us=until_us, why=inert(record.text("why"))))

    # -- what it measured --------------------------------------------------------------------

    def _probe(self, record: Record) -> None:
        at_us = self._axis.at_us
        rss, swap = record.number("rss_bytes"), record.number("swap_bytes")
        limit = record.number("limit_bytes")
        if limit is not None and limit > 0:
            self.limit, self.limit_name = limit, inert(record.text("limit_name"), 60)
        if record.members.get("alive") is False:
            self.holds.enter("running", at_us)
            self.levels.enter("", at_us)
            return
        if not self.levels.state:
            self.levels.enter("normal", at_us)
        if rss is not None:
            self.memory.take(record.t_us, at_us, float(rss + (swap or 0)))
        unaccounted = record.number("unaccounted_bytes")
        if unaccounted is not None:
            self.unaccounted.take(record.t_us, at_us, float(unaccounted))

    def _level(self, record: Record) -> None:
        level = record.text("level")
        if level in LEVELS and (record.text("resource") or "memory") == "memory":
            self.levels.enter(level, self._axis.at_us)

    def _estimate(self, record: Record) -> None:
        """Keep the worst of each of a few spans of time: neighbours give way."""
        said = [figure(record.members.get(name)) for name in ("low_s", "likely_s", "high_s")]
        low, likely, high = said
        if low is None or likely is None or high is None:
            return
        rto = Span(low=float(low), likely=float(likely), high=float(high))
        grade = inert(record.text("grade"), 10)
        self.estimates.append(Estimate(t_us=record.t_us, rto_s=rto, grade=grade))
        if len(self.estimates) > 2 * _ESTIMATES:
            pairs = zip(self.estimates[::2], self.estimates[1::2], strict=False)
            odd = self.estimates[-1:] if len(self.estimates) % 2 else []
            self.estimates = [max(pair, key=lambda one: one.rto_s.likely) for pair in pairs] + odd

    def _restart(self, record: Record) -> None:
        try:
            done = msgspec.convert(record.members, PastRecovery)
        except msgspec.ValidationError:
            return
        self.restarts = [*self.restarts, done][-_KEPT_ROWS:]

    # -- what it did -------------------------------------------------------------------------

    def _plan(self, record: Record) -> None:
        name = inert(record.text("id"), 80)
        if name in self.plans or len(self.plans) < _KEPT_PLANS:
            self.plans[name] = record

    def _efficacy(self, record: Record) -> None:
        try:
            one = msgspec.convert(record.members, Intervention)
        except msgspec.ValidationError:
            return
        if one.id in self.deeds or len(self.deeds) < _KEPT_DEEDS:
            self.deeds[one.id] = one

    def _request(self, record: Record) -> None:
        name, state = inert(record.text("id"), 80), inert(record.text("state"), 12)
        if state == "done" and record.text("op") in _HOLDS:
            self.holds.enter(_HOLDS[record.text("op")], self._axis.at_us)
        if record.text("origin") != "operator" or record.members.get("dry_run") is True:
            return
        if name in self.requests or len(self.requests) < _KEPT_REQUESTS:
            self.requests[name] = inert(record.text("op"), 30), state

    def _alert(self, record: Record) -> None:
        key, state = inert(record.text("key"), 80), record.text("state")
        if state in ("raised", "stands"):
            self._raised(record, key, state)
            return
        standing = next(
            (n for n, it in enumerate(self.alerts) if it.key == key and it.stands), None
        )
        if standing is None:
            return
        lasted_us = record.number("lasted_us")
        if key in _GONE and self.deaths and lasted_us is not None:
            self.deaths[-1] = self.deaths[-1]._replace(down_s=max(lasted_us, 0) / 1e6)
        moot = record.members.get("moot") is True
        known = self.alerts[standing]
        self.alerts[standing] = msgspec.structs.replace(
            known,
            stands=False,
            lasted_s=None if moot or lasted_us is None else max(lasted_us, 0) / 1e6,
        )

    def _raised(self, record: Record, key: str, state: str) -> None:
        stands = any(it.key == key and it.stands for it in self.alerts)
        if stands and state == "stands":
            return
        self.alert_count += state == "raised"
        if key in _GONE and state == "raised" and len(self.deaths) < _KEPT_ROWS:
            self.deaths.append(Death(record.t_us))
        row = AlertRow(
            t_us=record.number("raised_us") or record.t_us,
            key=key,
            severity=inert(record.text("severity"), 10),
            text=inert(record.text("text"), 160),
            stands=True,
        )
        rest = [it for it in self.alerts if not (it.key == key and it.stands)]
        self.alerts = [*rest, row][-_KEPT_ALERTS:]

    def _store(self, record: Record) -> None:
        event = record.text("event")
        if event in ("committed", "incomplete", "deleted"):
            self.stores[event] += 1


_HANDLERS: Final[dict[str, Callable[[GuardFold, Record], Any]]] = {
    "guard.begin": GuardFold._mode,
    "engine.mode": GuardFold._mode,
    "viewer": GuardFold._viewer,
    "gap": GuardFold._gap,
    "probe": GuardFold._probe,
    "level": GuardFold._level,
    "estimate": GuardFold._estimate,
    "restart": GuardFold._restart,
    "plan": GuardFold._plan,
    "efficacy": GuardFold._efficacy,
    "intervention": GuardFold._request,
    "alert": GuardFold._alert,
    "store": GuardFold._store,
}
