"""Lists that grow at the end stand still most of the time."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from memwatch.ui.panels.paging import Page

STEPS = st.lists(
    st.tuples(st.integers(0, 7), st.integers(1, 20)), min_size=1, max_size=40
)  # new items, height


@given(STEPS)
def test_the_newest_is_shown_and_the_page_is_well_filled(steps: list[tuple[int, int]]) -> None:
    page, count = Page(), 0
    for more, height in steps:
        count += more
        shown = page.newest(range(count), height, int)
        assert shown == list(range(count))[-len(shown) :] if shown else not count
        assert len(shown) <= height
        assert len(shown) >= min(count, height * 2 // 3)


def test_the_first_page_is_full_and_one_that_grew_higher_is_too() -> None:
    page = Page()
    assert page.newest(range(100), 9, int) == list(range(91, 100))
    assert page.newest(range(100), 12, int) == list(range(88, 100))
    assert page.newest(range(100), 12, int) == list(range(88, 100)), "painted again"


def test_a_page_moves_on_only_when_it_overflows() -> None:
    page = Page()
    pages = [page.newest(range(count), 9, int) for count in range(20, 300)]
    stood_still = sum(after[: len(before)] == before for before, after in pairwise(pages))
    assert stood_still / len(pages) > 0.6


def test_where_it_stands_does_not_depend_on_how_much_is_kept() -> None:
    first, second = Page(), Page()
    for count in range(50, 90):
        everything = first.newest(range(count), 9, int)
        assert second.newest(range(count - 40, count), 9, int) == everything
