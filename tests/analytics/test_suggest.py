"""Suggestions come with what was measured in this run, and say so where nothing was."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from memwatch.analytics.suggest import suggest
from memwatch.domain.checkpoints import Checkpoints
from memwatch.domain.intervention import Intervention
from memwatch.domain.recovery import Recovery, RecoveryBudget
from memwatch.domain.snapshot import GuardInfo, Resource, RunInfo, RunState, Snapshot, Tier
from tests.builders import T0_US

MB = 1_000_000
OPS = ("checkpoint", "purge", "reclaim")


def snapshot(state: RunState = "running", ops: tuple[str, ...] = OPS, **members: Any) -> Snapshot:
    run = RunInfo(id="r", path="/r", agent="a", profile="p", host="h", pid=1, state=state, ops=ops)
    memory = Resource(name="memory", used=800 * MB, limit=1000 * MB, share=0.8)
    tiers = tuple(
        Tier(name=name, bytes=size * MB)
        for name, size in (("workspace", 300), ("recent", 200), ("verified", 290))
    )
    known = {"seq": 1, "t_us": T0_US, "run": run, "guard": GuardInfo(), "level": "warn"}
    return Snapshot(**{**known, "resources": (memory,), "tiers": tiers, **members})


def purge(tier: str, freed_mb: float | None, name: str = "p", **members: Any) -> Intervention:
    freed = None if freed_mb is None else freed_mb * MB
    return Intervention(
        id=name, action="purge", tier=tier, asked_at_us=T0_US, freed_bytes=freed, **members
    )


def test_the_median_of_the_same_purge_is_the_gain() -> None:
    history = (
        purge("recent", 90),
        purge("workspace", 100, rebound_s=300.0),
        purge("workspace", 150, rebound_s=420.0),
        purge("workspace", 900, overlaps=True),
        purge("workspace", 120),
        purge("workspace", None),
    )
    found = suggest(snapshot(interventions=history))
    assert found is not None
    assert (found.op, found.args) == ("purge", {"tier": "workspace"})
    assert (found.gain_bytes, found.back_s) == (120 * MB, 360.0)
    assert found.text == "purge workspace, expired first: ~120M, back in ~6m00s"
    assert found.basis.startswith("measured 3 times, last ")


def test_a_tier_gives_no_more_than_it_holds() -> None:
    found = suggest(snapshot(interventions=(purge("recent", 700), purge("workspace", 250))))
    assert found is not None
    assert (found.args, found.gain_bytes) == ({"tier": "workspace"}, 250 * MB)


def test_without_history_nothing_is_invented() -> None:
    found = suggest(snapshot())
    assert found is not None
    assert found.text == "purge workspace, expired first: gain not measured yet"
    assert (found.gain_bytes, found.back_s) == (None, None)
    assert found.args == {"tier": "workspace"}, "not verified, though it were as large"


def test_a_tier_of_a_few_kilobytes_is_not_suggested() -> None:
    small = (Tier(name="workspace", bytes=40_000), Tier(name="recent", bytes=10 * MB))
    found = suggest(snapshot(tiers=small))
    assert found is not None
    assert found.op == "reclaim", "what holds the memory lies outside of the tiers"
    large = (Tier(name="workspace", bytes=11 * MB), *small[1:])
    found = suggest(snapshot(tiers=large))
    assert found is not None
    assert found.args == {"tier": "workspace"}


def test_steps_of_plans_that_nobody_could_measure_count_by_the_agents_account() -> None:
    """A tier of 15 MB that nobody purged is no better than what gave back 85 MB each time."""
    step = Intervention(
        id="r",
        action="reclaim",
        asked_at_us=T0_US,
        plan="6-warn",
        verdict="unmeasured",
        overlaps=True,
        claimed=85 * MB,
    )
    found = suggest(snapshot(interventions=(step, replace(step, claimed=80 * MB))))
    assert found is not None
    assert (found.op, found.gain_bytes) == ("reclaim", 82.5 * MB)
    assert found.text == "reclaim: collect garbage, drop caches: ~82M, as the agent says"
    assert found.basis == "the agent's own account"
    vain = suggest(snapshot(interventions=(replace(step, claimed=0),)))
    assert vain is not None
    assert vain.op == "purge", "the agent itself says that it gave nothing back"


def test_a_reclaim_is_suggested_with_what_it_gained_or_no_more() -> None:
    def reclaim(freed_mb: float) -> Intervention:
        return Intervention(
            id="r", action="reclaim", asked_at_us=T0_US, freed_bytes=freed_mb * MB, claimed=27 * MB
        )

    found = suggest(snapshot(tiers=(), interventions=(reclaim(40), reclaim(60))))
    assert found is not None
    assert (found.op, found.gain_bytes) == ("reclaim", 50 * MB)
    assert found.text.endswith(": ~50M")
    assert found.basis.startswith("measured 2 times, last ")
    assert suggest(snapshot(tiers=(), interventions=(reclaim(-33),))) is None


def test_what_gained_nothing_is_not_suggested_again() -> None:
    history = (purge("workspace", 2), purge("recent", -50))
    found = suggest(snapshot(interventions=history))
    assert found is not None
    assert found.op == "reclaim"
    assert "not measured" in found.text
    left = suggest(snapshot(interventions=history[:1]))
    assert left is not None
    assert left.args == {"tier": "recent"}


@pytest.mark.parametrize(
    ("members", "op"),
    [
        ({"level": "normal"}, None),
        ({"state": "crashed"}, None),
        ({"ops": ()}, None),
        ({"ops": ("reclaim",)}, "reclaim"),
        ({"level": "normal", "checkpoints": Checkpoints(overdue=True)}, "checkpoint"),
        ({"level": "normal", "ops": (), "checkpoints": Checkpoints(overdue=True)}, None),
        ({"level": "normal", "resources": (), "tiers": ()}, None),
        ({"tiers": ()}, "reclaim"),
    ],
)
def test_what_is_suggested_when(members: dict[str, Any], op: str | None) -> None:
    found = suggest(snapshot(**members))
    assert (found.op if found else None) == op


def test_a_limit_that_is_near_calls_for_it_at_a_normal_level() -> None:
    for low_s, op in ((3599.0, "purge"), (3601.0, None)):
        memory = Resource(name="memory", limit=1e9, time_to_limit_s=(low_s, 9000.0))
        found = suggest(snapshot(level="normal", resources=(memory,)))
        assert (found.op if found else None) == op


OVER = RecoveryBudget(
    recover_s=60, over=("recovery 74s is over your 60s",), checkpoint="incremental"
)


@pytest.mark.parametrize(
    ("members", "op"),
    [
        ({}, "checkpoint"),
        ({"level": "normal"}, "checkpoint"),
        ({"level": "emergency"}, "purge"),  # nothing there waits for a checkpoint
        ({"ops": ("purge",)}, "purge"),
        ({"state": "crashed"}, None),
    ],
)
def test_what_brings_a_crash_under_its_budget_comes_first(
    members: dict[str, Any], op: str | None
) -> None:
    found = suggest(snapshot(recovery=Recovery(budget=OVER), **members))
    assert (found.op if found else None) == op


def test_the_checkpoint_says_which_budget_it_is_for() -> None:
    found = suggest(snapshot(recovery=Recovery(budget=OVER)))
    assert found is not None
    assert found.text == "checkpoint incremental: recovery 74s is over your 60s"
    assert (found.args, found.basis) == ({"kind": "incremental"}, "budget")
    work = "6m10s of work is in no checkpoint, over your 5m00s"
    both = replace(OVER, over=(*OVER.over, work), beyond=OVER.over)
    found = suggest(snapshot(recovery=Recovery(budget=both)))
    assert found is not None
    assert found.text == f"checkpoint incremental: {work}"
    hopeless = replace(OVER, beyond=OVER.over, checkpoint=None)
    found = suggest(snapshot(recovery=Recovery(budget=hopeless)))
    assert found is not None
    assert found.op == "purge"
