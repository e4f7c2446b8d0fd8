"""The table of actions is the only place where a key gets its meaning."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from memwatch.domain.command import CommandInfo
from memwatch.ui.actions import (
    ACTIONS,
    BY_ID,
    LEAK_MB_PER_MIN,
    checkpoint_command,
    leak_command,
    note_command,
    refusal,
)
from memwatch.ui.app import VIEW_CHANGES, DashboardApp
from tests.ui.harness import THEMES, snapshot_of

README = THEMES.parent / "README.md"


def test_no_key_means_two_things() -> None:
    keys = [key for action in ACTIONS for key in action.keys]
    assert len(keys) == len(set(keys))
    assert len(BY_ID) == len(ACTIONS)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.id)
def test_every_action_has_words_and_something_to_do(action: object) -> None:
    found = BY_ID[action.id]  # type: ignore[attr-defined]  # parametrize hands on objects
    verb = found.id.partition(":")[0]
    assert found.help
    assert found.label
    assert verb in VIEW_CHANGES or callable(getattr(DashboardApp, f"_do_{verb}"))


def test_capital_letters_act_and_all_else_only_looks() -> None:
    for action in ACTIONS:
        if action.id == "note":  # writes to the guard's own log, never to the agent
            continue
        acts = any(len(key) == 1 and key.isupper() for key in action.keys)
        assert acts == (action.group == "act"), action.id


def test_every_key_is_bound_as_the_table_says() -> None:
    bound = {
        binding.id: set(binding.key.split(","))
        for binding in DashboardApp.BINDINGS
        if not isinstance(binding, tuple) and binding.id
    }
    assert bound == {action.id: set(action.keys) for action in ACTIONS}


def test_an_operation_that_the_agent_does_not_take_is_refused_with_the_reason() -> None:
    snapshot = snapshot_of()
    assert refusal(BY_ID["checkpoint"], snapshot, view_only=False) == ""
    bare = replace(snapshot, run=replace(snapshot.run, ops=("purge",)))
    assert refusal(BY_ID["checkpoint"], bare, view_only=False) == (
        "the agent does not take 'checkpoint'; it takes purge"
    )
    assert refusal(BY_ID["note"], bare, view_only=False) == ""


def test_a_viewer_that_may_only_look_cannot_act() -> None:
    for action in ACTIONS:
        reason = refusal(action, snapshot_of(), view_only=True)
        assert bool(reason) == (action.group == "act")


def test_nothing_is_asked_of_a_run_that_is_over_or_not_there() -> None:
    snapshot = snapshot_of()
    over = replace(snapshot, run=replace(snapshot.run, state="crashed"))
    assert "over" in refusal(BY_ID["checkpoint"], over, view_only=False)
    assert refusal(BY_ID["checkpoint"], None, view_only=False) == "no guard yet"


def test_the_readme_has_the_table_of_keys() -> None:
    keys = README.read_text().split("## Keys")[1].split("\n## ")[0]
    rows = [line for line in keys.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{one.shown}` | {one.label} | {one.help} |" for one in ACTIONS]


def test_commands_name_what_they_want_and_who_asks() -> None:
    assert checkpoint_command().args == {"kind": "incremental"}
    assert leak_command(on=True).args == {"mb_per_min": LEAK_MB_PER_MIN}
    assert leak_command(on=False).args == {"mb_per_min": 0}
    note = note_command("  changed\x1b[31m the seed\n" + "x" * 300)
    assert note.op == "note"
    assert note.args["text"].startswith("changed\N{REPLACEMENT CHARACTER}[31m the seed")
    assert len(note.args["text"]) <= 160
    assert note.origin == "operator"


def test_command_states_are_those_of_the_contract() -> None:
    fields = CommandInfo.__struct_fields__
    assert {"id", "op", "state", "asked_us", "changed_us"} <= set(fields)
