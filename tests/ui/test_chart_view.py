"""The chart's panel asks for pictures, and shows those that belong to its view."""

from __future__ import annotations

from msgspec.structs import replace

from memwatch.ui.widgets.chart import Wanted
from tests.ui.charting import LIMITS
from tests.ui.fake_session import FakeRun
from tests.ui.harness import opened, settle

WANTED = Wanted(
    first=100,
    step_us=1_000_000,
    columns=60,
    rows=12,
    width=78,
    tiers=("workspace",),
    limits=LIMITS,
    glyphs=None,  # type: ignore[arg-type]  # not looked at here
    tick=7,
)


def test_a_late_picture_of_the_same_view_is_welcome() -> None:
    assert WANTED.same_view(replace(WANTED, first=105, tick=12))
    assert replace(WANTED, tick=None).same_view(replace(WANTED, tick=None))


def test_a_late_picture_of_another_view_is_not() -> None:
    assert not WANTED.same_view(None)
    assert not WANTED.same_view(replace(WANTED, step_us=500_000))  # zoomed since
    assert not WANTED.same_view(replace(WANTED, width=118, columns=90))  # resized since
    back = replace(WANTED, tick=None)
    assert not back.same_view(replace(back, first=50))  # panned since
    assert not WANTED.same_view(back)


async def test_a_late_picture_does_not_replace_a_newer_view() -> None:
    async with opened(FakeRun()) as (app, pilot):
        chart = app.dashboard.chart
        late = chart.drawing
        assert late is not None
        await pilot.press("z")
        await settle(pilot, lambda: chart.drawing is not late)
        chart.take(late)
        assert chart.drawing is not late


async def test_a_picture_that_could_not_be_had_is_asked_for_again() -> None:
    run = FakeRun()
    async with opened(run) as (app, pilot):
        asked = len(run.series_calls)
        app.dashboard.chart.take(None)
        app.dashboard.chart.draw()
        await settle(pilot, lambda: len(run.series_calls) > asked)
