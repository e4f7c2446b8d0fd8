"""Deeds are told the same whatever order the segments of a log are read in."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from memwatch.analytics.run_state import RunState
from memwatch.domain.record import Record
from tests.builders import record

LOG = [
    record(1, "run.begin", 0, start_id="s1", pid=1),
    record(2, "mode", 0.1, mode="running", cause="start"),
    record(3, "experiment.begin", 1, x=1, phase="exploration"),
    record(4, "command", 2, id="a", op="retain", state="accepted", origin="engine"),
    record(5, "retention", 2.1, tier="recent", what="asked", old={}, new={}),
    record(6, "retention", 2.2, tier="history", what="phase", old={}, new={}),
    record(7, "command", 2.3, id="a", op="retain", state="done", origin="engine", result={"n": 1}),
    record(8, "context.compact", 3, kind="auto", before_tokens=9, after_tokens=2),
    record(9, "run.end", 4, status="done"),
    record(10, "run.begin", 9, start_id="s2", pid=2),
    record(11, "mode", 9.5, mode="paused", cause="pause by ctl"),
    record(12, "note", 10),
    record(13, "run.begin", 20, start_id="s3", pid=3),
]


def told(state: RunState) -> dict[str, Any]:
    deeds = state.deeds
    return {
        "starts": [(one.lsn, one.died and one.died.lsn, one.well) for one in deeds.starts],
        "modes": [(one.lsn, one.mode, one.cause) for one in deeds.modes],
        "compactions": [
            (one.lsn, one.before_tokens, one.after_tokens) for one in deeds.compactions
        ],
        "retained": [(one.lsn, one.tier) for one in deeds.retained],
        "experiments": [(one.lsn, one.phase) for one in deeds.experiments],
        "requests": {
            one.id: (one.op, one.state, one.taken.lsn, one.ended and one.ended.lsn, one.result)
            for one in deeds.requests.values()
        },
    }


@given(st.sets(st.integers(1, len(LOG) - 1)), st.randoms())
def test_any_order_of_segments_tells_the_same(cuts: set[int], dice: Any) -> None:
    edges = [0, *sorted(cuts), len(LOG)]
    pieces = [LOG[first:last] for first, last in pairwise(edges)]
    dice.shuffle(pieces)
    state = RunState()
    for piece in pieces:
        state.fold(piece)
    assert told(state) == {
        "starts": [(1, None, False), (10, 9, True), (13, 12, False)],
        "modes": [(2, "running", "start"), (11, "paused", "pause by ctl")],
        "compactions": [(8, 9, 2)],
        "retained": [(5, "recent")],
        "experiments": [(3, "exploration")],
        "requests": {"a": ("retain", "done", 4, 7, {"n": 1})},
    }


KINDS = st.sampled_from(["run.begin", "mode", "context.compact", "retention", "command", "note"])
NAMES = st.sampled_from(["id", "op", "state", "mode", "cause", "what", "tier", "kind", "result"])
VALUES = st.none() | st.integers() | st.text(max_size=9) | st.lists(st.integers(), max_size=2)


@given(st.lists(st.tuples(KINDS, st.dictionaries(NAMES, VALUES)), max_size=300))
@settings(max_examples=50)
def test_whatever_a_log_says_is_kept_in_bounds(said: list[tuple[str, dict[str, Any]]]) -> None:
    state = RunState()
    state.fold(Record(n, n, n, kind, members) for n, (kind, members) in enumerate(said, 1))
    deeds = state.deeds
    for kept in (deeds.modes, deeds.compactions, deeds.retained, deeds.starts, deeds.requests):
        assert len(kept) <= 96
    assert all(request.id.isprintable() for request in deeds.requests.values())
