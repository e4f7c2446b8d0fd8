"""Accesses of the last 24 hours, by the boot clock, in 24 counts at most (R3)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.agent.memory.heat import HOURS, Heat
from memwatch.domain.policy import Keep
from tests.agent.memory.holding import Held

HOUR_US = 3_600_000_000


@pytest.mark.parametrize(
    ("hours", "accesses"), [((0, 0, 0), 3), ((0, 5, 23), 3), ((0, 5, 24), 2), ((0, 100, 100), 2)]
)
def test_an_access_counts_for_a_day(hours: tuple[int, ...], accesses: int) -> None:
    heat = Heat.first(hours[0] * HOUR_US)
    for hour in hours[1:]:
        heat.touch(hour * HOUR_US)
    assert heat.accesses(hours[-1] * HOUR_US) == accesses
    assert heat.last_us == hours[-1] * HOUR_US


def test_it_cools_without_accesses() -> None:
    heat = Heat.first(0)
    assert [heat.accesses(hour * HOUR_US) for hour in (0, 23, 24, 1000)] == [1, 1, 0, 0]


def test_a_restart_costs_no_counts() -> None:
    heat = Heat.first(0)
    heat.touch(2 * HOUR_US)
    restored = Heat.restored(heat.by_hour(3 * HOUR_US), 900 * HOUR_US)
    assert restored.by_hour(900 * HOUR_US) == [0, 1, 0, 1]
    assert Heat.restored([], 0).accesses(0) == 0


@given(st.lists(st.integers(0, 40 * HOUR_US), min_size=1, max_size=60))
def test_it_counts_what_was_in_the_last_24_hours_and_never_grows(steps: list[int]) -> None:
    now_us, times = 0, [0]
    heat = Heat.first(0)
    for step in steps:
        now_us += step
        times.append(now_us)
        heat.touch(now_us)
        hour = now_us // HOUR_US
        assert heat.accesses(now_us) == sum(t // HOUR_US > hour - HOURS for t in times)
        assert len(heat.counts) <= HOURS


def test_accesses_of_many_keys_take_as_many_records_as_they_need(hold: Callable[..., Held]) -> None:
    held = hold({"verified": Keep(delete=False)})
    for number in range(2_500):
        held.tier.put(f"{number}", number)
        held.tier.get(f"{number}")
    held.tier.log_accesses()
    records = held.records("access")
    assert len(records) == 3
    assert sum(len(record.members["counts"]) for record in records) == 2_500


def test_what_retention_deleted_leaves_no_count_behind(hold: Callable[..., Held]) -> None:
    held = hold({"workspace": Keep(count=5)})
    for number in range(100):
        held.tier.put(f"{number}", number)
        held.tier.get(f"{number}")
    held.tier.log_accesses()
    assert held.last("access")["counts"] == {f"{number}": 1 for number in range(95, 100)}
