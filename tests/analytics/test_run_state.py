"""The log folded: newest wins whatever the order of segments, counts add up, nothing raises."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memwatch.analytics.run_state import RunState
from memwatch.domain.record import Fault, Record
from tests.builders import record, tiers


def log() -> list[Record]:
    return [
        record(1, "run.begin", 0, start_id="s1", pid=7, boot="b", limits={"memory_bytes": 300}),
        record(2, "experiment.begin", 1, x=1, title="a", phase="exploration"),
        record(3, "tool.end", 2, x=1, name="compress"),
        record(4, "experiment.end", 3, x=1, status="kept", duration_us=2_000_000),
        record(5, "checkpoint.begin", 4, id="c1", kind="incremental"),
        record(6, "checkpoint.commit", 5, id="c1", kind="incremental", bytes=10, duration_us=9),
        record(7, "purge.end", 6, tier="recent", cause="retention", freed_bytes=5, entries=1),
        record(8, "sample", 7, tiers=tiers(workspace=3_000_000)),
        record(9, "experiment.begin", 8, x=2, title="b", phase="verification"),
        record(10, "checkpoint.begin", 9, id="c2", kind="full"),
        record(11, "checkpoint.abort", 10, id="c2", reason="disk full"),
        record(12, "experiment.end", 11, x=2, status="discarded", duration_us=1_000_000),
    ]


def view(state: RunState) -> tuple[Any, ...]:
    return (
        state.records,
        state.last_lsn,
        state.experiments,
        state.phase,
        state.experiment,
        [end.lsn for end in state.recent_experiments],
        [(c.id, c.state, c.kind) for c in state.checkpoints.values()],
        [purge.lsn for purge in state.purges],
        state.tiers,
        state.start.pid if state.start else None,
        state.steps,
        state.progress,
        state.checkpoint_counts,
        state.purge_count,
    )


@given(st.lists(st.integers(1, 11), unique=True, max_size=5), st.randoms())
def test_any_order_of_segments_gives_the_same_state(cuts: list[int], dice: Any) -> None:
    whole = RunState()
    whole.fold(log())
    edges = [0, *sorted(cuts), len(log())]
    pieces = [log()[low:high] for low, high in pairwise(edges)]
    dice.shuffle(pieces)
    shuffled = RunState()
    for piece in pieces:
        shuffled.fold(piece)
    assert view(shuffled) == view(whole)


def test_what_the_log_says() -> None:
    state = RunState()
    state.fold(log())
    assert state.experiments == {"kept": 1, "discarded": 1}
    assert state.phase == "verification"
    assert state.start is not None
    assert state.start.memory_limit_bytes == 300
    assert [c.state for c in state.checkpoints.values()] == ["committed", "aborted"]
    assert list(state.checkpoints.values())[1].reason == "disk full"
    assert state.checkpoint_counts == {"committed": 1, "aborted": 1}
    assert state.purge_count == 1


def test_a_new_start_voids_the_end_of_the_former_one() -> None:
    state = RunState()
    state.fold([record(1, "run.begin", start_id="a"), record(2, "run.end", status="done")])
    assert state.end is not None
    state.fold([record(3, "run.begin", start_id="b")])
    assert state.end is None
    assert state.starts == 2


def test_numbers_that_come_again_are_newer_than_the_lost_ones() -> None:
    state = RunState()
    state.fold([record(9, "mode", mode="paused")])
    state.fold_faults([Fault("repeated", 1, 0, lsn=5)])
    state.fold([record(5, "mode", mode="running")])
    assert state.mode == "running"
    assert state.faults["repeated"] == 1


def test_progress_goes_by_the_order_of_the_log_not_by_the_wall_clock() -> None:
    """A clock that was set back must not freeze the age of the last step."""
    state = RunState()
    state.fold([record(1, "step.end", 5000), record(2, "step.end", 10)])
    assert state.progress.lsn == 2
    assert state.progress.t_us == record(2, "step.end", 10).t_us


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
KINDS = [
    *("run.begin", "run.end", "mode", "experiment.begin", "experiment.end", "step.end"),
    *("tool.end", "sample", "purge.end", "checkpoint.begin", "checkpoint.commit"),
    *("checkpoint.abort", "command", "note", "error", "level", "gap", "strange"),
]
NAMES = [
    *("id", "kind", "state", "tiers", "limits", "pid", "start_id", "boot", "title", "phase"),
    *("x", "status", "duration_us", "bytes", "tier", "best", "cause", "reason", "detail"),
    *("mode", "metrics"),
]


@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(NAMES), anything))
def test_members_of_any_type_never_raise(kind: str, members: dict[str, Any]) -> None:
    from memwatch.analytics.narrate import event_of

    one = Record(3, 1, 1, kind, members)
    state = RunState()
    state.fold([one])
    assert state.records == 1
    event = event_of(one)
    assert event is None or event.text.isprintable()


def test_unknown_kinds_are_counted_and_told() -> None:
    from memwatch.analytics.narrate import event_of

    state = RunState()
    strange = record(1, "quantum.leap", where="\x1b[2J")
    state.fold([strange])
    assert state.unknown == 1
    event = event_of(strange)
    assert event is not None
    assert "quantum.leap" in event.text


def test_a_switch_is_the_present_starts_own_whatever_the_order() -> None:
    records = [
        record(1, "run.begin", 0, start_id="s1"),
        record(2, "switch", 1, name="leak", value=60),
        record(3, "switch", 2, name="\x1b[2J", value=1),
        record(4, "switch", 3, name="leak", value=120.5),
        *(record(5 + n, "switch", 4, name="leak", value=v) for n, v in enumerate((True, "9", {}))),
    ]
    forward, backward = RunState(), RunState()
    forward.fold(records)
    for one in reversed(records):
        backward.fold([one])
    assert forward.switches == backward.switches
    assert forward.switches["leak"] == 120.5
    assert all(name.isprintable() for name in forward.switches)
    forward.fold([record(9, "run.begin", 9, start_id="s2")])
    assert forward.switches == {}, "a new process begins with none"
    backward.fold([record(n, "switch", 10, name=f"n{n}", value=n) for n in range(10, 200)])
    assert len(backward.switches) == 32


def test_statuses_without_end_are_counted_as_other() -> None:
    state = RunState()
    for number in range(1, 1001):
        state.fold([record(number, "experiment.end", x=number, status=f"status {number}")])
    assert sum(state.experiments.values()) == 1000
    assert len(state.experiments) < 50
