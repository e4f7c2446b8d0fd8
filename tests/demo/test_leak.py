"""The leak: real bytes at the chosen rate, and all of them given back."""

from __future__ import annotations

from typing import Any

import pytest

from memwatch.agent import Keep, Tiers
from memwatch.demo import leak as module
from memwatch.demo.leak import OUTSIDE, Leak
from memwatch.domain.clock import ManualClock


def a_leak() -> tuple[Leak, Tiers, ManualClock]:
    numbers: list[str] = []

    def record(kind: str, members: dict[str, Any]) -> int:
        numbers.append(kind)
        return len(numbers)

    tiers, clock = Tiers({"workspace": Keep(groups=2)}, record), ManualClock()
    return Leak(tiers, clock, record), tiers, clock


def test_it_keeps_what_the_rate_says_outside_all_tiers() -> None:
    leak, tiers, clock = a_leak()
    leak.turn(60)
    for _ in range(10):
        clock.advance_s(0.5)
        leak.grow(b"some result")
    held = sum(map(len, module._forgotten))
    assert held == pytest.approx(5_000_000, rel=0.01)
    assert len({bytes(kept) for kept in module._forgotten}) == 10
    assert tiers["workspace"].bytes == 0
    assert leak.ask({"mb_per_min": 0})["freed_bytes"] == held
    assert module._forgotten == []


def test_in_a_tier_it_escapes_retention_and_is_accounted_for() -> None:
    leak, tiers, clock = a_leak()
    leak.turn(60, "workspace")
    for _ in range(10):
        clock.advance_s(0.5)
        leak.grow(b"some result")
    assert len(tiers["workspace"]) == 10
    assert tiers["workspace"].bytes == pytest.approx(5_000_000, rel=0.01)
    leak.turn(0)
    assert tiers["workspace"].bytes == 0


def test_without_a_rate_nothing_grows() -> None:
    leak, _, clock = a_leak()
    clock.advance_s(3600)
    leak.grow(b"some result")
    assert module._forgotten == []


@pytest.mark.parametrize(
    "args", [{}, {"mb_per_min": "5"}, {"mb_per_min": -1}, {"mb_per_min": True}, {"mb_per_min": 1e9}]
)
def test_a_rate_that_cannot_be_is_refused(args: dict[str, Any]) -> None:
    leak, _, _ = a_leak()
    with pytest.raises((TypeError, ValueError), match="0 to 10000"):
        leak.ask(args)


def test_a_place_that_is_none_is_refused() -> None:
    leak, _, _ = a_leak()
    with pytest.raises(ValueError, match=f"{OUTSIDE}, workspace"):
        leak.ask({"mb_per_min": 1, "where": "attic"})
