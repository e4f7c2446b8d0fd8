"""Advice comes from what was measured, with its figures; each value it names is one that loads."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from memwatch.analytics.advice import MOST, advise
from memwatch.config.policy import CrashBudget, Pause, Policy
from memwatch.config.policy_edit import with_values
from memwatch.domain.checkpoints import Bloat, Checkpoints, CheckpointStats, Prune
from memwatch.domain.intervention import Advice, Intervention, ResourceEffect
from memwatch.domain.recovery import Recovery, RecoveryBudget, RecoveryTerm, Span
from memwatch.domain.snapshot import Limit, Limits, Resource
from tests.builders import T0_US
from tests.config.layers import some_layers

MB = 1_000_000
LIMITS = Limits(binding=Limit(name="policy", bytes=1000 * MB))
WARN = Resource(name="memory", used=700 * MB, limit=1000 * MB, share=0.7, level="warn")
"""150 MB over the end of warn."""


def done(
    action: str, freed_mb: float | None, took_s: float = 1.0, verdict: str = "", **members: Any
) -> Intervention:
    """Return an intervention that freed so much of the tree's memory, and its tier as much."""
    freed = None if freed_mb is None else freed_mb * MB
    said = verdict or ("none" if not freed or freed < 0 else "effective")
    memory = ResourceEffect(
        resource="memory",
        freed=freed,
        rebound_s=members.pop("rebound_s", None),
        verdict="effective",
    )
    return Intervention(
        **{
            "id": "i",
            "action": action,
            "asked_at_us": T0_US,
            "duration_s": took_s,
            "freed_bytes": freed,
            "verdict": said,
            "effects": (memory,),
            **members,
        }
    )


def advice(*past: Intervention, policy: Policy | None = None, **members: Any) -> list[Advice]:
    known = {"recovery": Recovery(), "checkpoints": Checkpoints(), "limits": LIMITS, **members}
    return list(advise(past, policy=policy or Policy(), **known))


def test_a_run_without_a_past_teaches_nothing() -> None:
    assert advice(memory=WARN) == []


def test_the_cheapest_deed_that_is_enough_is_named_with_its_medians() -> None:
    past = (
        done("purge", 200, 2.0, tier="workspace", how="expired"),
        done("purge", 300, 4.0, tier="workspace", how="expired"),
        done("purge", 400, 3.0, tier="workspace", how="expired"),
        done("reclaim", 500, 9.0, pause_s=20.0),
        done("purge", 100, 0.1, tier="recent"),
        done("checkpoint full", 900, 0.1),
    )
    (found,) = advice(*past, memory=WARN)
    assert found.kind == "action"
    assert found.text == (
        "purge workspace, what is expired: ~300M in 3.0s (3 times), the cheapest that brings "
        "memory under 55%"
    )
    (found,) = advice(*past[4:], memory=WARN)
    assert found.text == (
        "nothing measured here frees the 150M that it takes to be under 55%; "
        "most: purge recent, ~100M (once)"
    )


def test_an_abort_is_named_only_where_nothing_that_keeps_the_work_is_enough() -> None:
    abort = done("abort-experiment", 600, 0.1)
    (found,) = advice(abort, done("reclaim", 500, 9.0), memory=WARN)
    assert found.text.startswith("give memory back: ~500M in 9.0s (once)")
    (found,) = advice(abort, done("reclaim", 100, 9.0), memory=WARN)
    assert found.text.startswith("abort the experiment: ~600M in 0.10s (once)")


@pytest.mark.parametrize(
    "one",
    [
        done("purge", 300, tier="workspace", verdict="pending"),
        done("purge", 300, tier="workspace", verdict="unmeasured"),
        done("purge", 300, tier="workspace", overlaps=True),
        done("purge", 300, tier="workspace", count=4),
        replace(done("purge", 300, tier="workspace"), effects=()),
        done("purge", -300, tier="workspace"),
    ],
)
def test_what_was_not_measured_by_itself_on_the_memory_is_no_action(one: Intervention) -> None:
    assert advice(one, memory=WARN) == []


def test_at_a_normal_level_far_from_the_limit_nothing_needs_to_be_done() -> None:
    past = done("purge", 300, tier="workspace")
    calm = replace(WARN, level="normal")
    assert advice(past, memory=calm) == []
    assert advice(past, memory=replace(calm, used=500 * MB, time_to_limit_s=(60, 90))) == []
    assert len(advice(past, memory=replace(calm, time_to_limit_s=(60, 90)))) == 1


def test_what_stopped_working_is_named_with_what_it_did_before() -> None:
    past = [done("purge", mb, tier="workspace") for mb in (0, 1, 300, 500)]
    past[1] = replace(past[1], verdict="none")
    (found,) = advice(*past)
    assert found.kind == "stopped"
    assert found.text == (
        "purge workspace stopped working: no effect the last 2 times, before that it freed "
        "~400M (2 times)"
    )
    assert advice(*past[1:]) == [], "once may be chance"
    assert advice(*[replace(one, action="checkpoint full") for one in past]) == []
    assert advice(*past[:2]) == [], "it never worked"


