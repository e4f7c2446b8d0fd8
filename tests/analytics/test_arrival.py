"""Time to limit on the demo's course: a real leak is told soon, a healthy start never."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from memwatch.analytics.growth import Growth, Slope, time_to_limit

MB = 1_000_000
WINDOWS = (10.0, 60.0, 600.0)
LIMIT = 300 * MB
SEEDS = range(12)


def usage(at_s: float, leaked_s: float, mb_per_min: float, dice: random.Random) -> float:
    """Return the demo's usage: a ramp, then a saw-tooth of 7 MB every 2 s, and a leak."""
    ramp = 25 + 30 * min(at_s / 3, 1)
    tooth = 7 * ((at_s + dice.uniform(-0.3, 0.3)) / 2 % 1) if at_s > 3 else 0
    return (ramp + tooth + max(leaked_s, 0) * mb_per_min / 60) * MB


def arrivals(
    seed: int, seconds: int, mb_per_min: float = 0.0, leak_at_s: int = 0
) -> Iterator[tuple[int, tuple[float, float] | None]]:
    """Return what is said in each second behind the warm-up, until the limit is reached."""
    dice, growth = random.Random(seed), Growth(WINDOWS)
    phase = dice.random()
    for second in range(seconds):
        used = usage(second + phase, second + phase - leak_at_s, mb_per_min, dice)
        growth.add(round((5_000 + second + phase) * 1e6), used)
        if used >= LIMIT:
            return
        if second >= WINDOWS[0]:
            yield second, time_to_limit(used, LIMIT, growth.slopes(), WINDOWS)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_healthy_start_says_no_limit(seed: int) -> None:
    assert [found for found in arrivals(seed, 400) if found[1] is not None] == []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("leak_at_s", [0, 90])
@pytest.mark.parametrize(("mb_per_min", "within_s"), [(60, 25), (600, 10)])
def test_a_leak_is_told_soon_and_its_range_holds(
    mb_per_min: float, within_s: int, leak_at_s: int, seed: int
) -> None:
    said = arrivals(seed, leak_at_s + 200, mb_per_min, leak_at_s)
    second, found = next(one for one in said if one[0] >= leak_at_s and one[1] is not None)
    assert second - leak_at_s <= within_s
    assert found is not None
    reached_s = leak_at_s + (300 - 60) * 60 / mb_per_min
    assert found[0] * 0.7 <= reached_s - second <= found[1] * 1.3


def test_a_shorter_window_that_does_not_rise_denies_a_longer_one() -> None:
    """Right after a start the longer window still sees the ramp while usage is flat."""
    rising = Slope(20 * MB, 15 * MB, 25 * MB, 30)
    for flat in (0.0, -5.0 * MB, 4.0 * MB):
        slopes = [Slope(flat, flat - MB, flat + MB, 10), rising, None]
        assert time_to_limit(200 * MB, LIMIT, slopes, WINDOWS) is None
    agreeing = [Slope(10 * MB, -5 * MB, 25 * MB, 10), rising, None]
    assert time_to_limit(200 * MB, LIMIT, agreeing, WINDOWS) == (240.0, 400.0)


def test_a_day_is_not_foretold_from_25_minutes() -> None:
    slow = Slope(0.001 * MB, 0.001 * MB, 0.001 * MB, 25 * 60)
    assert time_to_limit(290 * MB, LIMIT, [slow, slow, slow], WINDOWS) is None
    reaches = Slope(0.15 * MB, 0.14 * MB, 0.16 * MB, 25 * 60)
    found = time_to_limit(290 * MB, LIMIT, [reaches] * 3, WINDOWS)
    assert found is not None
    assert found[1] <= 3 * 25 * 60


def test_slopes_tell_the_time_that_they_have_seen() -> None:
    growth = Growth(WINDOWS)
    for second in range(45):
        growth.add(second * 1_000_000, second * MB)
    short, middle, _ = growth.slopes()
    assert short is not None
    assert short.span_s == pytest.approx(10, abs=1)
    assert middle is not None
    assert middle.span_s == pytest.approx(44, abs=2)
