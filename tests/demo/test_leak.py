"""The leak: real bytes at the chosen rate, and all of them given back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memwatch.agent import Keep, Tiers
from memwatch.agent.memory.blobs import BlobStore
from memwatch.agent.memory.values import Types
from memwatch.demo import leak as module
from memwatch.demo.leak import OUTSIDE, Leak
from memwatch.domain.clock import ManualClock
from tests.agent.reading import context_at


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[tuple[Leak, Tiers, ManualClock]]:
    clock = ManualClock()
    context = context_at(tmp_path, clock=clock)
    tiers = Tiers(
        {"workspace": Keep(count=2)},
        context,
        types=Types(),
        blobs=BlobStore(tmp_path / "blobs", context.files),
        builders={"nothing": list},
    )
    yield Leak(tiers, clock, context.record), tiers, clock
    context.log.close()


Scene = tuple[Leak, Tiers, ManualClock]


def test_it_keeps_what_the_rate_says_outside_all_tiers(scene: Scene) -> None:
    leak, tiers, clock = scene
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


def test_in_a_tier_it_escapes_retention_and_is_accounted_for(scene: Scene) -> None:
    leak, tiers, clock = scene
    leak.turn(60, "workspace")
    for _ in range(10):
        clock.advance_s(0.5)
        leak.grow(b"some result")
    assert len(tiers["workspace"]) == 1
    assert tiers["workspace"].bytes == pytest.approx(5_000_000, rel=0.01)
    leak.turn(0)
    assert tiers["workspace"].bytes == 0


def test_in_a_cache_it_goes_when_memory_is_reclaimed_and_comes_again(scene: Scene) -> None:
    leak, tiers, clock = scene
    leak.turn(60, "cache")
    for _ in range(2):
        clock.advance_s(0.5)
        leak.grow(b"some result")
    assert sum(map(len, leak._cached)) == pytest.approx(1_000_000, rel=0.01)
    assert (module._forgotten, tiers["workspace"].bytes) == ([], 0)
    leak.drop_cache()
    clock.advance_s(0.5)
    leak.grow(b"some result")
    assert leak.turn(0) == pytest.approx(500_000, rel=0.01)
    assert leak._cached == []


def test_what_stood_still_owes_nothing(scene: Scene) -> None:
    leak, _, clock = scene
    leak.turn(60)
    clock.advance_s(60)
    leak.rest()
    clock.advance_s(0.5)
    leak.grow(b"some result")
    assert leak.turn(0) == pytest.approx(500_000, rel=0.01)


def test_without_a_rate_nothing_grows(scene: Scene) -> None:
    leak, _, clock = scene
    clock.advance_s(3600)
    leak.grow(b"some result")
    assert module._forgotten == []


@pytest.mark.parametrize(
    "args", [{}, {"mb_per_min": "5"}, {"mb_per_min": -1}, {"mb_per_min": True}, {"mb_per_min": 1e9}]
)
def test_a_rate_that_cannot_be_is_refused(scene: Scene, args: dict[str, Any]) -> None:
    leak, _, _ = scene
    with pytest.raises((TypeError, ValueError), match="0 to 10000"):
        leak.ask(args)


def test_a_place_that_is_none_is_refused(scene: Scene) -> None:
    leak, _, _ = scene
    with pytest.raises(ValueError, match=f"{OUTSIDE}, cache, workspace"):
        leak.ask({"mb_per_min": 1, "where": "attic"})