def test_a_step_that_never_freed_anything_is_taken_out_by_a_value_that_loads() -> None:
    past = [done("purge", 0, tier="recent", how="expired", plan="5f-warn")] * 3
    (found,) = advice(*past)
    assert found.text == (
        "purge what is expired freed nothing 3 of 3 times: not worth a step of levels.warn.steps"
    )
    key, _, value = found.set.partition("=")
    assert [step["op"] for step in json.loads(value)] == ["checkpoint"]
    with some_layers() as layers:
        layers.write("set", with_values("", "set", {key: value}))
        assert [one.op for one in layers.load().base.levels.warn.steps] == ["checkpoint"]
    assert advice(*past[:2]) == []
    assert advice(*past, done("purge", 50, tier="workspace", how="expired", plan="5e-warn")) == []


def test_a_cool_down_that_outlasts_the_gain_is_named() -> None:
    past = [done("reclaim", 200, rebound_s=s, plan="5f-warn") for s in (200.0, 255.0, 300.0)]
    (found,) = advice(*past)
    assert found.set == "levels.warn.cooldown_s=250"
    assert found.text == (
        "memory is back 4m15s after a plan of warn (3 times), and the next may come after 10m00s"
    )
    assert advice(*[replace(one, plan="5f-emergency") for one in past]) == []


def test_pauses_that_freed_nothing_are_to_be_given_up_sooner() -> None:
    past = [done("pause", 0, pause_s=1800.0)] * 2
    (found,) = advice(*past)
    assert found.set == "pause.longest_s=900"
    assert "2 pauses freed nothing and cost 1h00m" in found.text
    (found,) = advice(*past, done("pause", 100, pause_s=60.0))
    assert found.kind == "stopped", "they helped once"
    assert advice(*past, policy=replace(Policy(), pause=Pause(longest_s=60))) == []
    held_up = replace(past[0], confounders=("it grew by 140M/min before",))
    assert advice(past[0], held_up) == [], "it stopped a leak, which is what it is for"


SLOW = "recovery 74s is over your 60s"


def test_a_budget_that_cannot_be_held_comes_with_one_that_can() -> None:
    start = RecoveryTerm(name="start", seconds=52, low_s=50, high_s=54, basis="measured")
    load = RecoveryTerm(name="load", seconds=22, low_s=10, high_s=27, basis="drilled")
    recovery = Recovery(
        rto_s=Span(low=60, likely=74, high=81),
        terms=(start, load),
        grade="watch",
        fix="start 52s: not a checkpoint's business",
        budget=RecoveryBudget(recover_s=60, over=(SLOW,), beyond=(SLOW,)),
    )
    first, second = advice(recovery=recovery)
    assert first.set == "budget.recover_s=90"
    assert first.text == (
        "recovery 74s is over your 60s whatever checkpoint is taken, most of it start (52s): "
        "it could be 90s"
    )
    assert (second.kind, second.text) == ("recovery", recovery.fix)


def test_checkpoints_that_take_too_much_time_come_with_a_cadence() -> None:
    checkpoints = Checkpoints(stats=CheckpointStats(time_share=0.12, every_s=180.0))
    (found,) = advice(checkpoints=checkpoints)
    assert (found.kind, found.set) == ("checkpoint", "")
    assert found.text == (
        "checkpoints take 12% of the time, one each 3m00s: one each 7m12s would take 5%"
    )
    strict = replace(Policy(), budget=CrashBudget(work_s=180))
    (found,) = advice(checkpoints=checkpoints, policy=strict)
    assert (found.kind, found.set) == ("policy", "budget.work_s=432")
    bloated = replace(checkpoints, bloat=Bloat(verdict="bloat", why="12% of the time", do="less"))
    (found,) = advice(checkpoints=bloated)
    assert found.text == "checkpoint bloat: 12% of the time; less"


def test_no_more_than_a_handful_and_the_most_useful_first() -> None:
    past = [
        *[done("pause", 0, pause_s=100.0)] * 2,
        *[done("purge", 0, tier="recent", how="expired", plan="5f-warn")] * 3,
        *[done("reclaim", 200, rebound_s=100.0, plan="5f-warn")] * 2,
    ]
    checkpoints = Checkpoints(
        bloat=Bloat(verdict="bloat", why="w"),
        prune=Prune(ids=("a",), count=1, bytes=5 * MB, why="old"),
    )
    found = advice(*past, memory=WARN, checkpoints=checkpoints)
    assert [one.kind for one in found] == ["action", "checkpoint", "policy", "policy"]
    assert len(found) == MOST
