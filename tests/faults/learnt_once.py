"""What guards learnt, held against what happened: nothing twice, missed or changed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from memwatch.domain.intervention import Intervention
from memwatch.domain.record import Record
from memwatch.runtime.runs.recovery_file import read_recoveries
from memwatch.runtime.views.deed_watch import STAGES


class LearntError(AssertionError):
    """Something was counted twice, or not at all."""


def restarts_counted_once(home: Path, told: Iterable[Record], recovered: Sequence[int]) -> None:
    """Hold log and file of guards to it: each holds each restart once.

    `recovered` are the times of the agent's own records of what it recovered.
    """
    logged = [record.members["t_us"] for record in told if record.kind == "restart"]
    filed = [one.t_us for one in read_recoveries(home, 500) if one.kind == "restart"]
    for where, found in (("guard.wal", logged), ("recoveries.jsonl", filed)):
        if Counter(found) != Counter(recovered):
            raise LearntError(f"{where} has restarts {found}, the agent made {recovered}")


def efficacy_told_once(told: Iterable[Record], rows: Sequence[Intervention]) -> None:
    """Hold them to it: each stage of a deed is told once, in order, of the same usage before.

    `rows` are what the last guard knows. A series of purges may begin anew where it went on.
    """
    by_id: dict[str, list[Record]] = defaultdict(list)
    for record in told:
        if record.kind == "efficacy" and record.members.get("count", 1) == 1:
            by_id[record.text("id")].append(record)
    for name, records in by_id.items():
        stages = [STAGES.index(record.members["at"]) for record in records]
        if stages != sorted(set(stages)):
            raise LearntError(f"{name} was told at stages {stages}")
        before = {record.members.get("before") for record in records} - {None}
        if len(before) > 1:
            raise LearntError(f"{name} began at {before}")
    known = Counter(row.id for row in rows)
    twice = [name for name, times in known.items() if times > 1]
    if twice:
        raise LearntError(f"rows stand twice: {twice}")
    lost = [name for name in by_id if name not in known]
    if lost:
        raise LearntError(f"measured and not known any more: {lost}")
