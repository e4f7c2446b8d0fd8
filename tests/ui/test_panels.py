"""Panels, compared as text."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from memwatch.domain.command import CommandInfo
from memwatch.domain.control import Alert, Hold, SinceLeft, Suggestion
from memwatch.domain.intervention import Intervention
from memwatch.domain.snapshot import Event, GuardInfo, Light, Limit, Snapshot, Word
from memwatch.ui.actions import PANELS as PANEL_NAMES
from memwatch.ui.deeds.dialog import Dialog, Question
from memwatch.ui.deeds.table import DEEDS, deed
from memwatch.ui.frame import Frame, Link
from memwatch.ui.line import Line, text_of, width_of
from memwatch.ui.panels.acts import acts
from memwatch.ui.panels.banner import banner
from memwatch.ui.panels.dialog import dialog_lines
from memwatch.ui.panels.evidence import evidence_lines
from memwatch.ui.panels.footer import footer, next_step, tabs
from memwatch.ui.panels.growth import growth
from memwatch.ui.panels.header import header
from memwatch.ui.panels.lights import lights
from memwatch.ui.panels.log import LogPanel
from memwatch.ui.panels.policy import policy_lines
from memwatch.ui.panels.processes import processes
from memwatch.ui.panels.recovery import recovery
from memwatch.ui.panels.since import since_left
from memwatch.ui.view import View
from tests.ui import night
from tests.ui.harness import frame_of, snapshot_of, texts

SIZES = [(1, 1), (7, 2), (20, 5), (44, 9), (78, 19), (120, 12), (196, 30)]
PANELS: dict[str, Callable[[Frame, int, int], list[Line]]] = {
    "growth": growth,
    "acts": acts,
    "recovery": recovery,
    "since": since_left,
    "procs": processes,
    "log": lambda frame, width, height: LogPanel()(frame, width, height),
    "lights": lights,
    "header": lambda frame, width, _: [header(frame, width)],
    "banner": lambda frame, width, _: banner(frame, width),
    "next": lambda frame, width, _: next_step(frame, width),
    "footer": lambda frame, width, _: [footer(frame, width)],
    "tabs": lambda frame, width, _: [tabs(frame, width)],
}
HOSTILE = "\x1b[2J\x1b]0;owned\x07[red]记忆体[/] \u202e\u200b\r\n" + "x" * 500


def changed(**changes: object) -> Frame:
    """Return a frame whose snapshot differs from the usual one."""
    return frame_of(snapshot=replace(snapshot_of(), **changes))


@pytest.mark.parametrize("name", PANELS)
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("frame", [frame_of(), Frame(target="demo")], ids=["full", "empty"])
def test_no_line_is_too_wide_and_no_panel_too_high(
    name: str, size: tuple[int, int], frame: Frame
) -> None:
    lines = PANELS[name](frame, *size)
    assert max((width_of(line) for line in lines), default=0) <= size[0]
    if name in PANEL_NAMES:
        assert len(lines) <= size[1]


def hostile_snapshot() -> Snapshot:
    """Return a snapshot in which every string that comes from outside attacks the terminal."""
    good = snapshot_of()
    return replace(
        good,
        run=replace(good.run, id=HOSTILE, host=HOSTILE, phase=HOSTILE, end_reason=HOSTILE),
        guard=GuardInfo(recording=False, not_recording_why=HOSTILE),
        lights=tuple(replace(light, figure=HOSTILE, meaning=HOSTILE) for light in good.lights),
        limits=replace(good.limits, binding=Limit(name=HOSTILE, bytes=300_000_000)),
        tiers=tuple(replace(tier, name=HOSTILE) for tier in good.tiers),
        interventions=(Intervention(id=HOSTILE, action=HOSTILE, tier=HOSTILE, why=HOSTILE),),
        commands=(
            CommandInfo(
                id=HOSTILE, op=HOSTILE, state="asked", asked_us=0, changed_us=0, detail=HOSTILE
            ),
        ),
        events=(Event(seq=1, t_us=good.t_us, kind="note", text=HOSTILE, origin=HOSTILE),),
        processes=replace(
            good.processes,
            members=tuple(replace(one, name=HOSTILE) for one in good.processes.members),
        ),
        checkpoints=replace(good.checkpoints, incomplete=(HOSTILE,)),
        profile_note=HOSTILE,
        engine=replace(
            good.engine,
            by=HOSTILE,
            policy=HOSTILE,
            policy_error=HOSTILE,
            stop_file=HOSTILE,
            waiting=HOSTILE,
            soft_why=HOSTILE,
            missing={HOSTILE: HOSTILE},
            plan=night.plan(why=HOSTILE, detail=HOSTILE),
            last=night.plan(why=HOSTILE, state="failed", detail=HOSTILE),
        ),
        holds=(Hold(id="1", op="pause", owner=HOSTILE, reason=HOSTILE),),
        suggestion=Suggestion(op="purge", text=HOSTILE, basis=HOSTILE),
        since=SinceLeft(from_us=0, lines=(HOSTILE,)),
        alerts=(Alert(key=HOSTILE, severity="error", text=HOSTILE, raised_us=0),),
    )


@pytest.mark.parametrize("name", PANELS)
def test_hostile_strings_are_inert(name: str) -> None:
    frame = frame_of(snapshot=hostile_snapshot(), said="")
    for line in PANELS[name](frame, 120, 30):
        assert text_of(line).isprintable()


@pytest.mark.parametrize("action", DEEDS)
def test_hostile_strings_are_inert_in_questions(action: str) -> None:
    snapshot = hostile_snapshot()
    for change in (snapshot, night.asking(snapshot)):
        asked = deed(
            action,
            replace(
                change,
                engine=replace(change.engine, plan=night.plan(why=HOSTILE, state="proposed")),
            ),
        )
        if isinstance(asked, Question):
            for at in range(len(asked.choices)):
                lines = dialog_lines(Dialog(question=asked, at=at), 76, 40)
                assert all(text_of(line).isprintable() for line in lines)
                assert all(width_of(line) <= 76 for line in lines)


def test_the_policy_is_inert_and_fits() -> None:
    for frame in (frame_of(snapshot=hostile_snapshot()), frame_of(), Frame()):
        for width in (30, 90):
            lines = policy_lines(frame, width)
            assert all(text_of(line).isprintable() and width_of(line) <= width for line in lines)


@pytest.mark.parametrize("panel", PANEL_NAMES)
def test_evidence_is_inert_and_fits(panel: str) -> None:
    for frame in (frame_of(snapshot=hostile_snapshot()), frame_of()):
        lines = evidence_lines(panel, frame, 76)
        assert all(text_of(line).isprintable() and width_of(line) <= 76 for line in lines)
        assert any("source" in text for text in texts(lines))


# -- header and banner -----------------------------------------------------------------------


def test_header_says_which_run_and_gives_way_by_importance() -> None:
    frame = frame_of()
    assert text_of(header(frame, 130)) == (
        " memwatch  20260731-demo  @ gpu01  pid 4242  RUNNING  exp 100  exploration  up 15m00s"
        "  guard acts" + " " * 24 + "08:00:00 "
    )
    assert text_of(header(frame, 50)) == " 20260731-demo  RUNNING  guard acts      08:00:00 "
    assert text_of(header(frame, 20)) == "RUNNING 20260731-de…"


def test_a_narrow_header_says_whether_the_guard_acts() -> None:
    frame = frame_of()
    assert text_of(header(frame, 36)) == "RUNNING guard acts 20260731-demo"
    assert text_of(header(frame, 30)) == "RUNNING guard acts 20260731-d…"
    assert frame.snapshot is not None
    watched = Frame(snapshot=night.in_mode(frame.snapshot, "shadow"))
    assert text_of(header(watched, 40)) == "RUNNING WILL NOT ACT (shadow) 20260731-…"
    assert text_of(header(watched, 34)) == "RUNNING WILL NOT ACT 20260731-demo"


def test_a_long_reason_not_to_act_leaves_the_name_and_the_time_at_80() -> None:
    engine = replace(
        snapshot_of().engine, will="WILL NOT ACT (a checkpoint store takes no commands)"
    )
    run = replace(snapshot_of().run, id="directory-lora-run-7d407587")
    shown = text_of(header(changed(engine=engine, run=run), 80))
    assert "directory-lora-run-7d407587" in shown
    assert "WILL NOT ACT" in shown
    assert shown.endswith(" 08:00:00 ")


def test_what_is_wrong_with_the_reading_stands_in_the_header_at_80() -> None:
    assert "guard acts" in text_of(header(frame_of(), 80))
    source = replace(snapshot_of().source, watch="polling", damaged=3, gaps=1)
    shown = text_of(header(changed(source=source), 80))
    assert "  polling, 3 damaged, 1 gap  " in shown
    assert "RUNNING" in shown
    backfill = replace(snapshot_of().guard, backfill_share=0.4)
    assert "  history 40%  " in text_of(header(changed(guard=backfill), 80))


def test_the_header_does_not_say_that_a_guard_watches_that_is_gone() -> None:
    assert "  no guard  " in text_of(header(frame_of(link=Link(state="lost")), 80))
    assert "  guard silent  " in text_of(header(frame_of(link=Link(quiet_s=9.0)), 80))


def test_a_past_run_without_a_guard_is_not_a_run_that_is_not_recorded() -> None:
    guard = GuardInfo(engine="off", recording=None)
    assert banner(changed(guard=guard), 80) == []


def test_banner_is_silent_when_all_is_well() -> None:
    assert banner(frame_of(), 80) == []


def test_not_recording_comes_first_and_is_loud() -> None:
    since = 1_800_000_000_000_000 - 3_600_000_000
    guard = GuardInfo(recording=False, not_recording_since_us=since, not_recording_why="disk full")
    frame = replace(changed(guard=guard), view=View(frozen=True))
    lines = banner(frame, 80)
    assert texts(lines)[0] == " NOT RECORDING since 07:00 (disk full)"
    assert lines[0][0][1] == "alarm"
    assert width_of(lines[0]) == 80


def test_a_lost_guard_is_said_with_the_age_of_what_is_shown() -> None:
    link = Link(state="lost", why="no guard answers on /a/long/path.sock", age_s=12.3)
    frame = frame_of(link=link)
    assert texts(banner(frame, 80)) == [
        " guard gone since 08:00 · restart: memwatch guard 20260731-demo --detach"
    ]
    assert frame.stale


def test_a_guard_that_does_not_answer_is_said_with_how_long() -> None:
    frame = frame_of(link=Link(state="live", age_s=9.0, quiet_s=7.2))
    words = " guard does not answer for 7s: figures are old · to replace it: kill -KILL 4243"
    assert texts(banner(frame, 80)) == [words]
    assert frame.stale
    told = frame_of(link=Link(state="silent", quiet_s=7.2))
    assert texts(banner(told, 80)) == [words], "as soon as a call was in vain"
    assert "guard silent" in text_of(header(told, 80))


def test_a_guard_that_answers_without_new_figures_is_said_too() -> None:
    frame = frame_of(link=Link(state="live", age_s=9.0, quiet_s=0.5))
    assert texts(banner(frame, 80)) == [
        " guard answers, but has no new figures for 9s: these are old"
    ]
    assert frame.stale


def test_a_run_that_is_over_has_no_news_and_that_is_no_alarm() -> None:
    run = replace(snapshot_of().run, state="ended", ended_us=snapshot_of().t_us)
    frame = replace(changed(run=run), link=Link(state="live", age_s=300.0, quiet_s=1.0))
    assert [text.split(":")[0] for text in texts(banner(frame, 80))] == [" PAST RUN"]
    assert not frame.stale
    assert replace(frame, link=Link(state="lost", why="x")).stale
    assert replace(frame, link=Link(state="live", quiet_s=9.0)).stale


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ("ended", " PAST RUN: ended 07:30, 30m00s ago (budget spent)"),
        ("crashed", " PAST RUN: crashed 07:30, 30m00s ago (budget spent)"),
    ],
)
def test_a_past_run_says_so(state: str, text: str) -> None:
    snapshot = snapshot_of()
    ended_us = snapshot.t_us - 1_800_000_000
    run = replace(snapshot.run, state=state, ended_us=ended_us, end_reason="budget spent")
    frame = replace(changed(run=run), now_us=snapshot.t_us + 7_000_000)
    assert texts(banner(frame, 80)) == [text]


def test_a_look_back_in_time_and_a_frozen_screen_are_said() -> None:
    end_us = 1_800_000_000_000_000 - 600_000_000
    back = frame_of(view=View(end_us=end_us, window_s=1800.0))
    assert texts(banner(back, 80)) == [
        " chart and log of 07:20:00–07:50:00, figures are now  (Esc: back to now)"
    ]
    frozen = frame_of(view=View(frozen=True))
    assert texts(banner(frozen, 80)) == [" FROZEN at 08:00:00, recording goes on  (space: move on)"]


# -- lights ----------------------------------------------------------------------------------


def test_lights_stand_in_two_lines_at_80() -> None:
    assert texts(lights(frame_of(), 80, 24)) == [
        " MEMORY ok 33% 99M/300M  +1.2M/min  limit in 41–55min",
        " DISK ok 212G │ PROCS watch 3 │ CKPT ok 9.0s ago │ STEP ok 0.0ms ago  PROCS: 1…",
    ]


def test_a_reason_at_the_end_of_the_lights_says_whose_it_is() -> None:
    found = (
        Light(name="DISK", word="ok", figure="9G"),
        Light(name="CKPT", word="WARN", figure="44s ago", meaning="bloat"),
        Light(name="STEP", word="watch", figure="9s ago", meaning="paused"),
    )
    memory = Light(name="MEMORY", word="ok", figure="1%")
    assert texts(lights(changed(lights=(memory, *found)), 80, 24))[1].endswith("  CKPT: bloat")
    alone = (memory, found[0], found[2])
    assert texts(lights(changed(lights=alone), 80, 24))[1].endswith("STEP watch 9s ago  paused")


def test_lights_stand_in_columns_where_there_is_room() -> None:
    top, below = texts(lights(frame_of(), 120, 40))
    assert top.startswith(" MEMORY ok 33% 99M/300M       │DISK ok 212G         │PROCS watch 3")
    assert below.startswith(" limit in 41–55min            │run holds 31M        │1 left")


def test_lights_take_a_line_each_in_a_tiny_terminal() -> None:
    assert texts(lights(frame_of(), 40, 12))[:4] == [
        "MEMORY ok      33% 99M/300M",
        "               limit in 41–55min",
        "DISK   ok      212G",
        "               run holds 31M",
    ]
    assert texts(lights(frame_of(), 40, 8))[0] == "MEMORY ok      33% 99M/300M  limit in 4…"


@pytest.mark.parametrize(
    ("word", "style"),
    [("ok", "ok"), ("watch", "watch"), ("WARN", "warn"), ("ACT", "act"), ("CRIT", "crit")],
)
def test_each_word_of_a_light_has_its_style(word: Word, style: str) -> None:
    light = Light(name="MEMORY", word=word, figure="1%")
    lines = lights(changed(lights=(light,)), 40, 12)
    assert (f"{word:<8}", style) in lines[0]
