"""Days of usage that swings about a threshold: few plans, no flaps, few words, a small state."""

from __future__ import annotations

import random
from itertools import pairwise

import msgspec
import pytest

from memwatch.domain.level import rank
from tests.engine.world import World

STEP_S = 10.0
LARGEST = 8_000
"""Bytes of the state on record: a plan, the one before, some numbers."""
LENGTHS = [1, pytest.param(7, marks=pytest.mark.campaign)]


def swing(days: int, center: float, amplitude: float, period_s: float) -> World:
    """Return a world after days about a share; nothing that the engine asks for frees memory."""
    world, dice = World(), random.Random(7)
    for number in range(round(days * 86_400 / STEP_S)):
        high = (number * STEP_S) % period_s < period_s / 2
        world.share = center + (amplitude if high else -amplitude) + dice.gauss(0, 0.004)
        world.tick(STEP_S)
        world.commands = dict(list(world.commands.items())[-64:])  # as a ledger remembers
        assert number % 500 or len(msgspec.json.encode(world.state)) < LARGEST
    return world


def plans(world: World) -> int:
    return len({one.plan.id for one in world.kinds("plan") if one.plan is not None})


@pytest.mark.parametrize("days", LENGTHS)
@pytest.mark.parametrize("center", [0.60, 0.75, 0.90, 0.95])
@pytest.mark.parametrize(("amplitude", "period_s"), [(0.0, 60.0), (0.02, 120.0)])
def test_noise_about_a_threshold_makes_one_night_of_it(
    days: int, center: float, amplitude: float, period_s: float
) -> None:
    world = swing(days, center, amplitude, period_s)
    levels = [rank(level) for level in world.levels()]
    assert levels == sorted(levels), "none is left"
    assert plans(world) <= 10
    assert len(world.told) <= 100
    assert all(one.why and one.rule for one in world.told)


@pytest.mark.parametrize("days", LENGTHS)
@pytest.mark.parametrize("center", [0.60, 0.75, 0.90])
def test_tides_of_half_an_hour_are_left_once_each_at_most(days: int, center: float) -> None:
    world = swing(days, center, 0.06, 1800.0)
    left = sum(rank(after) < rank(before) for before, after in pairwise(world.levels()))
    assert left <= days * 48
    assert plans(world) <= days * 48 * 2, "a plan and its escalation"
