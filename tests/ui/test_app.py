"""The whole dashboard on a fake run, worked by keys."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from memwatch.domain.clock import ManualClock
from memwatch.domain.snapshot import GuardInfo, Snapshot
from memwatch.ui.screens.overlay import Overlay
from tests.ui.fake_session import FakeRun
from tests.ui.harness import dashboard, opened, screen_lines, screen_text, settle

SIZES = [(1, 1), (1, 80), (24, 1), (5, 3), (40, 12), (79, 23), (80, 24), (120, 40), (200, 50)]


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_any_size_can_be_worked(size: tuple[int, int]) -> None:
    async with opened(FakeRun(), size) as (app, pilot):
        await pilot.press("2", "z", "left", "f", "space", "question_mark", "escape", "tab", "n")
        await pilot.press("h", "i", "escape", "enter", "escape", "end")
        await settle(pilot)
        lines = screen_lines(app)
        assert len(lines) == size[1]
        assert {len(line) for line in lines} <= {size[0]}


async def test_a_terminal_may_change_its_size_at_any_time() -> None:
    async with opened(FakeRun()) as (app, pilot):
        for width, height in ((80, 24), (40, 12), (1, 1), (200, 50), (120, 40)):
            await pilot.resize_terminal(width, height)
            await settle(pilot)
            assert len(screen_lines(app)) == height
        assert "7 log" in screen_text(app)


async def test_all_panels_at_120_and_one_at_80() -> None:
    async with opened(FakeRun(), (120, 40)) as (app, _):
        text = screen_text(app)
        for heading in ("1 memory by tier", "2 growth", "3 interventions", "4 if it crashed"):
            assert heading in text
        assert "6 processes" in text
        assert "7 log" in text
    async with opened(FakeRun(), (80, 24)) as (app, pilot):
        assert "[1 tiers]" in screen_text(app)
        assert "unacc" in screen_text(app)
        await pilot.press("4")
        await settle(pilot)
        text = screen_text(app)
        assert "[4 recovery]" in text
        assert "back in 21s (18–26s)  good" in text
        assert "1 memory by tier" not in text


async def test_tab_goes_round_and_f_gives_a_panel_all_the_room() -> None:
    async with opened(FakeRun()) as (app, pilot):
        await pilot.press("tab")
        await settle(pilot, lambda: app.frame.panel == "growth")
        assert "▸2 growth" in screen_text(app)
        await pilot.press("shift+tab", "shift+tab")
        await settle(pilot, lambda: app.frame.panel == "log")
        await pilot.press("f")
        await settle(pilot)
        assert "2 growth a minute" not in screen_text(app)
        assert "[7 log]" in screen_text(app)
        await pilot.press("f")
        await settle(pilot, lambda: "2 growth a minute" in screen_text(app))


async def test_the_chart_is_asked_for_once_per_column_not_once_per_frame() -> None:
    run = FakeRun()
    async with opened(run) as (app, pilot):
        asked = len(run.series_calls)
        columns = run.series_calls[0][3]
        clock = run.clock
        assert isinstance(clock, ManualClock)
        clock.advance_s(0.1)
        await settle(pilot, lambda: app.frame.bounds.now_us == clock.wall_us())
        assert len(run.series_calls) == asked  # no column changed
        clock.advance_s(180 / columns)
        await settle(pilot, lambda: len(run.series_calls) > asked)
        assert len(run.series_calls) == asked + 5  # the tree and four tiers


async def test_zoom_and_pan_look_back_while_recording_goes_on() -> None:
    async with opened(FakeRun()) as (app, pilot):
        assert "─ 3min ─" in screen_text(app)
        await pilot.press("z")
        await settle(pilot, lambda: "─ 2min ─" in screen_text(app))
        await pilot.press("x", "x")
        await settle(pilot, lambda: "─ 5min ─" in screen_text(app))
        await pilot.press("left", "left")
        await settle(pilot, lambda: "chart and log of 07:52:30–07:57:30" in screen_text(app))
        assert "figures are now" in screen_text(app)
        assert "log of the 5min in view" in screen_text(app)
        assert not any("07:59" in line for line in screen_lines(app)[30:])
        await pilot.press("escape")
        await settle(pilot, lambda: "chart and log" not in screen_text(app))
        assert app.frame.view.live


async def test_a_look_back_stops_at_the_first_sample() -> None:
    async with opened(FakeRun(age_s=300), (80, 24)) as (app, pilot):
        for _ in range(20):
            await pilot.press("left")
        await settle(pilot, lambda: "chart and log of 07:54:5" in screen_text(app))
        assert "nothing recorded" not in screen_text(app)


async def test_a_banner_takes_a_row_and_leaves_the_time_axis() -> None:
    run = FakeRun()
    async with opened(run, (80, 24)) as (app, pilot):
        assert any("└" in line and "┴" in line for line in screen_lines(app))
        run.down = True
        await settle(pilot, lambda: "guard gone since" in screen_text(app))
        assert any("└" in line and "┴" in line for line in screen_lines(app))


async def test_space_freezes_the_view_and_never_the_recording() -> None:
    run = FakeRun()
    async with opened(run) as (app, pilot):
        await pilot.press("space")
        await settle(pilot, lambda: "FROZEN at 08:00:00" in screen_text(app))
        clock = run.clock
        assert isinstance(clock, ManualClock)
        clock.advance_s(61)
        await settle(pilot)
        assert "08:01:01" not in screen_text(app)
        await pilot.press("space")
        await settle(pilot, lambda: "08:01:01" in screen_text(app))


async def test_not_recording_is_loud_on_every_screen() -> None:
    def broken(snapshot: Snapshot) -> Snapshot:
        since = snapshot.t_us - 600_000_000
        guard = GuardInfo(recording=False, not_recording_since_us=since, not_recording_why="full")
        return replace(snapshot, guard=guard)

    run = FakeRun(change=broken)
    for size in ((120, 40), (80, 24), (40, 12)):
        async with opened(run, size) as (app, pilot):
            assert "NOT RECORDING since 07:50 (full)" in screen_text(app)
            for key in ("question_mark", "enter"):
                await pilot.press(key)
                await settle(pilot, lambda app=app: isinstance(app.screen, Overlay))  # type: ignore[misc]  # bound now
                assert "NOT RECORDING since 07:50 (full)" in screen_text(app)
                await pilot.press("escape")
                await settle(pilot)


async def test_a_guard_that_goes_is_said_and_one_that_comes_back_is_found() -> None:
    run = FakeRun()
    async with opened(run) as (app, pilot):
        run.down = True
        await settle(pilot, lambda: "guard gone since 08:00" in screen_text(app))
        assert "restart: memwatch guard demo --detach" in screen_text(app)
        assert app.dashboard.panels["growth"].stale
        run.down = False
        await settle(pilot, lambda: "guard gone" not in screen_text(app))
        assert not app.dashboard.panels["growth"].stale


async def test_a_guard_that_hangs_does_not_look_well_while_nothing_comes() -> None:
    run = FakeRun()
    async with opened(run, (80, 24)) as (app, pilot):
        run.hangs.set()
        await settle(pilot, lambda: "guard does not answer for 6s" in screen_text(app))
        assert app.dashboard.chart.stale
        run.hangs.clear()
        assert isinstance(run.clock, ManualClock)
        run.clock.advance_s(6)
        await settle(pilot, lambda: "08:00:06" in screen_text(app))
        assert "guard does not answer" not in screen_text(app)
        assert not app.dashboard.chart.stale


async def test_a_guard_that_answers_without_news_is_said_too() -> None:
    run = FakeRun()
    async with opened(run, (80, 24)) as (app, pilot):
        run.silent = True
        await settle(pilot, lambda: "guard answers, but has no new figures" in screen_text(app))


async def test_no_guard_at_the_start_is_said_and_tried_again() -> None:
    run = FakeRun()
    run.down = True
    async with opened(run, (80, 24)) as (app, pilot):
        assert "no guard: no guard listens; trying again" in screen_text(app)
        run.down = False
        await settle(pilot, lambda: "MEMORY ok" in screen_text(app))


async def test_a_checkpoint_is_asked_then_accepted_then_done() -> None:
    run = FakeRun()
    clock = run.clock
    assert isinstance(clock, ManualClock)
    async with opened(run) as (app, pilot):
        await pilot.press("C")
        await settle(pilot, lambda: "checkpoint asked 0s" in screen_text(app))
        assert "checkpoint done" not in screen_text(app)
        clock.advance_s(2)
        await settle(pilot, lambda: "checkpoint accepted 2s" in screen_text(app))
        clock.advance_s(2)
        await settle(pilot, lambda: "checkpoint done after 4.0s" in screen_text(app))
        assert [command.op for command in run.submitted] == ["checkpoint"]


async def test_the_leak_is_switched_on_and_off() -> None:
    run = FakeRun()
    clock = run.clock
    assert isinstance(clock, ManualClock)
    async with opened(run) as (app, pilot):
        await pilot.press("L")
        await settle(pilot, lambda: len(run.submitted) == 1)
        clock.advance_s(2)
        await settle(pilot, lambda: "leak accepted 2s" in screen_text(app))
        clock.advance_s(2)
        await settle(pilot, lambda: "leak done" in screen_text(app))
        clock.advance_s(20)
        await settle(pilot, lambda: "demo leak 120/min: on" in screen_text(app))
        await pilot.press("L")
        await settle(pilot, lambda: len(run.submitted) == 2)
    assert [command.args["mb_per_min"] for command in run.submitted] == [120, 0]


async def test_a_leak_that_another_viewer_switched_on_is_switched_off() -> None:
    run = FakeRun()
    run.leak_since_us = run.clock.wall_us()
    async with opened(run) as (_, pilot):
        await pilot.press("L")
        await settle(pilot, lambda: len(run.submitted) == 1)
    assert run.submitted[0].args["mb_per_min"] == 0


async def test_a_note_is_written_and_sent() -> None:
    run = FakeRun()
    async with opened(run, (80, 24)) as (app, pilot):
        await pilot.press("n", *"new seed", "enter")
        await settle(pilot, lambda: run.submitted)
        assert run.submitted[0].op == "note"
        assert run.submitted[0].args == {"text": "new seed"}
        assert app.screen is app.dashboard
        await pilot.press("n", "x", "escape")
        await settle(pilot)
        assert len(run.submitted) == 1


async def test_a_viewer_that_may_only_look_says_why_it_does_nothing() -> None:
    run = FakeRun()
    async with opened(run, view_only=True) as (app, pilot):
        await pilot.press("C", "n", "L")
        await settle(pilot, lambda: "--view, it cannot act" in screen_text(app))
        assert run.submitted == []
        assert app.screen is app.dashboard


async def test_a_request_that_cannot_be_sent_is_said() -> None:
    run = FakeRun()
    async with opened(run) as (app, pilot):
        run.down = True
        await pilot.press("C")
        await settle(pilot, lambda: "not sent: " in screen_text(app))


async def test_enter_opens_the_evidence_of_the_panel_in_front() -> None:
    async with opened(FakeRun()) as (app, pilot):
        await pilot.press("4", "enter")
        await settle(pilot, lambda: "where the figures come from: recovery" in screen_text(app))
        assert "the sum of its terms" in screen_text(app)
        await pilot.press("escape")
        await settle(pilot)
        await pilot.click("#log")
        await settle(pilot, lambda: app.frame.panel == "log")
        assert app.screen is app.dashboard  # the first click only focuses
        await pilot.click("#log")
        await settle(pilot, lambda: "where the figures come from: log" in screen_text(app))


async def test_every_action_is_offered_by_name() -> None:
    app = dashboard(FakeRun())
    titles = [command.title for command in app.get_system_commands(None)]  # type: ignore[arg-type]  # unused
    assert "checkpoint (C)" in titles
    assert len(titles) > 20


async def test_refresh_is_slower_and_faster_by_steps() -> None:
    async with opened(FakeRun()) as (app, pilot):
        await pilot.press("minus")
        await settle(pilot, lambda: "an update each 0.5 s" in screen_text(app))
        await pilot.press("plus")
        await settle(pilot)
        assert app.bridge.refresh_s == 0.5


async def test_hostile_and_wide_strings_do_no_harm() -> None:
    hostile = "\x1b[2J[red]記憶體記憶體[/red]\x07" * 4

    def attacked(snapshot: Snapshot) -> Snapshot:
        run = replace(snapshot.run, id=hostile, phase=hostile, host=hostile)
        tiers = tuple(replace(tier, name=hostile) for tier in snapshot.tiers)
        events = tuple(replace(event, text=hostile) for event in snapshot.events)
        return replace(snapshot, run=run, tiers=tiers, events=events, profile_note=hostile)

    for size in ((120, 40), (80, 24), (40, 12)):
        async with opened(FakeRun(change=attacked), size) as (app, _):
            text = screen_text(app)
            assert "\x1b" not in text
            assert "\x07" not in text
            assert "[red]記憶體" in text or size == (40, 12)


async def test_no_color_means_none_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(FakeRun()) as (app, pilot):
        assert "PROCS watch" in screen_text(app)
        for key in ("tab", "question_mark", "escape", "P"):
            await pilot.press(key)
            await settle(pilot)
            for strip in app.screen._compositor.render_strips():
                for _, style, _ in strip:
                    colors = (style.color, style.bgcolor) if style else ()
                    assert all(color is None or color.is_default for color in colors)


async def test_ascii_only_sends_nothing_else() -> None:
    async with opened(FakeRun(), ascii_only=True) as (app, pilot):
        assert screen_text(app).isascii()
        for key in ("question_mark", "escape", "P", "escape", "X", "escape", "5"):
            await pilot.press(key)
            await settle(pilot)
            assert screen_text(app).isascii(), key


async def test_a_tier_beyond_the_fifth_and_no_limit_are_no_problem() -> None:
    def odd(snapshot: Snapshot) -> Snapshot:
        tiers = tuple(replace(snapshot.tiers[0], name=f"t{number}") for number in range(9))
        return replace(
            snapshot, tiers=tiers, limits=replace(snapshot.limits, binding=None), resources=()
        )

    async with opened(FakeRun(change=odd)) as (app, _):
        assert "oth" in screen_text(app)
        assert "limit 300M" not in screen_text(app)
