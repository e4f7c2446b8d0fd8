"""What each key asks for: a pure function of the snapshot, by table."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from memwatch.domain.command import Command
from memwatch.domain.control import Hold
from memwatch.domain.snapshot import Snapshot
from memwatch.ui.actions import ACTIONS, BY_ID, LEAK_MB_PER_MIN
from memwatch.ui.deeds.agent import note
from memwatch.ui.deeds.choices import Request
from memwatch.ui.deeds.dialog import Question
from memwatch.ui.deeds.guard import first_question, wants_first_question
from memwatch.ui.deeds.table import DEEDS, deed
from tests.ui import night
from tests.ui.harness import snapshot_of

CAREFUL = ["checkpoint", "pause"]
NAME = "20260731-demo"


def held(op: str, *owners: str) -> Snapshot:
    holds = tuple(Hold(id=f"h-{owner}", op=op, owner=owner) for owner in owners)
    return replace(snapshot_of(), holds=holds)


def leaking(rate: float) -> Snapshot:
    snapshot = snapshot_of()
    return replace(snapshot, run=replace(snapshot.run, switches={"leak": rate}))


@pytest.mark.parametrize(
    ("action", "snapshot", "op", "args"),
    [
        ("checkpoint", snapshot_of(), "checkpoint", {"kind": "incremental"}),
        ("full", snapshot_of(), "checkpoint", {"kind": "full"}),
        ("compact", snapshot_of(), "compact", {}),
        ("leak", leaking(0), "leak", {"mb_per_min": LEAK_MB_PER_MIN}),
        ("leak", leaking(120), "leak", {"mb_per_min": 0}),
        ("decline", night.asking(snapshot_of()), "engine.decline", {"plan": "61f-intervene"}),
    ],
)
def test_what_takes_nothing_away_is_asked_at_once(
    action: str, snapshot: Snapshot, op: str, args: dict[str, Any]
) -> None:
    found = deed(action, snapshot)
    assert isinstance(found, Request)
    assert found.command == Command(op=op, args=args, why=f"key {BY_ID[action].shown}")
    assert "asked for" in found.sent or "told" in found.sent, "asked, never done"


QUESTIONS: list[tuple[str, Snapshot, list[tuple[str, dict[str, Any]]]]] = [
    ("pause", snapshot_of(), [("pause", {})]),
    ("pause", held("pause", "keep"), [("resume", {"owner": "keep"})]),
    ("pause", held("pause", "engine"), [("resume", {"owner": "engine"}), ("pause", {})]),
    (
        "pause",
        held("pause", "engine", "keep"),
        [("resume", {"owner": "engine"}), ("resume", {"owner": "keep"}), ("resume", {"all": True})],
    ),
    ("pause", held("read_only", "engine"), [("pause", {})]),
    ("read_only", snapshot_of(), [("read_only", {})]),
    ("read_only", held("read_only", "ctl"), [("read_write", {"owner": "ctl"})]),
    ("abort", snapshot_of(), [("abort_experiment", {"save": "best_effort"})]),
    ("end", snapshot_of(), [("end_run", {"save": "required"})]),
    ("approve", night.asking(snapshot_of()), [("engine.approve", {"plan": "61f-intervene"})]),
    ("approve", snapshot_of(), []),
    (
        "purge",
        snapshot_of(),
        [
            ("purge", {"how": "expired"}),
            ("purge", {"tier": "workspace"}),
            ("purge", {"tier": "recent"}),
            ("purge", {"tier": "verified"}),
            ("purge", {"tier": "history"}),
            ("purge", {}),
            ("reclaim", {}),
        ],
    ),
    (
        "engine",
        snapshot_of(),
        [
            ("engine.mode", {"mode": "shadow"}),
            ("engine.mode", {"mode": "ask"}),
            ("engine.mode", {"mode": "act", "allow": CAREFUL}),
            ("engine.mode", {"mode": "act"}),
            ("engine.mode", {"mode": "observe"}),
        ],
    ),
]


@pytest.mark.parametrize(("action", "snapshot", "asked"), QUESTIONS, ids=lambda it: str(it)[:16])
def test_what_is_asked_first_and_what_each_choice_hands_over(
    action: str, snapshot: Snapshot, asked: list[tuple[str, dict[str, Any]]]
) -> None:
    found = deed(action, snapshot)
    assert isinstance(found, Question)
    assert found.action == action
    assert found.choices[0].command is None, "the first leaves everything as it is"
    commands = [choice.command for choice in found.choices[1:]]
    assert [(one.op, one.args) for one in commands if one] == asked
    assert all(one and one.why.startswith("key ") for one in commands)
    assert all(choice.sent for choice in found.choices[1:])


def test_every_action_that_acts_has_the_confirmation_of_the_contracts() -> None:
    at_once, named = set(), set()
    for action in {a.id for a in ACTIONS if a.group == "act"} - {"note"}:
        found = deed(action, night.asking(snapshot_of()))
        if isinstance(found, Request):
            at_once.add(action)
        elif all(choice.typed for choice in found.choices[1:]):
            assert found.names == (NAME,)
            named.add(action)
    assert at_once == {"checkpoint", "full", "compact", "decline", "leak"}
    assert named == {"abort", "end"}
    assert set(DEEDS) == {a.id for a in ACTIONS if a.group == "act"} - {"note"}


def test_a_purge_of_verified_asks_for_the_name_and_no_other_does() -> None:
    found = deed("purge", snapshot_of())
    assert isinstance(found, Question)
    typed = [choice.command.args for choice in found.choices if choice.typed and choice.command]
    assert typed == [{"tier": "verified"}]
    assert [c.trial for c in found.choices] == [False, *[True] * 6, False], "reclaim has no trial"


def test_the_suggestion_stands_first_with_what_it_gained() -> None:
    found = deed("purge", replace(snapshot_of(), suggestion=night.SUGGESTION))
    assert isinstance(found, Question)
    first = found.choices[1]
    assert first.command == Command(
        op="purge", args={"tier": "workspace"}, why="key P, as suggested"
    )
    assert "~40M, back in ~6m00s; measured 3 times" in first.note
    commands = [choice.command.args for choice in found.choices if choice.command]
    assert commands.count({"tier": "workspace"}) == 1


@pytest.mark.parametrize(
    ("mean_s", "expect"),
    [(None, {"experiment": 100}), (600.0, {"experiment": 100}), (8.7, {})],
)
def test_an_abort_means_the_experiment_that_was_shown_where_it_lasts_so_long(
    mean_s: float | None, expect: dict[str, int]
) -> None:
    snapshot = snapshot_of()
    recovery = replace(snapshot.recovery, mean_experiment_s=mean_s)
    found = deed("abort", replace(snapshot, recovery=recovery))
    assert isinstance(found, Question)
    assert found.choices[1].command is not None
    assert found.choices[1].command.expect == expect
    assert ("experiment 100" in found.title) == bool(expect)


def test_a_plan_is_let_go_by_its_name_and_its_steps_are_shown() -> None:
    found = deed("approve", night.asking(snapshot_of()))
    assert isinstance(found, Question)
    assert night.WHY in found.lines
    assert "pause; then checkpoint of the experiment; then purge history" in found.lines[1]


def test_breakers_and_the_stop_file_are_said_where_the_mode_is_chosen() -> None:
    snapshot = night.in_mode(
        snapshot_of(),
        "shadow",
        open_breakers=("warn",),
        stop_file="/home/op/STOP",
        will="WILL NOT ACT (STOP file)",
    )
    found = deed("engine", snapshot)
    assert isinstance(found, Question)
    assert "WILL NOT ACT (STOP file)" in found.lines[0]
    assert "/home/op/STOP" in found.lines[1]
    assert found.choices[1].command is not None
    assert found.choices[1].command.op == "engine.reset"


def test_what_may_be_typed_is_the_run_id_or_the_name_of_its_directory() -> None:
    snapshot = snapshot_of()
    run = replace(snapshot.run, path="/runs/night-7", id="run-0f3a-night-7")
    found = deed("end", replace(snapshot, run=run))
    assert isinstance(found, Question)
    assert found.names == ("run-0f3a-night-7", "night-7")
    hostile = replace(snapshot.run, path="/runs/a\x1b[2J", id="run-0f3a")
    found = deed("end", replace(snapshot, run=hostile))
    assert isinstance(found, Question)
    assert found.names == ("run-0f3a",)


# -- the first question --------------------------------------------------------------------------


def fresh(**run: Any) -> Snapshot:
    snapshot = night.in_mode(snapshot_of(), "shadow", asked=False, will="WILL NOT ACT (shadow)")
    return replace(
        snapshot, run=replace(snapshot.run, **({"agent": "searcher", "profile": "engine"} | run))
    )


@pytest.mark.parametrize(
    ("snapshot", "view_only", "asks"),
    [
        (fresh(), False, True),
        (fresh(), True, False),
        (None, False, False),
        (fresh(agent="demo"), False, False),
        (fresh(profile="demo"), False, False),
        (fresh(state="ended"), False, False),
        (night.in_mode(fresh(), "act", asked=True), False, False),
        (night.in_mode(fresh(), "shadow", will=""), False, False),
    ],
)
def test_a_person_is_asked_once_for_each_run_of_an_own_agent(
    snapshot: Snapshot | None, view_only: bool, asks: bool
) -> None:
    assert wants_first_question(snapshot, view_only=view_only) == asks


def test_the_first_question_is_watch_careful_or_everything() -> None:
    choices = first_question(fresh()).choices
    assert choices[0].command is None
    assert [choice.command.args for choice in choices if choice.command] == [
        {"mode": "shadow"},
        {"mode": "act", "allow": CAREFUL},
        {"mode": "act"},
    ]


@pytest.mark.parametrize(
    ("allow", "told"),
    [
        (("checkpoint", "purge"), "checkpoint, purge; never end the run"),
        (("checkpoint", "end_run"), "checkpoint, end the run"),
        ((), "nothing: its `allow` is empty; never end the run"),
        (None, "memwatch policy shows what that is"),
    ],
)
def test_everything_is_what_this_policy_allows_and_no_more(
    allow: tuple[str, ...] | None, told: str
) -> None:
    careful = night.in_mode(fresh(), "act", allow=("checkpoint", "pause"), policy_allow=allow)
    assert first_question(careful).choices[-1].note == told


def test_a_note_is_inert_and_short() -> None:
    command = note("  changed\x1b[31m the seed\n" + "x" * 300).command
    assert command.op == "note"
    assert command.args["text"].startswith("changed\N{REPLACEMENT CHARACTER}[31m the seed")
    assert len(command.args["text"]) <= 160
    assert command.origin == "operator"
