"""Quantities have columns of a fixed width: no figure may be wider than what is left for it."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memwatch.domain.units import brief_text, bytes_text, rough_text, short_text, span_text

SECONDS = st.floats(0, 9_000 * 86_400)


@given(SECONDS)
@example(6_000)  # 100 minutes
@example(750)  # 12m30s
@example(36_720)  # 10h12m
@example(599.7)
@example(86_390)
@example(12.5 * 86_400)
def test_a_duration_fits_five_cells(seconds: float) -> None:
    for text in (short_text(seconds), brief_text(seconds), rough_text(seconds)):
        assert len(text) <= 5, text


@given(SECONDS, SECONDS)
@example(65, 750)
def test_a_range_of_durations_fits_eleven_cells(one: float, other: float) -> None:
    assert len(span_text(*sorted((one, other)))) <= 11


@given(st.floats(0, 9e15))
@example(999.6)
def test_an_amount_of_bytes_fits_five_cells(amount: float) -> None:
    assert len(bytes_text(amount)) <= 5


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(605, 900, "10–15min"), (65, 750, "1m05s–12min"), (7_300, 40_000, "2h01m–11h")],
)
def test_long_ranges_are_short(low: float, high: float, text: str) -> None:
    assert span_text(low, high) == text
