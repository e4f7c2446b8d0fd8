"""A night as two logs tell it, by hand: everything that a report speaks of happens once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memwatch.analytics.report.agent_fold import AgentFold
from memwatch.analytics.report.build import Sources, report_of
from memwatch.analytics.report.guard_fold import GuardFold
from memwatch.analytics.report.model import Report
from memwatch.config.policy import Policy
from memwatch.domain.record import Record
from memwatch.domain.recovery import Recovery, Span
from memwatch.domain.snapshot import GuardInfo, RunInfo, RunState, Snapshot
from tests.builders import T0_US, record

MB = 1_000_000


class Log:
    """Numbers records as a writer does."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def say(self, kind: str, at_s: float, /, **members: Any) -> None:
        self.records.append(record(len(self.records) + 1, kind, at_s, **members))


def agent_log() -> Log:
    """An hour: 4 experiments, a death at 2000 s in the fifth, two checkpoints, a purge."""
    log = Log()
    log.say("run.begin", 0, agent="searcher", pid=7)
    for number in range(1, 5):
        log.say("experiment.begin", 400 * number, x=number)
        status = "kept" if number % 2 else "discarded"
        log.say("sample", 400 * number + 10, process={"rss_bytes": 100 * MB}, tiers=_tiers(number))
        log.say(
            "experiment.end",
            400 * number + 100,
            x=number,
            status=status,
            duration_us=100_000_000,
            metrics={"best": 0.5 * number},
        )
    log.say(
        "checkpoint.commit", 1750, id="full-1", kind="full", bytes=5 * MB, duration_us=2_000_000
    )
    log.say("purge.end", 1760, tier="workspace", cause="engine", entries=3, freed_bytes=4 * MB)
    log.say("experiment.begin", 1900, x=5)
    log.say("note", 2000, text="the last word")
    log.say("run.begin", 2030, agent="searcher", pid=8)
    log.say("recovery", 2031, full="full-1", deltas=2, records=9, duration_us=500_000, lost=[])
    log.say("mode", 2100, mode="paused")
    log.say("mode", 2160, mode="running")
    log.say("checkpoint.abort", 2200, id="delta-2", kind="incremental", reason="disk full")
    log.say("error", 2300, kind="oom", message="it was close")
    log.say("run.end", 3600, status="done")
    return log


def _tiers(number: int) -> dict[str, Any]:
    return {"workspace": {"entries": number, "bytes": number * 10 * MB}}


def guard_log() -> Log:
    """The same hour: warn twice, intervene once, plans, an alert, a gap of 100 s."""
    log = Log()
    log.say("guard.begin", 0, mode="shadow")
    log.say("engine.mode", 100, mode="act")
    for at_s, used in ((10, 100), (600, 640), (900, 700), (1500, 300), (3590, 320)):
        log.say(
            "probe",
            at_s,
            alive=True,
            rss_bytes=used * MB,
            swap_bytes=0,
            unaccounted_bytes=(used - 50) * MB,
            limit_bytes=1000 * MB,
            limit_name="policy",
        )
        if used == 640:
            log.say("level", 600, level="warn", resource="memory")
        if used == 700:
            log.say("level", 900, level="intervene", resource="memory")
            log.say("level", 960, level="warn", resource="memory")
            log.say("level", 1000, level="intervene", resource="tier:recent")
            log.say("level", 1200, level="normal", resource="memory")
    say_plans(log)
    log.say("alert", 905, key="memory", state="raised", severity="warning", text="memory intervene")
    log.say("alert", 960, key="memory", state="cleared", lasted_us=55_000_000)
    log.say("intervention", 1300, id="c1", op="purge", state="done", origin="operator")
    log.say(
        "gap", 2500, from_us=T0_US + 2_400_000_000, until_us=T0_US + 2_500_000_000, why="killed"
    )
    log.say("estimate", 1000, low_s=40.0, likely_s=50.0, high_s=60.0, grade="watch")
    log.say("estimate", 3000, low_s=8.0, likely_s=10.0, high_s=12.0, grade="good")
    log.records.sort(key=lambda one: one.t_us)
    return log


def say_plans(log: Log) -> None:
    """Three plans of warn without effect, three of its escalation that helped."""
    for place in range(3):
        at_s = 610.0 + 60 * place
        for rule, effect, after in (
            ("levels.warn", "none", 640),
            ("levels.warn.escalate", "effective", 500),
        ):
            log.say(
                "plan",
                at_s,
                id=f"{rule}-{place}",
                level="warn",
                rule=rule,
                state="done",
                effect=effect,
                steps=[{"op": "purge", "state": "done"}],
                before_bytes=640.0 * MB,
                after_bytes=float(after * MB),
            )


def snapshot(state: RunState = "ended", **members: Any) -> Snapshot:
    run = RunInfo(
        id="night-7", path="/r", agent="searcher", profile="demo", host="gpu01", pid=8, state=state
    )
    recovery = Recovery(rto_s=Span(low=8, likely=10, high=12), grade="good")
    known = {"seq": 1, "t_us": T0_US, "run": run, "guard": GuardInfo(), "recovery": recovery}
    return Snapshot(**{**known, **members})


def told(
    agent: Iterable[Record], guard: Iterable[Record], since_s: float | None = None, **more: Any
) -> Report:
    """Fold both logs, the guard's first, and return the report."""
    since_us = 0 if since_s is None else T0_US + round(since_s * 1e6)
    of_guard = GuardFold(since_us)
    for one in guard:
        of_guard.take(one)
    of_agent = AgentFold(of_guard.tallies, since_us)
    for one in agent:
        of_agent.take(one)
    known = {"snapshot": snapshot(), "policy": Policy(), "since_us": since_us}
    known |= {"now_us": T0_US + 3_700_000_000, "run": "night-7", "path": "/runs/night-7"}
    return report_of(Sources(**{**known, **more, "agent": of_agent, "guard": of_guard}))
