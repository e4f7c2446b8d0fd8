"""Questions on the whole dashboard: what is sent, when, and what is seen of it."""

from __future__ import annotations

from msgspec.structs import replace

from memwatch.domain.clock import ManualClock
from memwatch.domain.control import Alert, Hold, SinceLeft
from memwatch.domain.snapshot import Snapshot
from memwatch.ui.bell import Bell
from memwatch.ui.screens.dialog import DialogScreen
from tests.ui import night
from tests.ui.fake_session import FakeRun
from tests.ui.harness import opened, screen_text, settle, snapshot_of


async def test_a_pause_is_asked_for_and_shown_only_when_the_agent_says_so() -> None:
    run = FakeRun()
    clock = run.clock
    assert isinstance(clock, ManualClock)
    async with opened(run) as (app, pilot):
        await pilot.press("Z")
        await settle(pilot, lambda: "pause the agent" in screen_text(app))
        assert "asked of run 20260731-demo, pid 4242" in screen_text(app)
        assert run.submitted == []
        await pilot.press("y")
        await settle(pilot, lambda: "pause asked 0s" in screen_text(app))
        assert "PAUSED" not in screen_text(app)
        clock.advance_s(2)
        await settle(pilot, lambda: "pause accepted 2s" in screen_text(app))
        clock.advance_s(2)
        await settle(pilot, lambda: "pause → in force (agent) after 4.0s" in screen_text(app))
        assert "PAUSED by a person since 08:00  (Z: release)" in screen_text(app)
        clock.advance_s(20)
        await settle(pilot, lambda: "Z resume" in screen_text(app))
        assert [(one.op, one.args) for one in run.submitted] == [("pause", {})]


async def test_enter_and_escape_on_an_open_question_do_nothing() -> None:
    run = FakeRun()
    async with opened(run, (80, 24)) as (app, pilot):
        for keys in (("P", "enter"), ("Z", "escape"), ("R", "n"), ("X", "enter", "escape")):
            await pilot.press(*keys)
            await settle(pilot)
            assert app.screen is app.dashboard, keys
        assert run.submitted == []


async def test_a_purge_shows_what_the_agent_says_it_would_free_then_is_asked_for() -> None:
    run = FakeRun(change=lambda snapshot: replace(snapshot, suggestion=night.SUGGESTION))
    async with opened(run, (80, 24)) as (app, pilot):
        assert "suggested: P purge workspace, expired first: ~40M" in screen_text(app)
        await pilot.press("P")
        await settle(pilot, lambda: "2 purge workspace  36M would be freed" in screen_text(app))
        assert run.submitted == [], "a rehearsal is no request"
        await pilot.press("down")
        await settle(pilot, lambda: "3 times, last 07:51" in screen_text(app))
        await pilot.press("down")
        await settle(pilot, lambda: "3 purge what is expired  36M would" in screen_text(app))
        await pilot.press("up", "enter")
        await settle(pilot, lambda: run.submitted)
        assert app.screen is app.dashboard
        assert [(one.op, one.args) for one in run.submitted] == [("purge", {"tier": "workspace"})]


async def test_an_abort_needs_the_name_of_the_run() -> None:
    run = FakeRun()
    async with opened(run) as (app, pilot):
        await pilot.press("X", *"20260731-dem", "enter")
        await settle(pilot, lambda: "not the name yet" in screen_text(app))
        assert run.submitted == []
        await pilot.press("o")
        await settle(pilot, lambda: "Enter does it" in screen_text(app))
        await pilot.press("enter")
        await settle(pilot, lambda: run.submitted)
        assert run.submitted[0].op == "abort_experiment"
        assert run.submitted[0].confirm == "20260731-demo"


async def test_a_question_that_makes_no_sense_any_more_is_not_acted_on() -> None:
    over = False

    def change(snapshot: Snapshot) -> Snapshot:
        return replace(snapshot, run=replace(snapshot.run, state="ended")) if over else snapshot

    run = FakeRun(change=change)
    assert isinstance(run.clock, ManualClock)
    async with opened(run) as (app, pilot):
        await pilot.press("Z")
        await settle(pilot)
        over = True
        run.clock.advance_s(1)
        await settle(pilot, lambda: "not possible any more: the run is over" in screen_text(app))
        await pilot.press("y")
        await settle(pilot)
        assert isinstance(app.screen, DialogScreen)
        await pilot.press("escape")
        await settle(pilot)
        assert run.submitted == []


async def test_the_hold_of_another_is_released_only_by_choice() -> None:
    run = FakeRun()
    run.holds = [Hold(id=o, op="pause", owner=o, effective=True) for o in ("engine", "ctl")]
    async with opened(run, (80, 24)) as (app, pilot):
        await pilot.press("Z")
        await settle(pilot, lambda: "release the hold of the guard" in screen_text(app))
        assert "release the hold of ctl" in screen_text(app)
        await pilot.press("y", "enter")
        await settle(pilot)
        assert run.submitted == []
        await pilot.press("Z", "3", "enter")
        await settle(pilot, lambda: run.submitted)
        assert run.submitted[0].args == {"owner": "ctl"}


