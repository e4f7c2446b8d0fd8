"""Records and faults -> rows of the history's tables. Pure.

No row per put, update, delete or access: their sums per second, tier, experiment and tool go to
`tier_flow`. Everything a log says is bounded here: texts are inert and short, integers fit 64
bits; so no record can make a transaction fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from memwatch.analytics.narrate import SILENT, event_of, event_of_fault
from memwatch.analytics.phases import PhaseChanges
from memwatch.domain.record import Fault, LogName, Record
from memwatch.domain.text import inert
from memwatch.store.decision_rows import KINDS as DECISIONS
from memwatch.store.decision_rows import DecisionValue, decision_row

Row = tuple[DecisionValue, ...]
Place = tuple[LogName, int, int, int, int]
"""Log, segment, lsn, t_us, m_us: how the rows of most tables begin."""
Tools = dict[str, str]
"""Thread ("" for the main one) -> the tool at work in it."""

TABLES = (
    "start",
    "experiment",
    "resource",
    "sample",
    "tier_flow",
    "checkpoint_event",
    "intervention_event",
    "decision",
    "event",
)
"""Tables that records become rows of; a row's values stand in the order of its columns."""

_PUTS, _UPDATES, _DELETES, _BYTES_IN, _BYTES_OUT = range(5)
_FLOW = {
    "put": (_PUTS, _BYTES_IN),
    "update": (_UPDATES, _BYTES_IN),
    "delete": (_DELETES, _BYTES_OUT),
}
_INT64_MAX = (1 << 63) - 1
_MAX_RESOURCES = 1_000  # a log that names a new tier in each sample must not fill our memory
_MAX_TIERS_OF_SAMPLE = 64
_MAX_THREADS = 64
_MAX_METRICS = 2_000
_MAX_SEGMENTS_IN_WORK = 64

_FlowKey = tuple[int, int, Any, Any, str]


class Pending(NamedTuple):
    """Rows that wait to be written; sums become rows late, off the thread that reads logs."""

    rows: dict[str, list[Row]]
    flows: dict[_FlowKey, list[int]]

    def tables(self) -> dict[str, list[Row]]:
        """Return the rows of each table that has some."""
        flows = [_flow_row(key, sums) for key, sums in self.flows.items()]
        return {table: rows for table, rows in (*self.rows.items(), ("tier_flow", flows)) if rows}


