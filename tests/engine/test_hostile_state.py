"""A state that was damaged, or is of another version: refused or worked with, never raised."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from memwatch.config.policy import Policy, ResourceRule
from memwatch.engine.facts import Now
from memwatch.engine.state import EngineState
from tests.engine.world import World, deaf

POLICY = msgspec.structs.replace(
    Policy(), resources={"tier:recent": ResourceRule(warn=0.5, levels=Policy().levels)}
)


def saved(share: float, seconds: float, *, answered: bool) -> tuple[Any, Now]:
    """Return a state, and when it was."""
    world = World(POLICY)
    if not answered:
        world.answers = deaf
    world.run(seconds, share)
    return world.state.save(), world.now


STATES = [
    saved(0.62, 20, answered=False),
    saved(0.80, 60, answered=True),
    saved(0.97, 60, answered=False),
    saved(0.62, 1300, answered=True),
]
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(["", "memory", "warn", "hard", "done", "asked", "proposed", "\x1b[31m", "a b"]),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.integers(-3, 9),
    st.floats(),
    st.just([]),
    st.just({}),
    st.just([None, None, None, None]),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def put(state: Any, path: tuple[Any, ...], leaf: Any) -> None:
    for key in path[:-1]:
        state = state[key]
    if isinstance(state, dict | list):
        state[path[-1]] = leaf


@settings(max_examples=400)
@given(data=st.data(), same_boot=st.booleans(), share=st.sampled_from([0.3, 0.62, 0.8, 0.92, 0.97]))
def test_whatever_it_says_the_engine_goes_on(
    data: st.DataObject, same_boot: bool, share: float
) -> None:
    before, then = data.draw(st.sampled_from(STATES))
    state = msgspec.json.decode(msgspec.json.encode(before))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(places(state))))
        put(state, path, copy.deepcopy(data.draw(LEAVES)))
    try:
        resumed = EngineState.resume(state, same_boot=same_boot)
    except msgspec.ValidationError:
        return
    world = World(POLICY)
    world.state, world.now = resumed, then
    world.run(20, share)
    world.standing()
    msgspec.json.encode(world.state)
    if share >= 0.92:
        world.run(140, share)
        assert world.level() in ("emergency", "hard")