async def test_a_plan_that_waits_is_seen_everywhere_and_let_go() -> None:
    run = FakeRun(change=night.asking)
    async with opened(run, (80, 24)) as (app, pilot):
        assert "GUARD ASKS (Y: look · N: no) to act at intervene" in screen_text(app)
        await pilot.press("Y")
        await settle(pilot, lambda: "let the plan go" in screen_text(app))
        await pilot.press("y")
        await settle(pilot, lambda: run.submitted)
        await pilot.press("N")
        await settle(pilot, lambda: len(run.submitted) == 2)
        assert [one.op for one in run.submitted] == ["engine.approve", "engine.decline"]


async def test_a_person_is_asked_once_what_the_guard_may_do() -> None:
    def fresh(snapshot: Snapshot) -> Snapshot:
        shown = night.in_mode(snapshot, "shadow", asked=False, will="WILL NOT ACT (shadow)")
        return replace(shown, run=replace(shown.run, agent="searcher", profile="engine"))

    run = FakeRun(change=fresh)
    assert isinstance(run.clock, ManualClock)
    async with opened(run) as (app, pilot):
        await settle(pilot, lambda: isinstance(app.screen, DialogScreen))
        assert "WILL NOT ACT (shadow)" in screen_text(app)
        await pilot.press("enter")
        run.clock.advance_s(1)
        await settle(pilot)
        assert app.screen is app.dashboard, "asked once in this viewer"
        assert run.submitted == []
    async with opened(run) as (app, pilot):
        await settle(pilot, lambda: isinstance(app.screen, DialogScreen))
        await pilot.press("3", "enter")
        await settle(pilot, lambda: run.submitted)
        asked = {"mode": "act", "allow": ["checkpoint", "pause"]}
        assert run.submitted[0].args == asked
    async with opened(run, view_only=True) as (app, _):
        assert app.screen is app.dashboard


async def test_the_first_question_goes_when_somebody_else_answered_it() -> None:
    answered = False

    def change(snapshot: Snapshot) -> Snapshot:
        shown = night.in_mode(snapshot, "act" if answered else "shadow", asked=answered, by="ctl")
        return replace(shown, run=replace(shown.run, agent="searcher", profile="engine"))

    run = FakeRun(change=change)
    assert isinstance(run.clock, ManualClock)
    async with opened(run) as (app, pilot):
        await settle(pilot, lambda: "nobody has said yet" in screen_text(app))
        answered = True
        run.clock.advance_s(1)
        await settle(pilot, lambda: "said meanwhile by ctl: guard acts" in screen_text(app))
        assert app.screen is app.dashboard
        assert run.submitted == []


async def test_the_panel_of_what_happened_takes_room_only_when_it_has_something_to_say() -> None:
    told = False

    def change(snapshot: Snapshot) -> Snapshot:
        since = SinceLeft(from_us=snapshot.t_us, lines=("3 purges freed 1.2G",))
        return replace(snapshot, since=since) if told else snapshot

    run = FakeRun(change=change)
    assert isinstance(run.clock, ManualClock)
    async with opened(run) as (app, pilot):
        assert "since you left" not in screen_text(app)
        await pilot.press("5")
        await settle(pilot, lambda: "nobody left since this guard began" in screen_text(app))
        await pilot.press("1")
        await settle(pilot, lambda: "since you left" not in screen_text(app))
        told = True
        run.clock.advance_s(1)
        await settle(pilot, lambda: "· 3 purges freed 1.2G" in screen_text(app))
        assert "5 since you left (08:00)" in screen_text(app)


async def test_the_policy_in_force_is_shown_with_the_plan_and_why() -> None:
    async with opened(FakeRun(change=night.bad)) as (app, pilot):
        await pilot.press("p")
        await settle(pilot, lambda: "policy: what the guard goes by" in screen_text(app))
        text = " ".join(screen_text(app).split())
        for said in (
            "WILL ACT (warn, intervene, emergency)",
            "intervene 75% = 225M",
            "compact: this agent has no conversation to compact",
            "under 70% it would not",
            "2 checkpoint of the experiment: asked",
        ):
            assert said in text


def test_the_bell_rings_once_for_each_alert_that_comes() -> None:
    calm = snapshot_of()
    alert = Alert(key="memory", severity="error", text="", raised_us=1, bell=True)
    first = replace(calm, alerts=(alert,))
    second = replace(calm, alerts=(alert, replace(alert, key="disk")))
    silent = replace(calm, alerts=(replace(alert, raised_us=9, bell=False),))
    again = replace(calm, alerts=(replace(alert, raised_us=2),))
    bell = Bell()
    rung = [bell.rings(one) for one in (calm, first, first, second, first, silent, calm, again)]
    assert rung == [False, True, False, True, False, False, False, True]
    assert not Bell().rings(first), "what was there before is seen by who comes"
