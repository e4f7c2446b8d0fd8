"""The table of actions is the only place where a key gets its meaning."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from memwatch.domain.command import CommandInfo
from memwatch.domain.plan import Plan
from memwatch.ui.actions import ACTIONS, BY_ID
from memwatch.ui.app import VIEW_CHANGES, DashboardApp
from memwatch.ui.deeds.offers import refusal
from memwatch.ui.deeds.table import DEEDS
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
    does = verb in VIEW_CHANGES, verb in DEEDS, hasattr(DashboardApp, f"_do_{verb}")
    assert sum(does) == 1


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
    known = refusal(BY_ID["compact"], snapshot, view_only=False)
    assert known == "this agent has no conversation to compact", "the reason that the guard knows"


def test_a_plan_is_let_go_or_declined_only_while_it_waits() -> None:
    snapshot = snapshot_of()
    plan = Plan(id="1-warn", level="warn", rule="level", why="", steps=())
    for name in ("approve", "decline"):
        assert "no plan waits" in refusal(BY_ID[name], snapshot, view_only=False)
        for waits, dry in ((True, False), (False, True)):
            engine = replace(snapshot.engine, plan=replace(plan, dry=dry))
            why_not = refusal(BY_ID[name], replace(snapshot, engine=engine), view_only=False)
            assert (why_not == "") == waits


def test_a_viewer_that_may_only_look_cannot_act() -> None:
    for action in ACTIONS:
        reason = refusal(action, snapshot_of(), view_only=True)
        assert bool(reason) == (action.group == "act")


def test_nothing_is_asked_of_a_run_that_is_over_or_not_there() -> None:
    snapshot = snapshot_of()
    over = replace(snapshot, run=replace(snapshot.run, state="crashed"))
    for action in ACTIONS:
        said = refusal(action, over, view_only=False)
        assert ("the run is over" in said) == (action.group == "act" and action.id != "note")
    assert refusal(BY_ID["checkpoint"], None, view_only=False) == "no guard yet"


def test_the_readme_has_the_table_of_keys() -> None:
    keys = README.read_text().split("## Keys")[1].split("\n## ")[0]
    rows = [line for line in keys.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{one.shown}` | {one.label} | {one.help} |" for one in ACTIONS]


def test_command_states_are_those_of_the_contract() -> None:
    fields = CommandInfo.__struct_fields__
    assert {"id", "op", "state", "asked_us", "changed_us"} <= set(fields)
