"""The long tables in the app: keys, rows that come from the session, and nothing asked in vain."""

from __future__ import annotations

from typing import Any

from memwatch.domain.clock import ManualClock
from memwatch.ui.app import DashboardApp
from tests.ui import night
from tests.ui.fake_session import FakeRun
from tests.ui.harness import opened, screen_lines, screen_text, settle


async def press(pilot: Any, *keys: str) -> str:
    for key in keys:
        await pilot.press(key)
        await settle(pilot)
    assert isinstance(pilot.app, DashboardApp)
    return screen_text(pilot.app)


async def test_k_lists_all_checkpoints_and_goes_back_to_the_dashboard() -> None:
    async with opened(FakeRun(), (80, 24)) as (app, pilot):
        text = await press(pilot, "k")
        assert "checkpoints ─ 33" in text
        assert "▸ 07:59:33 full" in text
        assert "MEMORY ok" in text, "is it fine? stays answered"
        text = await press(pilot, "end")
        assert "▸ 07:45:09 full" in text, "C-1, which only the session knows"
        assert "[1 tiers]" in await press(pilot, "q")
        assert app.listing is None
        assert "▸ 07:59:33" in await press(pilot, "k")
        assert "[4 recovery]" in await press(pilot, "4"), "a panel's key leads there"


async def test_i_lists_interventions_sorts_and_shows_the_evidence_of_a_row() -> None:
    async with opened(FakeRun(change=night.teaching)) as (_, pilot):
        assert "interventions ─ 5, by bytes freed" in await press(pilot, "i")
        text = await press(pilot, "s", "s")
        assert "5, by time" in text
        assert "s sort by duration" in text
        text = await press(pilot, "down", "enter")
        assert "what it did" in text
        assert "restart (id r-1)" in text
        text = await press(pilot, "escape")
        assert "what it did" not in text
        assert "interventions ─ 5" in text
        assert "checkpoints ─ 33" in await press(pilot, "k"), "one key leads to the other table"
        assert "1 memory by tier" in await press(pilot, "k"), "the key that opened it closes it"


async def test_a_table_reaches_the_agents_keys_but_not_what_the_dashboard_shows() -> None:
    run = FakeRun()
    async with opened(run) as (app, pilot):
        view = app.frame.view
        text = await press(pilot, "k", "C")
        assert [command.op for command in run.submitted] == ["checkpoint"]
        assert "checkpoint" in screen_lines(app)[-1]
        assert "checkpoints ─ 33" in text
        await press(pilot, "z", "left", "f", "tab")
        assert app.frame.view == view
        assert "checkpoints ─ 33" in screen_text(app)


async def test_rows_are_asked_for_once_while_nothing_changes() -> None:
    clock = ManualClock()
    run = FakeRun(clock, change=night.teaching)
    async with opened(run) as (app, pilot):
        await press(pilot, "i")
        asked = list(run.rows_calls)
        assert asked.count("interventions") >= 1
        series = len(run.series_calls)
        for second in ("08:00:01", "08:00:02", "08:00:03"):
            clock.advance_s(1.0)
            while second not in screen_text(app):
                await settle(pilot)
        assert run.rows_calls == asked
        assert len(run.series_calls) == series, "the chart below is covered, and costs nothing"


async def test_a_store_opens_with_its_checkpoints_and_says_why_panels_are_empty() -> None:
    async with opened(FakeRun(change=night.store)) as (_, pilot):
        await settle(pilot, lambda: "checkpoints ─ 4 in a directory" in screen_text(pilot.app))  # type: ignore[arg-type]  # the pilot's app is ours
        text = await press(pilot, "q")
        assert "a checkpoint store takes no commands" in text
        assert "a checkpoint store has no tiers" in text
        assert "load alone 6.6s" in text
        assert "checkpoints ─ 4" not in text, "it opens by itself once"


async def test_a_guard_that_is_gone_is_said_above_a_table_too() -> None:
    run = FakeRun()
    async with opened(run) as (app, pilot):
        await press(pilot, "k")
        run.down = True
        await settle(pilot, lambda: "guard gone since" in screen_text(app))


async def test_a_table_in_ascii_and_in_a_tiny_terminal() -> None:
    async with opened(FakeRun(change=night.teaching), (40, 12), ascii_only=True) as (app, pilot):
        text = await press(pilot, "i")
        assert text.replace("\n", "").isascii()
        assert "no effect" in text
        assert len(screen_lines(app)) == 12
        assert (await press(pilot, "k")).replace("\n", "").isascii()
