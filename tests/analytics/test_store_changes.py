"""What is told of a store: each change once, nothing that only fell out of sight."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memwatch.analytics.store_changes import MOST_TOLD, store_changes
from memwatch.domain.checkpoints import Checkpoint, CheckpointState, StoreLook

S = 1_000_000
T0 = 1_800_000_000 * S


def saved(number: int, state: CheckpointState = "committed", **more: Any) -> Checkpoint:
    """Return a checkpoint that was begun `number` minutes after T0 and took 2 s."""
    began_us = T0 + number * 60 * S
    done = {"committed_us": began_us + 2 * S, "duration_s": 2.0} if state == "committed" else {}
    members: dict[str, Any] = {"kind": "full", "bytes": 100, "step": number, **done, **more}
    return Checkpoint(id=f"checkpoint-{number}", state=state, began_us=began_us, **members)


def look(*checkpoints: Checkpoint, count: int | None = None, why: str = "") -> StoreLook:
    found = len(checkpoints) if count is None else count
    return StoreLook(source="directory", t_us=T0, checkpoints=checkpoints, count=found, why=why)


def told(before: StoreLook | None, after: StoreLook, since_us: int = T0) -> list[str]:
    return [f"{one['event']} {one['id']}" for one in store_changes(before, after, since_us)]


def test_what_becomes_complete_broken_or_goes_is_told() -> None:
    before = look(saved(1), saved(2, "begun"), saved(3, "begun"), saved(4))
    after = look(saved(2), saved(3, "incomplete"), saved(4), saved(5, "begun"))
    assert told(before, after) == [
        "committed checkpoint-2",
        "incomplete checkpoint-3",
        "deleted checkpoint-1",
    ]
    assert told(after, after) == []


def test_a_record_holds_what_is_known_of_it() -> None:
    (full,) = store_changes(look(), look(saved(7, thread="t-1")), T0)
    assert full == {
        "event": "committed",
        "id": "checkpoint-7",
        "kind": "full",
        "bytes": 100,
        "duration_us": 2 * S,
        "step": 7,
        "thread": "t-1",
    }
    (broken,) = store_changes(look(), look(saved(7, "incomplete", bytes=None)), T0)
    assert "bytes" not in broken
    assert "duration_us" not in broken


def test_the_first_look_tells_only_what_happened_since() -> None:
    there = look(saved(1), saved(5), saved(6, "incomplete"))
    assert told(None, there, T0 + 100 * 60 * S) == []
    assert told(None, there, T0 + 3 * 60 * S) == [
        "committed checkpoint-5",
        "incomplete checkpoint-6",
    ]


def test_one_that_falls_out_of_sight_is_not_deleted() -> None:
    before = look(saved(1), saved(2), saved(3))
    after = look(saved(3), saved(4), count=9)
    assert told(before, after) == ["committed checkpoint-4"]
    later = look(saved(4), saved(5), count=9)
    gone = look(saved(2), saved(4), saved(5), count=9)
    assert told(look(saved(2), saved(3), saved(4)), gone) == [
        "committed checkpoint-5",
        "deleted checkpoint-3",
    ]
    assert told(after, later) == ["committed checkpoint-5"]


def test_a_look_that_could_not_see_all_tells_no_deletion() -> None:
    assert told(look(saved(1), saved(2)), look(saved(2), why="the disk does not answer")) == []


def test_many_at_once_are_told_as_a_sum() -> None:
    after = look(*(saved(number) for number in range(MOST_TOLD + 30)))
    found = store_changes(look(), after, T0)
    assert len(found) == MOST_TOLD + 1
    summed = {"event": "committed", "id": "30 more", "kind": "full", "bytes": 3000, "count": 30}
    assert found[0] == summed
    assert found[-1]["id"] == f"checkpoint-{MOST_TOLD + 29}"


@st.composite
def looks(draw: st.DrawFn) -> list[StoreLook]:
    """Return looks at a store whose every checkpoint is in sight."""
    states: st.SearchStrategy[CheckpointState] = st.sampled_from(
        ["begun", "committed", "incomplete", "damaged"]
    )
    found = []
    for _ in range(draw(st.integers(1, 6))):
        there = draw(st.dictionaries(st.integers(0, 9), states, max_size=6))
        found.append(look(*(saved(number, state) for number, state in sorted(there.items()))))
    return found


@given(looks())
def test_told_one_after_the_other_they_say_what_lies_there(course: list[StoreLook]) -> None:
    known: dict[str, str] = {}
    before = look()
    for after in course:
        for one in store_changes(before, after, T0):
            if one["event"] == "deleted":
                known.pop(one["id"], None)
            else:
                known[one["id"]] = one["event"]
        before = after
        states = {one.id: one.state for one in after.checkpoints}
        assert set(known) <= set(states)
        for name, state in states.items():
            if state == "committed":
                assert known[name] == "committed"
            elif state in ("incomplete", "damaged"):
                assert known[name] == "incomplete"


@given(looks())
def test_nothing_is_told_twice(course: list[StoreLook]) -> None:
    for one in course:
        assert store_changes(one, replace(one, t_us=one.t_us + S), T0) == []
