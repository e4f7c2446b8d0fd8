"""Every kind of deed says what it did to each resource, and what else may explain it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from memwatch.domain.command import CommandInfo, CommandState
from memwatch.domain.intervention import Intervention, ResourceEffect
from memwatch.domain.sample import DiskSample
from memwatch.domain.snapshot import Limit
from tests.builders import T0_US, tiers
from tests.runtime.watched import BOOT, MB, S, Watched


class Night(Watched):
    """A run with a tree, tiers and experiments, second by second."""

    def __init__(self) -> None:
        super().__init__()
        self.begin()
        self.used, self.tokens = 100 * MB, 9_000
        self.sizes = {"recent": 30 * MB, "history": 20 * MB}

    def pass_s(self, seconds: int, grow: int = 0) -> None:
        for _ in range(seconds):
            self.clock.advance_s(1)
            self.used += grow
            told = tiers(**self.sizes)
            told["context"] = {"entries": 3, "bytes": self.tokens * 4, "tokens": self.tokens}
            self.say("sample", tiers=told)
            self.look(self.used)

    def experiment(self, seconds: int, status: str = "kept", phase: str = "") -> None:
        self.say("experiment.begin", x=1, phase=phase)
        self.pass_s(seconds)
        self.say("experiment.end", x=1, status=status, duration_us=seconds * S)

    def rows(self, **facts: Any) -> list[Intervention]:
        self.snapshot(**facts)
        return self.builder.interventions.rows(200)

    def row(self, **facts: Any) -> Intervention:
        (found,) = self.rows(**facts)
        return found

    def ask(self, op: str, state: str = "done", **members: Any) -> None:
        """Let the agent log a request from the moment it took it."""
        name = members.pop("id", f"c-{op}")
        self.say("command", id=name, op=op, state="accepted", origin="operator")
        self.pass_s(1)
        self.say("command", id=name, op=op, state=state, origin="operator", **members)


def by_resource(row: Intervention) -> dict[str, ResourceEffect]:
    return {one.resource: one for one in row.effects}


def verdicts(row: Intervention) -> dict[str, str]:
    return {one.resource: one.verdict for one in row.effects}


def info(op: str, state: str = "done", **members: Any) -> CommandInfo:
    told: dict[str, Any] = {"id": f"c-{op}", "asked_us": T0_US, "changed_us": T0_US + S, **members}
    return CommandInfo(op=op, state=cast("CommandState", state), **told)


def test_a_purge_that_frees_the_tier_but_not_the_process_says_both() -> None:
    night = Night()
    night.pass_s(40)
    night.sizes["recent"] = 10 * MB
    night.say("purge.end", tier="recent", cause="share_cap", how="oldest", freed_bytes=20 * MB)
    night.pass_s(15)
    row = night.row()
    assert verdicts(row) == {"tier:recent": "effective", "memory": "none", "unaccounted": "worse"}
    assert (row.verdict, row.how, row.freed_bytes, row.differs) == (
        "effective",
        "oldest",
        20 * MB,
        False,
    )
    assert by_resource(row)["unaccounted"].freed == -20 * MB, "it moved there"
    assert night.snapshot().interventions[0].effects[0].resource == "tier:recent"


def test_a_claim_that_was_not_measured_differs() -> None:
    night = Night()
    night.pass_s(40)
    night.say("purge.end", tier="recent", cause="share_cap", freed_bytes=20 * MB)
    night.pass_s(15)
    row = night.row()
    assert (row.verdict, row.claimed, row.differs) == ("none", 20 * MB, True)


def test_a_compaction_frees_tokens_and_no_memory_of_the_process() -> None:
    night = Night()
    night.pass_s(40)
    night.tokens = 3_000
    night.say("context.compact", kind="auto", before_tokens=9_000, after_tokens=3_000)
    night.pass_s(15)
    row = night.row()
    assert (row.action, row.tier, row.how, row.origin) == ("compact", "context", "auto", "agent")
    tokens = by_resource(row)["tokens:context"]
    assert (tokens.unit, tokens.before, tokens.freed, tokens.verdict) == (
        "tokens",
        9_000,
        6_000,
        "effective",
    )
    assert row.effects[0] == tokens
    assert by_resource(row)["memory"].verdict == "none"
    assert (row.claimed, row.differs) == (6_000, False)


def test_a_compaction_that_was_asked_for_is_one_row() -> None:
    night = Night()
    night.pass_s(40)
    night.say("command", id="k", op="compact", state="accepted")
    night.say("context.compact", kind="manual", before_tokens=9_000, after_tokens=3_000)
    night.tokens = 3_000
    night.say("command", id="k", op="compact", state="done")
    night.pass_s(15)
    row = night.row()
    assert (row.id, row.verdict, row.claimed) == ("k", "effective", 6_000)
    assert row.effects[0].resource == "tokens:context"


def test_a_reclaim_says_its_stages_apart() -> None:
    night = Night()
    night.pass_s(40)
    steps = [
        {"name": "cache held", "freed_bytes": 15 * MB, "duration_us": 2000},
        {"name": "garbage", "freed_bytes": 0, "duration_us": 40_000},
        {"name": "allocator", "freed_bytes": -4096, "duration_us": 9, "error": "no\x1b[31m"},
        "no stage",
        {"name": 7, "freed_bytes": "many"},
    ]
    night.used = 80 * MB
    night.ask("reclaim", result={"freed_bytes": 15 * MB, "steps": steps})
    night.pass_s(15)
    row = night.row()
    assert [(one.name, one.freed_bytes, one.duration_s) for one in row.stages] == [
        ("cache held", 15 * MB, 0.002),
        ("garbage", 0, 0.04),
        ("allocator", -4096, 9e-6),
        ("7", None, None),
    ]
    assert row.stages[2].error == "no\N{REPLACEMENT CHARACTER}[31m"
    assert (row.freed_bytes, row.verdict, row.differs) == (20 * MB, "effective", True)
    assert row.duration_s == 1.0, "from accepted to done, by the agent's own clock"


def test_a_restart_frees_memory_and_says_why_it_was() -> None:
    night = Night()
    night.pass_s(40)
    night.clock.advance_s(3)
    night.used, night.sizes = 30 * MB, {"recent": 25 * MB}
    night.say("run.begin", start_id="s2", boot=BOOT, pid=4242)
    night.pass_s(15)
    row = night.row()
    assert (row.action, row.why, row.duration_s) == ("restart", "after a crash", 3.0)
    assert verdicts(row) == {
        "memory": "effective",
        "unaccounted": "effective",
        "tier:context": "none",
        "tier:history": "unmeasured",
        "tier:recent": "effective",
    }
    assert by_resource(row)["memory"].freed == 70 * MB
    night.say("run.end", status="done")
    night.say("run.begin", start_id="s3", boot=BOOT, pid=4242)
    assert [one.why for one in night.rows()] == ["ended and begun again", "after a crash"]


def test_a_pause_costs_the_time_in_which_no_experiment_could_begin() -> None:
    night = Night()
    night.pass_s(40)
    asked_us = night.clock.wall_us()
    night.say("mode", mode="draining", cause="pause by engine")
    night.pass_s(5)
    night.say("mode", mode="paused", cause="pause by engine")
    ledger = (info("pause", asked_us=asked_us, changed_us=asked_us + 5 * S, plan="p1"),)
    night.pass_s(20)
    assert night.row(commands=ledger).pause_s == 25.0
    night.pass_s(5)
    night.say("mode", mode="running")
    night.pass_s(5)
    row = night.row(commands=ledger)
    assert (row.action, row.plan, row.pause_s, row.verdict) == ("pause", "p1", 30.0, "none")
    assert [one.resource for one in row.effects] == ["memory"]


def test_what_was_lost_or_refused_did_nothing_and_is_not_measured() -> None:
    night = Night()
    night.pass_s(40)
    ledger = (info("reclaim", "refused", detail="busy"), info("pause", "asked", id="p"))
    told = {row.id: (row.verdict, row.effects, row.why) for row in night.rows(commands=ledger)}
    assert told == {"c-reclaim": ("unmeasured", (), "busy"), "p": ("pending", (), "")}


def test_a_request_of_another_guard_is_told_by_the_agents_log() -> None:
    night = Night()
    night.pass_s(40)
    night.ask("abort_experiment", result={"experiment": 3})
    night.ask("reclaim", state="failed", id="c-2", detail="no glibc")
    night.ask("purge", id="c-3", result={"freed_bytes": 1})
    found = {row.id: (row.action, row.state, row.origin) for row in night.rows()}
    assert found == {
        "c-abort_experiment": ("abort-experiment", "done", "operator"),
        "c-2": ("reclaim", "failed", "operator"),
    }, "the purge has its own row where it did something"


def test_a_tier_that_keeps_less_is_what_retain_is_about() -> None:
    night = Night()
    night.pass_s(40)
    night.say("command", id="r", op="retain", state="accepted", origin="engine")
    night.say("retention", tier="history", what="asked", old={"count": 50}, new={"count": 5})
    night.sizes["history"] = 5 * MB
    night.say("command", id="r", op="retain", state="done", origin="engine")
    night.pass_s(15)
    row = night.row()
    assert (row.tier, row.effects[0].resource, row.freed_bytes) == (
        "history",
        "tier:history",
        15 * MB,
    )


def test_a_checkpoint_frees_no_memory_and_says_what_it_took_on_disk() -> None:
    night = Night()

    def disk(size: int) -> None:
        night.ring.take_disk(
            DiskSample(t_us=0, total_bytes=900 * MB, free_bytes=400 * MB, run_bytes=size)
        )

    for second in range(40):
        disk(100 * MB)
        night.pass_s(1)
        if second == 25:
            night.say("checkpoint.commit", id="f", kind="full", bytes=30 * MB, stall_us=200_000)
    for _ in range(14):
        disk(130 * MB)
        night.pass_s(1)
    row = night.row()
    assert (row.verdict, row.freed_bytes, row.pause_s) == ("effective", 0.0, 0.2), "it is there"
    assert verdicts(row)["memory"] == "none"
    assert not row.differs, "what it wrote is no claim to have freed memory"
    night.pass_s(1)


def test_what_else_happened_is_named() -> None:
    night = Night()
    night.experiment(20, phase="exploration")
    night.experiment(10, phase="validation")
    night.snapshot(limits=(Limit(name="host", bytes=900 * MB),))
    night.say("purge.end", tier="history", cause="share_cap", freed_bytes=1)
    night.pass_s(5, grow=2 * MB)
    night.snapshot(limits=(Limit(name="host", bytes=800 * MB),))
    night.say("purge.end", tier="recent", cause="share_cap", freed_bytes=1)
    night.pass_s(15)
    recent, history = night.rows(limits=(Limit(name="host", bytes=800 * MB),))
    assert recent.tier == "recent"
    assert set(recent.confounders) >= {"purge history 5.0s before", "phase validation 15s before"}
    assert "limit 800M, was 900M meanwhile" in recent.confounders
    assert "purge recent 5.0s after" in history.confounders
    assert verdicts(recent)["memory"] == "unmeasured", "the other one may have changed it"
    assert not recent.overlaps, "its tier is its own"


def test_the_next_three_experiments_are_held_against_the_three_before() -> None:
    night = Night()
    for status in ("kept", "failed", "kept"):
        night.experiment(10, status)
    night.say("purge.end", tier="recent", cause="share_cap", freed_bytes=1)
    night.snapshot()
    for _ in range(2):
        night.experiment(4)
    found = night.row().experiments
    assert found is not None
    assert (found.before_s, found.before_ok, found.after, found.after_s) == (10.0, 2, 2, None)
    night.experiment(4)
    night.pass_s(6)
    found = night.row().experiments
    assert found is not None
    assert (found.after, found.after_s, found.after_ok) == (3, 4.0, 3)


def test_of_a_run_that_is_over_nothing_stays_pending() -> None:
    night = Night()
    night.pass_s(40)
    night.say("purge.end", tier="recent", cause="share_cap", freed_bytes=20 * MB)
    night.pass_s(3)
    assert night.row().verdict == "pending"
    night.say("run.end", status="done")
    (row,) = night.rows(alive=False)
    assert row.verdict == "pending", "it may have begun again, and nobody saw it yet"
    night.clock.advance_s(20)
    (row,) = night.rows(alive=False)
    assert (row.verdict, row.after_10s, row.freed_bytes) == ("unmeasured", None, None)


@pytest.mark.parametrize("gap_s", [0, 60])
def test_growth_and_gaps_before_are_named(gap_s: int) -> None:
    night = Night()
    night.pass_s(20, grow=MB)
    night.clock.advance_s(gap_s)
    night.pass_s(10, grow=MB)
    night.ask("reclaim")
    night.pass_s(15)
    row = night.row()
    assert any("it grew by 60M/min before" in text for text in row.confounders)
    assert ("a gap in the recording before" in row.confounders) == bool(gap_s)
