"""What the engine is told is what was measured, with the time that it was measured at."""

from __future__ import annotations

from typing import Any

import pytest

from memwatch.config.policy import Policy, ResourceRule, SoftLimit
from memwatch.domain.snapshot import Disk, Limit, Limits
from memwatch.engine.facts import Facts
from memwatch.runtime.guard.engine_facts import Circumstances, FactsBuilder
from tests.builders import tiers
from tests.runtime.watched import MB, S, Watched

LIMITS = Limits(binding=Limit(name="cgroup /x memory.max", bytes=1000 * MB))


class Bench:
    """A watched run and what the engine is told of it."""

    def __init__(self) -> None:
        self.watched = Watched()
        self.watched.begin()
        self.builder = FactsBuilder(self.watched.profile, self.watched.ring)

    def facts(self, policy: Policy | None = None, **members: Any) -> Facts:
        known = Circumstances(policy=policy or Policy(), **{"limits": LIMITS, **members})
        return self.builder.build(known, self.watched.ring.mind_clock())


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_before_the_first_look_nothing_is_known(bench: Bench) -> None:
    facts = bench.facts()
    assert facts.resource("memory") is None
    assert facts.start_id == "s1"
    assert facts.checkpoint.last_m_us is None


def test_memory_is_told_with_the_time_of_the_look(bench: Bench) -> None:
    bench.watched.live(70, 100 * MB, grow=MB)
    looked_us = bench.watched.clock.boot_us()
    bench.watched.clock.advance_s(5)
    memory = bench.facts().resource("memory")
    assert memory is not None
    assert (memory.used, memory.limit) == (169 * MB, 1000 * MB)
    assert memory.limit_name == "cgroup /x memory.max"
    assert memory.measured_m_us == looked_us
    assert memory.growth_recent_per_min == pytest.approx(60 * MB, rel=0.01)
    assert memory.growth_per_min is None, "ten minutes are not covered yet"
    assert memory.mean_60s is not None
    assert memory.mean_10s is not None
    assert memory.mean_10s > memory.mean_60s


def test_the_time_that_is_left_is_told_once_it_was_seen_for_long_enough(bench: Bench) -> None:
    near = Limits(binding=Limit(name="cgroup", bytes=300 * MB))
    bench.watched.live(5, 100 * MB, grow=MB)
    early = bench.facts(limits=near).resource("memory")
    bench.watched.live(65, 105 * MB, grow=MB)
    late = bench.facts(limits=near).resource("memory")
    assert early is not None
    assert early.time_to_limit_s is None
    assert late is not None
    assert late.time_to_limit_s == pytest.approx((131, 131), rel=0.05)


@pytest.mark.parametrize("window_s", [60.0, 45.0])
def test_growth_is_over_the_window_of_the_soft_limit(bench: Bench, window_s: float) -> None:
    policy = Policy(soft=SoftLimit(window_s=window_s))
    for second in range(60):
        bench.watched.live(1, (100 + second) * MB)
        memory = bench.facts(policy).resource("memory")
    assert memory is not None
    assert memory.growth_per_min == pytest.approx(60 * MB, rel=0.05)


def test_a_tier_has_its_own_limit_and_the_disk_its_size(bench: Bench) -> None:
    rules = {name: ResourceRule(warn=0.6) for name in ("tier:recent", "disk", "unaccounted", "?")}
    bench.watched.say("sample", tiers={"recent": {"bytes": 60 * MB, "limit": 80 * MB}})
    bench.watched.look(100 * MB)
    disk = Disk(total_bytes=900 * MB, free_bytes=300 * MB)
    facts = bench.facts(Policy(resources=rules), disk=disk)
    told = {one.name: (one.used, one.limit) for one in facts.resources}
    assert told == {
        "memory": (100 * MB, 1000 * MB),
        "tier:recent": (60 * MB, 80 * MB),
        "disk": (600 * MB, 900 * MB),
        "unaccounted": (40 * MB, 1000 * MB),
    }


def test_what_a_checkpoint_took_is_measured(bench: Bench) -> None:
    watched = bench.watched
    for number in range(3):
        watched.live(5, 100 * MB)
        watched.say("checkpoint.begin", id=f"c{number}", kind="full")
        watched.live(2, (130 + number) * MB)
        watched.say("checkpoint.commit", id=f"c{number}", kind="full", duration_us=2 * S)
        committed_us = watched.clock.boot_us()
    watched.clock.advance_s(7)
    checkpoint = bench.facts().checkpoint
    assert (checkpoint.p95_s, checkpoint.extra_bytes) == (2.0, 32 * MB)
    assert checkpoint.last_m_us == committed_us


def test_phase_and_experiment_are_those_that_the_agent_declares(bench: Bench) -> None:
    bench.watched.say("experiment.begin", x=4, title="t", phase="verification")
    bench.watched.say("sample", tiers=tiers(recent=1))
    facts = bench.facts()
    assert (facts.phase, facts.experiment) == ("verification", 4)
