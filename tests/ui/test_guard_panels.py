"""What the guard is at, what it cannot do, and what holds the agent, compared as text."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from memwatch.domain.command import CommandInfo
from memwatch.domain.control import Hold
from memwatch.domain.intervention import Intervention
from memwatch.domain.level import EngineMode
from memwatch.ui.frame import Frame
from memwatch.ui.panels.acts import acts
from memwatch.ui.panels.banner import banner
from memwatch.ui.panels.footer import next_step
from memwatch.ui.panels.header import header
from memwatch.ui.panels.policy import policy_lines
from tests.ui import night
from tests.ui.harness import frame_of, snapshot_of, texts


def changed(**changes: object) -> Frame:
    """Return a frame whose snapshot differs from the usual one."""
    return frame_of(snapshot=replace(snapshot_of(), **changes))


def test_what_the_guard_cannot_do_or_waits_for_is_said_on_every_screen() -> None:
    def said(**engine: object) -> list[str]:
        snapshot = snapshot_of()
        return texts(banner(changed(engine=replace(snapshot.engine, **engine)), 160))

    assert said() == []
    stop = " STOP FILE: no guard of yours acts while /home/op/STOP exists"
    assert said(stop_file="/home/op/STOP") == [stop]
    waits = " what the guard did at warn had no effect: it waits  (G: let it try again)"
    assert said(open_breakers=("warn",)) == [waits], "the next level acts: no alarm"
    gave_up = " GUARD GAVE UP at intervene: what it did had no effect  (G: let it try again)"
    assert said(open_breakers=("intervene",)) == [gave_up]
    assert said(policy_error="config.yaml line 3: unknown key") == [
        " POLICY NOT TAKEN, the one before is in force: config.yaml line 3: unknown key"
    ]
    assert said(plan=night.plan(state="proposed")) == [
        " GUARD ASKS (Y: look · N: no) to act at intervene: pause, checkpoint, purge"
    ]
    assert said(plan=night.plan(state="proposed", dry=True)) == [], "a plan in shadow asks nobody"
    assert said(plan=night.plan()) == [], "one in flight is told where things are done"


@pytest.mark.parametrize(
    ("hold", "said"),
    [
        (
            Hold(id="1", op="pause", owner="engine", effective=True, reason="memory 80%"),
            " PAUSED by the guard  (Z: release)  memory 80%",
        ),
        (
            Hold(id="1", op="read_only", owner="screen-7", effective=True, reason="key R"),
            " READ-ONLY by screen-7  (R: release)",
        ),
        (
            Hold(id="1", op="pause", owner="ctl"),
            " asked: PAUSED by ctl, the agent has not said yet  (Z: release)",
        ),
    ],
)
def test_a_hold_is_in_force_only_when_the_agent_says_so(hold: Hold, said: str) -> None:
    assert texts(banner(changed(holds=(hold,)), 120)) == [said]
    over = replace(snapshot_of(), holds=(hold,))
    over = replace(over, run=replace(over.run, state="ended"))
    assert not any("release" in row for row in texts(banner(frame_of(snapshot=over), 120)))


def test_what_the_guard_is_at_stands_above_the_keys_then_what_a_person_could_do() -> None:
    def line(**changes: object) -> list[str]:
        return texts(next_step(changed(**changes), 200))

    engine = snapshot_of().engine
    assert line() == []
    hint = " suggested: P purge workspace, expired first: ~40M, back in ~6m00s  (measured 3 times,"
    assert line(suggestion=night.SUGGESTION)[0].startswith(hint)
    busy = replace(engine, plan=night.plan())
    (at,) = line(suggestion=night.SUGGESTION, engine=busy)
    assert at.startswith(
        " guard: plan intervene: step 2 of 3, checkpoint of the experiment: asked  m"
    )
    waiting = replace(engine, waiting="cool-down of warn until 08:10")
    assert line(engine=waiting) == []
    assert line(engine=waiting, level="warn") == [" guard waits: cool-down of warn until 08:10"]


def test_plan_holds_and_requests_leave_the_table_half_of_the_room() -> None:
    rows = texts(acts(frame_of(snapshot=night.bad(snapshot_of())), 100, 7))
    assert rows[0].startswith("plan intervene: step 2 of 3")
    assert rows[1].startswith("pause by the guard, since 07:59, it ends if the guard dies: memory")
    assert rows[2].startswith("when")
    assert not any("checkpoint asked" in row for row in rows), "a step is told with its plan"
    many = tuple(Hold(id=f"{n}", op="pause", owner=f"v{n}") for n in range(9))
    rows = texts(acts(frame_of(snapshot=replace(night.bad(snapshot_of()), holds=many)), 100, 7))
    assert rows[3].startswith("when")


def test_rehearsals_are_no_requests() -> None:
    dry = CommandInfo(id="1", op="purge", state="asked", asked_us=0, changed_us=0, dry_run=True)
    assert not any("asked" in row for row in texts(acts(changed(commands=(dry,)), 100, 7)))


@pytest.mark.parametrize(
    ("mode", "will"),
    [
        ("act", "WILL NOT ACT (nothing is allowed)"),
        ("shadow", "WILL NOT ACT (another guard acts)"),
    ],
)
def test_a_guard_that_is_kept_from_acting_is_not_said_to_act(mode: EngineMode, will: str) -> None:
    snapshot = night.in_mode(snapshot_of(), mode, will=will)
    assert will in texts([header(frame_of(snapshot=snapshot), 160)])[0]
    said = "\n".join(texts(policy_lines(frame_of(snapshot=snapshot), 100)))
    assert will in said
    assert "carries its plans out" not in said


def test_a_share_that_does_not_fit_is_left_out_and_not_cut() -> None:
    one = Intervention(
        id="1", action="purge", tier="recent", before=6e6, freed_bytes=-8.5e6, freed_share=-1.42
    )
    lines = acts(frame_of(snapshot=replace(snapshot_of(), interventions=(one,))), 80, 12)
    said = "\n".join(texts(lines))
    assert "-8.5M" in said
    assert "-1…" not in said
