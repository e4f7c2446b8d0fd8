"""Bloat is said of what grows, or takes time, without the state growing; not of noise."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.analytics.checkpoints.bloat import bloat_of, settled
from memwatch.analytics.checkpoints.course import Seen
from tests.analytics.checkpoints.courses import MB, S, a_checkpoint, course_of

FLAT = [10.0 * MB] * 12
GROWING = [10.0 * MB * (1 + number / 10) for number in range(12)]


def test_three_say_nothing() -> None:
    assert bloat_of(course_of(FLAT[:3]), "native").verdict == "not enough data"
    assert bloat_of([], "langgraph").verdict == "not enough data"


def test_full_ones_that_grow_while_the_state_does_not_are_bloat() -> None:
    found = bloat_of(course_of(GROWING, FLAT), "native")
    assert found.verdict == "bloat"
    assert found.why == "full ones grew 50% over the last 8, to 21M; the state 0%"
    assert found.do.startswith("its own files grow")


def test_full_ones_that_grow_with_the_state_are_not() -> None:
    assert bloat_of(course_of(GROWING, GROWING), "native").verdict == "stable"


def test_without_a_word_on_the_state_growth_counts_alone() -> None:
    assert bloat_of(course_of(GROWING), "directory").verdict == "bloat"
    steps = [a_checkpoint(n, round(size), step=n + 1) for n, size in enumerate(GROWING)]
    graph = [Seen(n * S, one) for n, one in enumerate(steps)]
    assert bloat_of(graph, "langgraph").verdict != "bloat", "a graph's state grows by its steps"


def test_growth_of_persisted_values_is_told_from_that_of_the_files() -> None:
    seen = course_of(GROWING, FLAT)
    course = [Seen(at, a_checkpoint(n, one.bytes or 0, file_bytes=5, state_bytes=9 * MB))
              for n, (at, one) in enumerate(seen)]  # fmt: skip
    assert bloat_of(course, "native").do.startswith("persisted values grow")


@given(st.integers(0, 10_000), st.floats(0.0, 0.1))
def test_noise_is_no_bloat(seed: int, noise: float) -> None:
    dice = random.Random(seed)
    sizes = [10 * MB * (1 + dice.uniform(-noise, noise)) for _ in range(16)]
    assert bloat_of(course_of(sizes, [10 * MB] * 16), "native").verdict in ("stable", "watching")


@given(st.integers(4, 11))
def test_one_jump_is_no_bloat(place: int) -> None:
    sizes = [10.0 * MB] * place + [15.0 * MB] * (12 - place)
    assert bloat_of(course_of(sizes, FLAT), "native").verdict != "bloat"


def test_bloat_is_over_once_the_sizes_stand_still() -> None:
    sizes = GROWING + [GROWING[-1]] * 8
    assert bloat_of(course_of(sizes, [10 * MB] * 20), "native").verdict == "stable"


@pytest.mark.parametrize(
    ("duration_s", "verdict"), [(2, "stable"), (36, "watching"), (70, "bloat")]
)
def test_the_time_that_they_take_is_judged(duration_s: float, verdict: str) -> None:
    found = bloat_of(course_of(FLAT, FLAT, duration_s=float(duration_s)), "native")
    assert found.verdict == verdict
    if verdict == "bloat":
        assert (
            found.why == "checkpoints take 12% of the time: 1m10s each, one every 10m00s on average"
        )
        assert "one every 23m20s" in found.do
    graph = bloat_of(course_of(FLAT, FLAT, duration_s=float(duration_s)), "langgraph")
    assert "of the time" not in graph.why, "there it is the time of a step"


def test_increments_that_dwarf_their_full_one_are_bloat() -> None:
    course: list[Seen] = []
    for number in range(24):
        full = number % 8 == 0
        one = a_checkpoint(number, MB if full else 2 * MB, kind="full" if full else "incremental")
        course.append(Seen(number * 600 * S, one))
    found = bloat_of(course, "native")
    assert found.verdict == "bloat"
    assert found.why == "the increments of one chain hold 14M, its full one 1.0M"
    assert "chain_bytes 5.0M" in found.do


def test_a_graph_that_writes_its_whole_state_each_time_is_bloat_and_one_with_deltas_is_not() -> (
    None
):
    whole = [Seen(n * S, a_checkpoint(n, 700 * n, step=n)) for n in range(1, 53)]
    found = bloat_of(whole, "langgraph", 52 * 53 * 350)
    assert found.verdict == "bloat"
    assert found.why == "965k written for a state of 36k, 51% of it again with each one"
    deltas = [
        Seen(n * S, a_checkpoint(n, 700 * n if n % 10 == 1 else 900, step=n,
                                 kind="full" if n % 10 == 1 else "incremental"))
        for n in range(1, 53)
    ]  # fmt: skip
    assert bloat_of(deltas, "langgraph").verdict == "stable"


pressures = st.lists(st.floats(0, 3), max_size=20)


@given(pressures)
def test_no_single_pressure_makes_a_verdict(course: list[float]) -> None:
    verdict = settled(course)
    assert (verdict == "not enough data") == (not course)
    if not any(a >= 1 and b >= 1 for a, b in pairwise(course)):
        assert verdict != "bloat"
    assert settled([*course, 0.0, 0.0]) == "stable"
    assert settled([*course, 1.0, 1.0]) == "bloat"


@given(pressures, st.lists(st.floats(0.81, 0.99), min_size=1, max_size=9))
def test_a_pressure_around_the_line_does_not_flicker(
    before: list[float], around: list[float]
) -> None:
    assert settled([*before, 1.0, 1.0, *around]) == "bloat"
    assert settled([*before, 0.0, 0.0, *around]) == "watching"
