"""A list whose past is filled in later looks as if it had been whole from the start."""

from __future__ import annotations

from memwatch.ui.panels.paging import Page


def test_the_order_of_answers_does_not_move_the_page() -> None:
    late, whole = Page(), Page()
    late.newest(range(20, 25), 6, int)
    late.newest(range(20, 28), 6, int)
    assert late.newest(range(28), 6, int) == whole.newest(range(28), 6, int)
