"""Everything that a report is made of, read once: both logs, checkpoints, the run's last snapshot.

Nothing is written. A run whose directory is gone is told of from what its guard wrote down.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import msgspec

from memwatch.analytics.report.agent_fold import AgentFold
from memwatch.analytics.report.build import Sources, report_of
from memwatch.analytics.report.guard_fold import GuardFold
from memwatch.analytics.report.model import Report
from memwatch.cli.status import read_status
from memwatch.config.load import named_profile
from memwatch.config.locations import run_home
from memwatch.config.policy_load import usable_policy
from memwatch.domain.checkpoints import Checkpoint
from memwatch.domain.clock import SystemClock
from memwatch.domain.errors import ConfigError, TargetError
from memwatch.domain.snapshot import Snapshot
from memwatch.ingest.open_run import OpenedRun, open_run
from memwatch.ingest.whole_log import WholeLog
from memwatch.runtime.runs.meta import Meta, read_meta
from memwatch.runtime.runs.one_look import Look
from memwatch.runtime.runs.recovery_file import read_recoveries
from memwatch.runtime.runs.target import resolve, run_key

_RECOVERIES = 500


class Found(NamedTuple):
    """A run, or what is left of one."""

    key: str
    path: Path
    opened: OpenedRun | None
    """None where its directory is gone."""


def find(name: str) -> Found:
    """Return the run that a word means; raises TargetError."""
    try:
        path = resolve(name)
        opened = open_run(path)
    except TargetError:
        meta = _left_of(name)
        if meta is None:
            raise
        return Found(meta.run_key, Path(meta.path), None)
    return Found(run_key(opened.path, opened.manifest.run_id), opened.path, opened)


def _left_of(name: str) -> Meta | None:
    """Return what a guard kept of a run that is gone, by the run's key."""
    if "/" in name:
        return None
    meta = read_meta(run_home(name))
    return meta if meta is not None and meta.run_key == name else None


def read_report(found: Found, since_us: int = 0) -> Report:
    """Return the report of a run from a wall time on."""
    home = run_home(found.key)
    guard = GuardFold(since_us)
    guard_log = WholeLog(home / "wal")
    for record in guard_log.records():
        guard.take(record)
    agent = AgentFold(guard.tallies, since_us)
    opened = found.opened
    agent_log = WholeLog(opened.wal_dir) if opened and opened.foreign is None else None
    for record in agent_log.records() if agent_log else ():
        agent.take(record)
    snapshot = _snapshot(found.path) if opened else None
    rows: tuple[Checkpoint, ...] = ()
    if opened is not None and opened.foreign is not None:
        rows = tuple(reversed(opened.foreign.look(opened.path, None).checkpoints))
    profile = snapshot.run.profile if snapshot else "native"
    try:
        known = named_profile(profile)
    except ConfigError:
        known = named_profile("native")
    book, _ = usable_policy(known, run_dir=found.path if opened else None, run_home=home)
    return report_of(
        Sources(
            run=found.key,
            path=str(found.path),
            agent=agent,
            guard=guard,
            snapshot=snapshot,
            policy=book.of(snapshot.run.phase if snapshot else None),
            past=read_recoveries(home, _RECOVERIES),
            damage=guard_log.faults + (agent_log.faults if agent_log else Counter()),
            first_lsn=(agent_log.first_lsn or 1) if agent_log else 1,
            since_us=since_us,
            now_us=SystemClock().wall_us(),
            rows=rows,
        )
    )


def _snapshot(path: Path) -> Snapshot:
    """Return the run as its guard knows it, or as it is seen by a look."""
    try:
        return msgspec.json.decode(read_status(path), type=Snapshot)
    except msgspec.DecodeError:  # a guard of another version
        return Look(path).snapshot()
