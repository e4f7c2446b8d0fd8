"""Settings: whatever compresses comes back whole; what cannot be fails."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.demo.settings import (
    FAILURES,
    SPACE,
    Settings,
    anywhere,
    beside,
    build_dictionary,
    compressor,
    decompressor,
)

TEXT = b"def text(self) -> str:\n    return self.words\n" * 120


@given(st.integers(0, 10_000))
def test_what_compresses_comes_back_whole(seed: int) -> None:
    settings = anywhere(random.Random(seed))
    dictionary = build_dictionary(TEXT, settings.dictionary_bytes)
    try:
        packed = compressor(settings, dictionary)(TEXT)
    except FAILURES:
        knobs = settings.values()
        assert settings.codec == "lzma"
        assert knobs["lc"] + knobs["lp"] > 4
        return
    assert len(packed) < len(TEXT)
    assert decompressor(settings, dictionary)(packed) == TEXT


@given(st.integers(0, 10_000), st.integers(1, 3))
def test_a_neighbour_differs_by_one_place_in_few_knobs(seed: int, knobs: int) -> None:
    rng = random.Random(seed)
    start = anywhere(rng)
    other = beside(start, rng, knobs)
    steps = [abs(a - b) for a, b in zip(start.places, other.places, strict=True)]
    assert 1 <= sum(steps) <= knobs
    assert max(steps) == 1
    assert other.values()  # all places lie inside


def test_the_dictionary_holds_the_best_lines_last() -> None:
    text = b"once\n" + b"twice\n" * 2 + b"a very long line that comes often\n" * 9
    assert build_dictionary(text, 1000) == b"twice\na very long line that comes often"
    assert build_dictionary(text, 0) == b""


def test_a_dictionary_helps() -> None:
    places = tuple(len(all_) - 1 for all_ in SPACE["zlib"].values())
    settings = Settings("zlib", places)
    dictionary = build_dictionary(TEXT, settings.dictionary_bytes)
    with_it = compressor(settings, dictionary)(TEXT[:200])
    assert len(with_it) < len(compressor(settings, b"")(TEXT[:200]))


@pytest.mark.parametrize("codec", sorted(SPACE))
def test_the_title_names_every_knob(codec: str) -> None:
    settings = Settings(codec, tuple(0 for _ in SPACE[codec]))
    assert settings.title.startswith(f"{codec} 128k ")
    assert all(name in settings.title for name in list(SPACE[codec])[1:])
    assert len(settings.title) <= 60
