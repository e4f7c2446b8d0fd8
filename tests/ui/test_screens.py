"""Whole screens, as pictures: few, from a frozen run, on the exact Textual that drew them.

After a change that is meant: `pytest tests/ui/test_screens.py --snapshot-update`, and look at them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import textual
from msgspec.structs import replace

from tests.ui import night
from tests.ui.fake_session import FakeRun
from tests.ui.harness import dashboard, settle

DRAWN_WITH = "8.2.8"

pytestmark = pytest.mark.skipif(
    textual.__version__ != DRAWN_WITH, reason=f"pictures were drawn with Textual {DRAWN_WITH}"
)


@pytest.mark.parametrize("theme", ["memwatch", "plain16"])
@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
def test_dashboard(snap_compare: Callable[..., bool], theme: str, size: tuple[int, int]) -> None:
    app = dashboard(FakeRun(gap_s=(60.0, 75.0)), theme=theme)

    async def look_back(pilot: Any) -> None:
        await settle(pilot)
        await pilot.press("x")
        await settle(pilot)

    assert snap_compare(app, terminal_size=size, run_before=look_back)


async def press(pilot: Any, *keys: str) -> None:
    await settle(pilot)
    for key in keys:
        await pilot.press(key)
        await settle(pilot)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
def test_a_bad_night(snap_compare: Callable[..., bool], size: tuple[int, int]) -> None:
    app = dashboard(FakeRun(change=night.bad))
    assert snap_compare(app, terminal_size=size, run_before=lambda pilot: press(pilot, "3"))


@pytest.mark.parametrize("keys", [("P", "down"), ("X", "d"), ("G", "5"), ("Z",)], ids="".join)
def test_a_question(snap_compare: Callable[..., bool], keys: tuple[str, ...]) -> None:
    run = FakeRun(change=lambda snapshot: replace(snapshot, suggestion=night.SUGGESTION))
    app = dashboard(run)
    assert snap_compare(app, terminal_size=(80, 24), run_before=lambda pilot: press(pilot, *keys))


@pytest.mark.parametrize("key", ["k", "i"])
@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
def test_a_long_table(snap_compare: Callable[..., bool], size: tuple[int, int], key: str) -> None:
    app = dashboard(FakeRun(change=night.teaching))
    assert snap_compare(app, terminal_size=size, run_before=lambda pilot: press(pilot, key))


def test_a_store_whose_newest_is_torn(snap_compare: Callable[..., bool]) -> None:
    app = dashboard(FakeRun(change=night.store))
    assert snap_compare(app, terminal_size=(80, 24), run_before=press)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
def test_over_the_budget_of_a_crash(
    snap_compare: Callable[..., bool], size: tuple[int, int]
) -> None:
    app = dashboard(FakeRun(change=night.over))
    assert snap_compare(app, terminal_size=size, run_before=lambda pilot: press(pilot, "4"))
