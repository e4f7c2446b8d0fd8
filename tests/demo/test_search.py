"""The search: repeatable, climbs, and goes through its phases from slice to slice."""

from __future__ import annotations

from memwatch.demo.search import (
    ACCUMULATIONS,
    EXPLORATIONS,
    PATIENCE,
    VERIFICATIONS,
    Search,
    score_of,
)
from memwatch.demo.settings import Settings


def quality(settings: Settings) -> float:
    """Return a made-up landscape with one hill per codec."""
    return 50.0 + {"zlib": 0, "bz2": 5, "lzma": 10}[settings.codec] - sum(settings.places)


def climb(search: Search, steps: int) -> list[tuple[str, Settings | None]]:
    """Let it work; returns phase and proposal of each step."""
    made: list[tuple[str, Settings | None]] = []
    for _ in range(steps):
        if search.phase == "verification":
            made.append((search.phase, None))
            search.verified()
        else:
            phase, settings = search.phase, search.propose()
            search.learn(settings, quality(settings))
            made.append((phase, settings))
    return made


def test_the_same_seed_proposes_the_same() -> None:
    assert climb(Search(3, 2), 60) == climb(Search(3, 2), 60)
    assert climb(Search(3, 2), 60) != climb(Search(4, 2), 60)


def test_phases_follow_one_another_and_slices_too() -> None:
    search = Search(1, 3)
    phases = [phase for phase, _ in climb(search, EXPLORATIONS + ACCUMULATIONS + VERIFICATIONS)]
    first = phases.index("verification")
    assert phases[:EXPLORATIONS] == ["exploration"] * EXPLORATIONS
    assert set(phases[EXPLORATIONS:first]) == {"accumulation"}
    assert PATIENCE <= first - EXPLORATIONS <= ACCUMULATIONS
    assert phases[first : first + VERIFICATIONS] == ["verification"] * VERIFICATIONS
    slices = set()
    for _ in range(100):
        climb(search, 1)
        slices.add(search.slice)
    assert slices == {0, 1, 2}


def test_it_keeps_the_best_and_only_that() -> None:
    search = Search(1, 1)
    best = 0.0
    for _ in range(EXPLORATIONS):
        settings = search.propose()
        assert search.learn(settings, quality(settings)) == (quality(settings) > best)
        best = max(best, quality(settings))
        assert search.best_score == best


def test_failures_alone_do_not_end_the_exploration() -> None:
    search = Search(1, 1)
    for _ in range(EXPLORATIONS * 2):
        assert search.learn(search.propose(), None) is False
    assert (search.phase, search.best) == ("exploration", None)


def test_a_better_ratio_scores_more_and_so_does_a_faster_one() -> None:
    assert score_of(4.0, 10.0) > score_of(3.0, 10.0)
    assert score_of(4.0, 20.0) > score_of(4.0, 10.0)
