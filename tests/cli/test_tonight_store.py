"""The check before bed of a store: who writes it, what lies there; no advice that is refused."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from memwatch.cli.nightly import judge
from memwatch.cli.nightly_facts import Check, NightFacts
from memwatch.domain.checkpoints import Checkpoints
from memwatch.domain.snapshot import Disk, Snapshot, Source
from tests.cli.test_tonight import FULL, GOOD, facts

WHY = "a checkpoint store takes no commands"
STORE = replace(
    GOOD,
    source=Source(kind="directory"),
    checkpoints=Checkpoints(
        source="directory", last=FULL, last_recoverable_full=FULL, age_s=60.0, next_fits=True
    ),
)


def store(snapshot: Snapshot | None = STORE, **changed: Any) -> NightFacts:
    return facts(snapshot, source="directory", no_commands=WHY, agent_age_s=None, **changed)


def known(**members: Any) -> Snapshot:
    return replace(STORE, checkpoints=replace(STORE.checkpoints, **members))


def check(name: str, found: NightFacts) -> Check:
    return next(one for one in judge(found) if one.name == name)


def test_all_that_can_be_well_is_well() -> None:
    checks = judge(store())
    assert [one.name for one in checks] == [
        *("guard", "armed", "writer", "saved", "disk"),
        *("notify", "heartbeat", "logout", "restart", "reserve"),
    ]
    assert [one.name for one in checks if one.verdict != "ok"] == ["armed"]
    assert WHY in check("armed", store()).text


def test_without_a_guard_it_says_how_to_begin_one() -> None:
    alone = judge(store(None, guard_pid=None))
    assert (alone[0].verdict, alone[0].do) == ("NO", "memwatch guard night-7 --detach")
    assert [one.name for one in alone][:2] == ["guard", "armed"]


@pytest.mark.parametrize(
    ("snapshot", "name", "verdict", "says"),
    [
        (replace(STORE, run=replace(STORE.run, pid=0)), "writer", "look", "no process was seen"),
        (
            replace(STORE, run=replace(STORE.run, state="crashed", end_reason="inferred: gone")),
            "writer",
            "NO",
            "crashed (inferred: gone)",
        ),
        (known(age_s=None), "saved", "NO", "no complete checkpoint"),
        (
            known(incomplete=("checkpoint-\x1b9",)),
            "saved",
            "look",
            "incomplete: checkpoint-\ufffd9",
        ),
        (known(damaged=("checkpoint-8",)), "saved", "look", "damaged: checkpoint-8"),
        (known(overdue=True), "saved", "look", "overdue by its habit"),
        (known(next_fits=False), "disk", "NO", "the next does not fit"),
        (known(next_fits=None), "disk", "ok", "200G free"),
        (replace(STORE, disk=Disk()), "disk", "look", "nobody knows"),
    ],
)
def test_each_point(snapshot: Snapshot, name: str, verdict: str, says: str) -> None:
    found = check(name, store(snapshot))
    assert (found.verdict, says in found.text) == (verdict, True), found


def test_nothing_is_advised_that_would_be_refused() -> None:
    bad = known(age_s=None, next_fits=False)
    advice = [one.do for snapshot in (STORE, bad, None) for one in judge(store(snapshot))]
    assert not any(" ctl " in do or "drill" in do or "mode act" in do for do in advice)
