"""What a store tells of the program that writes it, and for how long its silence is patience."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from memwatch.analytics.store_state import began_us, inferred_state
from memwatch.domain.checkpoints import StoreLook
from tests.analytics.test_store_changes import T0, S, look, saved

MINUTE = 60 * S
EACH_MINUTE = look(*(saved(number) for number in range(10)))
"""The last was complete 9 min and 2 s after T0."""
LAST_US = T0 + 9 * MINUTE + 2 * S


def state(store: StoreLook, after_s: float, lives: bool | None = None) -> str:
    return inferred_state(store, lives, LAST_US + round(after_s * 1e6), 1.5).state


@pytest.mark.parametrize(
    ("after_s", "lives", "said"),
    [
        (1, None, "running"),
        (119, None, "running"),
        (121, None, "silent"),
        (3599, None, "silent"),
        (3601, None, "ended"),
        (9_000_000, True, "running"),
        (1, False, "ended"),
        (9_000_000, False, "ended"),
    ],
)
def test_by_its_habit_and_its_writer(after_s: float, lives: bool | None, said: str) -> None:
    assert state(EACH_MINUTE, after_s, lives) == said


def test_a_slow_habit_has_more_patience() -> None:
    hourly = look(*(saved(60 * number) for number in range(5)))
    last_us = T0 + 240 * MINUTE + 2 * S
    states = [
        inferred_state(hourly, None, last_us + round(hours * 3600 * S), 1.5).state
        for hours in (1.4, 1.6, 14.9, 15.1)
    ]
    assert states == ["running", "silent", "silent", "ended"]


def test_before_it_has_a_habit() -> None:
    two = look(saved(8), saved(9))
    assert [state(two, 899), state(two, 901)] == ["running", "silent"]


def test_one_that_is_being_written_is_a_sign_of_life() -> None:
    assert state(look(saved(1), saved(2, "begun")), 90_000) == "running"


def test_a_half_written_one_that_is_left_says_that_it_crashed() -> None:
    left = look(saved(8), saved(9, "incomplete"))
    found = inferred_state(left, False, LAST_US, 1.5)
    assert found.state == "crashed"
    assert found.why == ("inferred: the process that wrote it is gone, its newest is half-written")
    assert found.ended_us == T0 + 9 * MINUTE
    assert state(look(saved(7, "incomplete"), saved(9)), 1, False) == "ended"


def test_what_is_inferred_says_so_and_when() -> None:
    silent = inferred_state(EACH_MINUTE, None, LAST_US + 600 * S, 1.5)
    assert silent.why.startswith("inferred: nothing was written for 10m")
    ended = inferred_state(EACH_MINUTE, None, LAST_US + 86_400 * S, 1.5)
    assert ended.why.startswith("inferred: nothing was written for ")
    assert ended.ended_us == LAST_US


def test_a_store_that_was_removed_is_an_end() -> None:
    gone = replace(EACH_MINUTE, gone=True, t_us=LAST_US + 5 * S)
    found = inferred_state(gone, True, LAST_US + 9 * S, 1.5)
    assert found == ("ended", "inferred: the store was removed", LAST_US + 5 * S)


def test_an_empty_store_is_no_end() -> None:
    assert inferred_state(look(), None, T0, 1.5).state == "running"
    assert began_us(look()) == 0
    assert began_us(EACH_MINUTE) == T0


def test_a_clock_that_was_set_back_makes_no_silence() -> None:
    assert state(EACH_MINUTE, -9_000) == "running"
