"""Updates are logged as differences, also of values that are changed in place (R6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Struct

from memwatch.agent.memory.entry import ABSENT, Change
from memwatch.agent.memory.values import Types
from memwatch.domain.errors import LogError, UnkeepableError
from memwatch.wal.diff import apply
from tests.agent.memory.holding import Held

Hold = Callable[..., Held]


class Notes(Struct):
    """A class of the agent's own."""

    title: str
    lines: list[str]


def calls(count: int) -> list[dict[str, Any]]:
    return [{"call": n, "text": f"result of call {n}"} for n in range(count)]


def test_an_update_is_logged_as_its_difference(hold: Hold) -> None:
    held = hold()
    held.tier.put("h", calls(20))
    held.tier.put("h", calls(21))
    update = held.last("update")
    assert update["diff"] == [{"op": "add", "path": "/20", "value": calls(21)[20]}]
    assert (update["from"], "value" in update) == (1, False)
    assert held.replay() == held.state()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (1, 2),
        ({"n": 1}, {"n": 2}),
        (calls(20), calls(60)),
        (calls(20), ["something", "else", "of some length", "that shares nothing with it"] * 4),
        ("text " * 20, {"text": "text " * 20}),
    ],
    ids=["tiny", "small", "longer", "other", "other type"],
)
def test_a_difference_that_is_no_shorter_is_not_used(hold: Hold, before: Any, after: Any) -> None:
    held = hold()
    held.tier.put("a", before)
    held.tier.put("a", after)
    assert held.last("update")["value"] == after


def test_an_equal_value_costs_an_empty_difference_and_keeps_its_blob(hold: Hold) -> None:
    held = hold()
    blob = held.tier.put("a", "x" * 9000).blob
    entry = held.tier.put("a", "x" * 9000)
    assert held.last("update")["diff"] == []
    assert entry.blob == blob is not None
    held.tier.delete("a")
    assert held.blobs.collect(held.log.last_lsn)[0] == 1


def test_a_large_value_needs_no_new_blob_for_a_small_change(hold: Hold) -> None:
    held = hold()
    held.tier.put("a", calls(500))
    assert held.tier.put("a", calls(501)).blob is None
    assert held.log.bytes_written < 1000
    assert held.replay() == held.state()


def test_objects_of_a_class_differ_by_their_members(hold: Hold) -> None:
    held = hold(types=Types([Notes]))
    held.tier.put("n", Notes("title", ["line"] * 30))
    held.tier.put("n", Notes("title", ["line"] * 31))
    assert held.last("update")["type"] == "Notes"
    assert len(held.last("update")["diff"]) == 1
    assert held.replay() == held.state()


@pytest.mark.parametrize("how", ["compress", "reclaim"])
def test_a_value_that_is_not_an_object_just_now(hold: Hold, how: Any) -> None:
    """Packed text is at hand; for a blob's sake nobody reads the disk."""
    held = hold()
    held.tier.put("h", calls(100))
    held.tiers.purge(how=how, cause="operator")
    held.tier.put("h", calls(101))
    assert ("diff" in held.last("update")) == (how == "compress")
    assert held.replay() == held.state()


def grow(held: Held, turns: int) -> None:
    for turn in range(turns):
        history = held.tier.get("h")
        history.append({"call": turn})
        held.tier.put("h", history)


def test_a_value_changed_in_place_is_logged_whole_once_then_by_differences(hold: Hold) -> None:
    held = hold()
    held.tier.put("h", calls(50))
    grow(held, 5)
    ways = ["diff" if "diff" in r.members else "whole" for r in held.records("update")]
    assert ways == ["whole", "diff", "diff", "diff", "diff"]
    assert held.replay() == held.state()


def test_the_text_that_makes_it_cheap_is_counted(hold: Hold) -> None:
    held = hold()
    held.tier.put("h", calls(50))
    grow(held, 1)
    entry = held.tier.entry("h")
    assert entry is not None
    assert entry.shadow is not None
    without = held.tier.put("other", [*calls(50), {"call": 0}]).bytes
    assert entry.bytes - without == pytest.approx(len(entry.shadow), abs=200)


def test_history_that_grows_in_place_costs_what_is_added(hold: Hold) -> None:
    held = hold()
    held.tier.put("h", [])
    grow(held, 300)
    assert held.log.bytes_written < 300 * 330
    assert held.replay() == held.state()


def test_a_part_that_is_shared_and_changed_does_no_harm(hold: Hold) -> None:
    held = hold()
    shared = calls(30)
    held.tier.put("a", {"list": shared})
    shared[3]["text"] = "changed"
    held.tier.put("a", {"list": shared})
    assert held.replay() == held.state()


def test_a_capture_keeps_what_an_entry_held_before_it_was_changed_in_place(hold: Hold) -> None:
    held = hold()
    held.tier.put("h", calls(50))
    grow(held, 1)
    captured = held.tiers.capture().tiers["recent"]["h"]
    grow(held, 1)
    assert captured.value is ABSENT
    assert captured.packed == Types().encode([*calls(50), {"call": 0}]).canonical


