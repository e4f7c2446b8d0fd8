"""Lists that grow at the end stand still most of the time."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from memwatch.ui.panels.paging import newest_page

TIMES = st.lists(st.integers(0, 10**15), min_size=1, max_size=60, unique=True).map(sorted)


@given(TIMES, st.integers(1, 20))
def test_the_newest_is_shown_and_the_page_is_well_filled(times: list[int], height: int) -> None:
    page = newest_page(times, height, int)
    assert page == times[-len(page) :]
    assert len(page) <= height
    assert len(page) >= min(len(times), height * 2 // 3)


def test_most_new_items_leave_all_others_in_their_place() -> None:
    times = [1_700_000_000_000_000 + 2_100_000 * number for number in range(300)]
    pages = [newest_page(times[: n + 1], 9, int) for n in range(20, 300)]
    stood_still = sum(after[: len(before)] == before for before, after in pairwise(pages))
    assert stood_still / len(pages) > 0.6


def test_the_page_does_not_depend_on_how_much_history_is_kept() -> None:
    times = [1_700_000_000_000_000 + 2_100_000 * number for number in range(300)]
    assert newest_page(times, 9, int) == newest_page(times[-40:], 9, int)
