"""The search: repeatable, climbs, and goes through its phases from slice to slice."""

from __future__ import annotations

import msgspec

from memwatch.demo.results import SearchState
from memwatch.demo.search import (
    ACCUMULATIONS,
    EXPLORATIONS,
    PATIENCE,
    VERIFICATIONS,
    Search,
    score_of,
)
from memwatch.demo.settings import Settings


def a_search(seed: int, slices: int) -> Search:
    return Search(SearchState(seed=seed), slices)


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
    assert climb(a_search(3, 2), 60) == climb(a_search(3, 2), 60)
    assert climb(a_search(3, 2), 60) != climb(a_search(4, 2), 60)


def test_phases_follow_one_another_and_slices_too() -> None:
    search = a_search(1, 3)
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
    search = a_search(1, 1)
    best = 0.0
    for _ in range(EXPLORATIONS):
        settings = search.propose()
        assert search.learn(settings, quality(settings)) == (quality(settings) > best)
        best = max(best, quality(settings))
        assert search.state.best_score == best


def test_failures_alone_do_not_end_the_exploration() -> None:
    search = a_search(1, 1)
    for _ in range(EXPLORATIONS * 2):
        assert search.learn(search.propose(), None) is False
    assert (search.phase, search.state.best) == ("exploration", None)


def test_a_better_ratio_scores_more_and_so_does_a_faster_one() -> None:
    assert score_of(4.0, 10.0) > score_of(3.0, 10.0)
    assert score_of(4.0, 20.0) > score_of(4.0, 10.0)


def test_it_goes_on_from_its_state_as_if_it_had_never_stopped() -> None:
    whole = climb(a_search(5, 3), 80)
    search, pieces = a_search(5, 3), []
    for _ in range(80):
        pieces += climb(search, 1)
        text = msgspec.json.encode(search.state)
        search = Search(msgspec.json.decode(text, type=SearchState), 3)
    assert pieces == whole


def test_a_corpus_with_fewer_slices_is_no_obstacle() -> None:
    search = Search(SearchState(seed=1, slice=3), 2)
    assert search.slice == 1