class RowFold:
    """Folds records and faults into rows until they are taken.

    Only the agent's log tells of tiers, experiments and checkpoints, only the guard's of the
    process tree: neither can speak for the other. `resources` and `faults` (log, text) are those
    that the history holds already: each is written once.
    """

    MAX_FAULTS = 10_000
    """Faults that are kept: a log that is nothing but damage must not fill the disk."""

    def __init__(
        self,
        resources: Iterable[str] = (),
        faults: Iterable[tuple[str, str]] = (),
    ) -> None:
        self._resources = set(resources)
        self._faults = set(faults)
        self._phases: dict[int, PhaseChanges] = {}
        self.drop()

    @property
    def count(self) -> int:
        """Rows that wait to be taken."""
        return self._written + len(self._flows)

    def drop(self) -> None:
        """Forget what waits."""
        self._rows: dict[str, list[Row]] = {}
        self._flows: dict[_FlowKey, list[int]] = {}
        self._new_resources: set[str] = set()
        self._new_faults: set[tuple[str, str]] = set()
        self._written = 0

    def take(self) -> Pending:
        """Hand over what waits, and begin anew."""
        pending = Pending(self._rows, self._flows)
        self._resources |= self._new_resources
        self._faults |= self._new_faults
        self.drop()
        return pending

    def add(self, log: LogName, segment: int, records: list[Record], tools: Tools) -> None:
        """Fold records of one segment; `tools` is carried from call to call and changed."""
        if log == "guard":
            self._add_guard(segment, records)
            return
        flows = self._flows
        tool = tools.get("", "")
        for record in records:
            flow = _FLOW.get(record.kind)
            if flow is None:
                self._add_agent(segment, record, tools)
                tool = tools.get("", "")
                continue
            members = record.members
            worker = tools.get(_thread(record), "") if "th" in members else tool
            second = record.t_us // 1_000_000
            key = (segment, second, members.get("tier"), members.get("x"), worker)
            try:
                sums = flows.get(key)
            except TypeError:  # a tier or experiment that is a list or an object
                key = (segment, second, None, None, worker)
                sums = flows.get(key)
            if sums is None:
                sums = flows[key] = [0, 0, 0, 0, 0]
            count, volume = flow
            sums[count] += 1
            size = members.get("bytes")
            if type(size) is int and size > 0:
                sums[volume] += size

    def add_fault(self, log: LogName, fault: Fault, t_us: int) -> None:
        """Add the event of something wrong in a log, once: its text names the place."""
        event = event_of_fault(fault, t_us)
        known = len(self._faults) + len(self._new_faults)
        place = (log, event.text)
        if known >= self.MAX_FAULTS or place in self._faults or place in self._new_faults:
            return
        self._new_faults.add(place)
        told = (event.kind, event.severity, event.origin, event.text)
        self._put("event", (log, fault.segment, None, t_us, None, *told))

    def _add_agent(self, segment: int, record: Record, tools: Tools) -> None:
        kind = record.kind
        if kind == "tool.begin":
            if len(tools) < _MAX_THREADS:
                tools[_thread(record)] = inert(record.text("name"), 60)
        elif kind == "tool.end":
            tools.pop(_thread(record), None)
        else:
            place: Place = ("agent", segment, record.lsn, record.t_us, record.m_us)
            teller = _ROWS_OF.get(kind)
            if teller is not None:
                teller(self, place, record)
            if kind == "experiment.begin":
                self._add_phase(place, record)
            self._add_event(place, record)

    def _add_guard(self, segment: int, records: list[Record]) -> None:
        for record in records:
            place: Place = ("guard", segment, record.lsn, record.t_us, record.m_us)
            if record.kind == "probe":
                self._probe(place, record)
            elif record.kind in DECISIONS:
                self._put("decision", (*place, *decision_row(record)))
            self._add_event(place, record)

    def _add_event(self, place: Place, record: Record) -> None:
        if record.kind not in SILENT:
            event = event_of(record)
            if event is not None:
                self._put("event", (*place, event.kind, event.severity, place[0], event.text))

    def _add_phase(self, place: Place, record: Record) -> None:
        """Add the event of a new phase: within a segment only, for they come in any order."""
        phases = self._phases.setdefault(place[1], PhaseChanges())
        if len(self._phases) > _MAX_SEGMENTS_IN_WORK:
            del self._phases[next(iter(self._phases))]
        event = phases.event_of(record)
        if event is not None:
            self._put("event", (*place, event.kind, event.severity, place[0], event.text))

    def _put(self, table: str, row: Row) -> None:
        self._rows.setdefault(table, []).append(row)
        self._written += 1

    def _sample(
        self,
        place: Place,
        resource: str,
        used: int | None,
        limit: int | None = None,
        tier: dict[str, Any] | None = None,
    ) -> None:
        if resource not in self._resources and resource not in self._new_resources:
            if len(self._resources) + len(self._new_resources) >= _MAX_RESOURCES:
                return
            self._new_resources.add(resource)
            unit = "count" if resource == "processes" else "bytes"
            self._put("resource", (resource, unit, place[3]))
        entries, tokens = (_int(tier, "entries"), _int(tier, "tokens")) if tier else (None, None)
        log, segment, _, t_us, m_us = place
        row = (log, segment, t_us, m_us, resource, used, limit, entries, tokens, None, None)
        self._put("sample", row)

    def _tiers(self, place: Place, record: Record) -> None:
        """`sample` of the agent: what each tier holds."""
        tiers = record.members.get("tiers")
        if not isinstance(tiers, dict):
            return
        for name, tier in list(tiers.items())[:_MAX_TIERS_OF_SAMPLE]:
            if isinstance(tier, dict):
                limit = _int(tier, "limit")
                self._sample(place, f"tier:{inert(name, 60)}", _int(tier, "bytes"), limit, tier)

    def _probe(self, place: Place, record: Record) -> None:
        """`probe` of the guard: the process tree, and the disk when it was measured."""
        members = record.members
        rss, swap = _int(members, "rss_bytes"), _int(members, "swap_bytes")
        if rss is not None and _int(members, "processes") != 0:  # a tree that is gone uses nothing
            used = min(rss + (swap or 0), _INT64_MAX)
            self._sample(place, "memory", used, _int(members, "limit_bytes"))
        for resource, name in (("unaccounted", "unaccounted_bytes"), ("processes", "processes")):
            value = _int(members, name)
            if value is not None:
                self._sample(place, resource, value)
        disk = members.get("disk")
        if isinstance(disk, dict):
            total = _int(disk, "total_bytes")
            self._sample(place, "disk_free", _int(disk, "free_bytes"), total)

    def _start(self, place: Place, record: Record) -> None:
        members = record.members
        limits = members.get("limits")
        memory = _int(limits, "memory_bytes") if isinstance(limits, dict) else None
        row = (
            *_texts(members, "start_id", "boot", "agent", "version"),
            _int(members, "pid"),
            memory,
            *_texts(members, "status", "reason"),
        )
        self._put("start", (*place, _what(record), *row))

    def _experiment(self, place: Place, record: Record) -> None:
        members = record.members
        number, took = _int(members, "x"), _int(members, "duration_us")
        texts = _texts(members, "title", "phase", "status")
        metrics = _json(members.get("metrics"))
        self._put("experiment", (*place, _what(record), number, *texts, took, metrics))

    def _checkpoint(self, place: Place, record: Record) -> None:
        members = record.members
        numbers = ("first_lsn", "last_lsn", "bytes", "entries", "duration_us", "stall_us")
        row = (*_texts(members, "id", "kind", "base"), *(_int(members, name) for name in numbers))
        self._put("checkpoint_event", (*place, _what(record), *row, *_texts(members, "reason")))

    def _purge(self, place: Place, record: Record) -> None:
        members = record.members
        numbers = ("entries", "freed_bytes", "persisted", "dropped", "duration_us")
        texts = _texts(members, "tier", "how", "cause")
        row = (*place, _what(record), "purge", *texts, *(_int(members, name) for name in numbers))
        self._put("intervention_event", row)
        freed = _int(members, "freed_bytes")
        if freed and freed > 0 and record.kind == "purge.end":
            key = (place[1], record.t_us // 1_000_000, texts[0], _int(members, "x"), "")
            self._flows.setdefault(key, [0, 0, 0, 0, 0])[_BYTES_OUT] += freed


_ROWS_OF: dict[str, Callable[[RowFold, Place, Record], None]] = {
    "sample": RowFold._tiers,
    "run.begin": RowFold._start,
    "run.end": RowFold._start,
    "experiment.begin": RowFold._experiment,
    "experiment.end": RowFold._experiment,
    "checkpoint.begin": RowFold._checkpoint,
    "checkpoint.commit": RowFold._checkpoint,
    "checkpoint.abort": RowFold._checkpoint,
    "purge.begin": RowFold._purge,
    "purge.end": RowFold._purge,
}


def _flow_row(key: _FlowKey, sums: list[int]) -> Row:
    segment, second, tier, experiment, tool = key
    name = _tier_name(tier) if isinstance(tier, str) else None
    number = _bounded(experiment) if type(experiment) is int else None
    figures = sums if max(sums) <= _INT64_MAX else map(_bounded, sums)
    return ("agent", segment, second, name, number, tool, *figures)


@lru_cache(maxsize=64)
def _tier_name(tier: str) -> str:
    return inert(tier, 60)


def _what(record: Record) -> str:
    """Return what happened: the part of the kind behind its dot."""
    return record.kind.rpartition(".")[2]


def _thread(record: Record) -> str:
    return inert(record.text("th"), 60)


def _texts(members: dict[str, Any], *names: str) -> Row:
    found = (members.get(name) for name in names)
    return tuple(inert(text, 120) if isinstance(text, str) else None for text in found)


def _int(members: dict[str, Any], name: str) -> int | None:
    value = members.get(name)
    return _bounded(value) if type(value) is int else None


def _bounded(value: int) -> int:
    return max(-_INT64_MAX, min(value, _INT64_MAX))


def _json(value: object) -> str | None:
    if not isinstance(value, dict):
        return None
    text = msgspec.json.encode(value).decode()
    return inert(text, _MAX_METRICS) if len(text) <= _MAX_METRICS else None
