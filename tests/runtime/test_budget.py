"""A guard that costs too much does without something, says so, and takes it up again."""

from __future__ import annotations

import pytest

from memwatch.config.settings import Budget
from memwatch.domain.snapshot import Own
from memwatch.runtime.guard.budget import OVER_S, SLOWEST, UNDER_S, SelfLimits
from tests.runtime.watched import MB, S, Watched


class FakeHistorian:
    """Only remembers whether it is paused."""

    paused = ""

    def pause(self, why: str) -> None:
        self.paused = why

    def resume(self) -> None:
        self.paused = ""


class Bench:
    """A guard's own cost, second by second."""

    def __init__(self) -> None:
        self.historian = FakeHistorian()
        self.ring = Watched().ring
        budget = Budget(rss_bytes=100 * MB, cpu_percent=10.0)
        self.limits = SelfLimits(budget, self.historian, self.ring)  # type: ignore[arg-type]  # the two calls
        self.second = 0

    def live(self, seconds: float, own: Own, level: str = "normal") -> list[tuple[str, str]]:
        told = []
        for _ in range(round(seconds)):
            told += self.limits.look(own, level, self.second * S)  # type: ignore[arg-type]  # a level
            self.second += 1
        return told


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_over_its_memory_for_a_while_it_closes_the_history(bench: Bench) -> None:
    bench.live(OVER_S - 1, Own(rss_bytes=101 * MB))
    bench.live(1, Own(rss_bytes=99 * MB))
    assert bench.live(OVER_S, Own(rss_bytes=101 * MB)) == [], "the time began anew"
    (told,) = bench.live(5, Own(rss_bytes=101 * MB))
    assert told[0] == "memory"
    assert "the history is closed, guarding goes on" in told[1]
    assert "101M of 100M" in bench.historian.paused
    assert bench.live(UNDER_S + 5, Own(rss_bytes=90 * MB)) == [], "not well under it"
    assert bench.live(UNDER_S + 5, Own(rss_bytes=70 * MB))
    assert bench.historian.paused == ""


def test_over_its_share_of_a_processor_it_looks_less_often(bench: Bench) -> None:
    told = bench.live(120, Own(cpu_percent=20.0))
    assert [text for _, text in told] == [
        "20% of 10%: looks 2× as rarely",
        "20% of 10%: looks 4× as rarely",
    ]
    assert bench.limits.slower == bench.ring.slower == SLOWEST
    bench.live(120, Own(cpu_percent=7.0))
    assert bench.limits.slower == SLOWEST, "half of it must be spare before it looks more often"
    bench.live(120, Own(cpu_percent=1.0))
    assert bench.limits.slower == bench.ring.slower == 1


def test_at_a_level_it_looks_as_often_as_usual_whatever_it_costs(bench: Bench) -> None:
    bench.live(60, Own(cpu_percent=20.0))
    bench.live(1, Own(cpu_percent=20.0), "warn")
    bench.live(60, Own(cpu_percent=20.0), "warn")
    assert bench.limits.slower == 1


def test_what_is_not_measured_decides_nothing(bench: Bench) -> None:
    assert bench.live(100, Own()) == []
