"""The numbers of a tier follow what its experiments and entries measure (R1)."""

from __future__ import annotations

import random
from collections.abc import Callable

from memwatch.domain.policy import Keep
from tests.agent.memory.holding import Held

Hold = Callable[..., Held]


def experiments(held: Held, sizes: list[int]) -> list[int | None]:
    numbers = []
    for size in sizes:
        held.context.experiment = (held.context.experiment or 0) + 1
        held.tier.put(f"result/{held.context.experiment}", "x" * size)
        held.tiers.experiment_ended()
        numbers.append(held.tier.in_force.experiments)
    return numbers


def test_numbers_follow_what_experiments_measure_and_the_reason_is_logged(hold: Hold) -> None:
    held = hold({"recent": Keep(experiments=5, bytes=100_000)})
    assert experiments(held, [30_000] * 3) == [5, 2, 2]
    assert held.last("retention") == {
        "x": 2,
        "tier": "recent",
        "what": "experiments",
        "old": 5,
        "new": 2,
        "why": held.last("retention")["why"],
    }
    assert (
        "5 at a mean of 0.031 MB each are over the cap of 0.100 MB" in held.last("retention")["why"]
    )
    assert len(held.tier) == 2
    assert held.tier.keep.experiments == 5
    assert experiments(held, [2_000] * 6)[-1] == 5
    assert len(held.records("retention")) <= 4


def test_numbers_do_not_flap_where_they_just_fit(hold: Hold) -> None:
    held = hold({"recent": Keep(experiments=5, bytes=100_000)})
    experiments(held, [30_000] * 3)
    assert set(experiments(held, [28_000, 32_000] * 5)) == {2}
    assert set(experiments(held, [28_000] * 5)) == {2}  # a third would fit, but barely
    assert len(held.records("retention")) == 1
    assert experiments(held, [20_000] * 5)[-1] == 3


def test_sizes_that_vary_move_the_numbers_now_and_then_not_each_time(hold: Hold) -> None:
    held = hold({"w": Keep(count=200, bytes=450_000)})
    chance = random.Random(3)
    for number in range(1, 201):
        held.context.experiment = number
        size = 300_000 if number // 10 % 2 else 30_000  # light and heavy phases by turns
        for part in range(10):
            held.tier.put(f"{number}/{part}", "x" * int(size * chance.uniform(0.02, 0.03)))
        held.tiers.experiment_ended()
    changes = [record.members for record in held.records("retention")]
    rises = [change for change in changes if change["new"] > change["old"]]
    assert 5 < len(rises) < 40
    assert all(change["new"] >= 1.25 * change["old"] for change in rises)


def test_one_always_stays(hold: Hold) -> None:
    held = hold({"recent": Keep(experiments=5, bytes=10_000)})
    assert experiments(held, [50_000] * 3) == [5, 1, 1]


def test_counts_adapt_as_well_and_without_a_cap_nothing_does(hold: Hold) -> None:
    capped, free = hold({"w": Keep(count=200)}, limit_bytes=1_000_000), hold({"w": Keep(count=200)})
    for held in (capped, free):
        for number in range(10):
            held.tier.put(f"{number}", f"{number}" * 5_000)
        held.tiers.experiment_ended()
    assert capped.tier.in_force.count == int(0.9 * 300_000 / (capped.tier.bytes / 10)) < 50
    assert "an entry" in capped.last("retention")["why"]
    assert free.tier.in_force.count == 200