def test_what_was_changed_in_place_and_never_put_again_can_be_logged(hold: Hold) -> None:
    held = hold()
    held.tier.put("h", calls(3))
    assert held.tier.log_mutation("h") is False
    held.tier.peek("h").append("more")
    assert held.tier.log_mutation("h") is True
    assert held.kinds() == ["put", "update", "error"]
    assert held.last("error")["key"] == "h"
    assert "'h' of tier recent" in held.last("error")["message"]
    assert held.replay() == held.state()
    assert held.tier.log_mutation("h") is False
    held.tier.peek("h").append(float("nan"))
    with pytest.raises(UnkeepableError, match="'h' of tier recent"):
        held.tier.log_mutation("h")


def test_what_was_changed_in_place_is_logged_before_it_leaves_memory(hold: Hold) -> None:
    held = hold()
    held.tier.put("h", "x" * 9000)
    held.tier.put("l", calls(200))
    held.tier.get("l").append("more")
    held.tiers.purge(how="reclaim", cause="operator")
    assert held.tier.get("l")[-1] == "more"
    assert held.replay() == held.state()
    held.tier.get("l").append(float("nan"))
    done = held.tiers.purge(how="reclaim", cause="operator")
    assert "'l' of tier recent" in done.refused
    assert str(held.tier.get("l")[-1]) == "nan"


# Net changes.


def test_changes_hold_all_differences_since_they_were_taken(hold: Hold) -> None:
    held = hold()
    base = held.tier.put("h", calls(30))
    assert held.tiers.take_changes() == {"recent": {"h": Change(lsn=1, was_present=False)}}
    held.tier.put("h", calls(31))
    held.tier.put("h", calls(32))
    change = held.tiers.take_changes()["recent"]["h"]
    assert (change.lsn, change.was_present, change.base_lsn) == (3, True, base.lsn)
    assert change.ops is not None
    assert apply(calls(30), change.ops) == calls(32)
    assert held.tiers.take_changes() == {"recent": {}}


@pytest.mark.parametrize(
    "last", [list(range(100, 200)), calls(70)], ids=["no difference", "many differences"]
)
def test_once_only_the_whole_says_it_no_differences_are_kept(hold: Hold, last: Any) -> None:
    held = hold()
    held.tier.put("h", calls(30))
    held.tiers.take_changes()
    for count in range(31, 71):
        held.tier.put("h", calls(count))
    held.tier.put("h", last)
    held.tier.put("h", [*last, "more"])
    assert held.tiers.take_changes()["recent"]["h"].ops is None


def test_what_came_and_went_between_two_checkpoints_is_no_change(hold: Hold) -> None:
    held = hold()
    held.tier.put("old", 1)
    held.tiers.take_changes()
    held.tier.put("new", 1)
    held.tier.delete("new")
    held.tier.delete("old")
    assert held.tiers.take_changes()["recent"] == {
        "old": Change(lsn=4, was_present=True, base_lsn=1)
    }


def test_changes_of_a_failed_checkpoint_are_merged_under_newer_ones(hold: Hold) -> None:
    held = hold()
    for key in ("grown", "deleted", "replaced", "untouched", "again"):
        held.tier.put(key, calls(30))
    held.tiers.take_changes()
    for key in ("grown", "deleted", "replaced", "untouched"):
        held.tier.put(key, calls(31))
    held.tier.put("brief", 1)
    held.tier.put("new", 1)
    held.tier.delete("again")
    taken = held.tiers.take_changes()
    held.tier.put("grown", calls(32))
    held.tier.delete("deleted")
    held.tier.put("replaced", 1)
    held.tier.delete("brief")
    held.tier.put("new", 2)
    held.tier.put("again", 1)
    held.tiers.give_back(taken)
    merged = held.tiers.take_changes()["recent"]
    grown = merged["grown"]
    assert grown.ops is not None
    assert (apply(calls(30), grown.ops), grown.base_lsn) == (calls(32), 1)
    untouched = merged["untouched"].ops
    assert untouched is not None
    assert apply(calls(30), untouched) == calls(31)
    assert [merged[key].ops for key in ("deleted", "replaced", "new", "again")] == [None] * 4
    present = {key: change.was_present for key, change in merged.items()}
    assert present == {
        "grown": True,
        "deleted": True,
        "replaced": True,
        "untouched": True,
        "new": False,
        "again": True,
    }


def test_a_refused_update_leaves_the_changes_as_they_were(hold: Hold) -> None:
    held = hold()
    held.tier.put("h", calls(30))
    held.tiers.take_changes()
    held.log_files.fail_all("write")
    with pytest.raises(LogError):
        held.tier.put("h", calls(31))
    assert held.tiers.take_changes() == {"recent": {}}


def test_a_change_longer_than_a_line_of_the_log_goes_to_a_blob(hold: Hold) -> None:
    held = hold()
    before = ["a" * 1_000] * 40_000
    held.tier.put("h", before)
    after = [*before, "b" * 17_000_000]
    held.tier.put("h", after)
    assert held.last("update")["blob_bytes"] > 57_000_000
    assert held.tier.get("h") == after
    assert held.tiers.take_changes()["recent"]["h"].ops is None


def test_differences_that_grew_long_are_not_kept_for_the_checkpoint(hold: Hold) -> None:
    held = hold()
    value = ["a" * 1_000] * 4_000
    held.tier.put("h", value)
    for puts, kept in ((2, True), (3, False)):
        held.tiers.take_changes()
        for _ in range(puts):
            value = [*value, "b" * 400_000]
            held.tier.put("h", value)
            assert "diff" in held.last("update")
        assert (held.tiers.take_changes()["recent"]["h"].ops is not None) is kept
