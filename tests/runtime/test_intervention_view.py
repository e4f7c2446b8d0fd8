"""The table of interventions holds what a person looks for, however many purges are routine."""

from __future__ import annotations

from typing import Any, cast

from memwatch.domain.command import CommandInfo, CommandState
from memwatch.domain.intervention import Intervention
from memwatch.runtime.views.row_choice import KEPT_ROWS
from tests.builders import T0_US, tiers
from tests.runtime.watched import MB, S, Watched


def retain(watched: Watched, tier: str = "recent", freed: int = 3 * MB) -> None:
    watched.say("purge.end", tier=tier, cause="retention", entries=1, freed_bytes=freed)


def shown(watched: Watched) -> tuple[Intervention, ...]:
    return watched.snapshot().interventions


def test_routine_purges_do_not_fill_the_table() -> None:
    watched = Watched()
    watched.begin()
    watched.say("purge.end", tier="recent", cause="operator", freed_bytes=5 * MB)
    watched.say("checkpoint.commit", id="c1", kind="full", bytes=9)
    for second in range(300):
        watched.clock.advance_s(1)
        watched.say("sample", tiers=tiers(recent=(60 - second // 10) * MB))
        retain(watched, freed=second * 1000)
        retain(watched, "workspace")
        shown(watched)
    rows = shown(watched)
    assert len(rows) == 4
    series = {one.tier: one for one in rows if one.count > 1}
    assert set(series) == {"recent", "workspace"}
    assert (series["recent"].count, series["recent"].span_s) == (300, 299.0)
    assert series["recent"].claimed == sum(n * 1000 for n in range(300)) // 300
    assert series["recent"].after_10s is None, "it goes on"
    assert {(one.action, one.why) for one in rows if one.count == 1} == {
        ("purge", "operator"),
        ("checkpoint full", "cadence"),
    }


def test_a_series_that_ended_says_what_it_did_as_a_whole() -> None:
    watched = Watched()
    watched.begin()
    for second in range(70):
        watched.clock.advance_s(1)
        watched.say("sample", tiers=tiers(recent=(60 if second < 40 else 45) * MB))
        if 38 <= second < 42:
            retain(watched)
    (row,) = shown(watched)
    assert (row.count, row.before, row.after_10s) == (4, 60 * MB, 45 * MB)
    assert row.freed_bytes == 15 * MB
    watched.clock.advance_s(61)
    retain(watched)
    assert [one.count for one in shown(watched)] == [1, 4], "after a pause it is another one"


def test_a_purge_of_another_cause_ends_a_series_and_overlaps_with_it() -> None:
    watched = Watched()
    watched.begin()
    for second in range(40):
        watched.clock.advance_s(1)
        watched.say("sample", tiers=tiers(recent=60 * MB))
        if second in (20, 25):
            retain(watched)
    watched.say("purge.end", tier="recent", cause="operator", freed_bytes=5 * MB)
    watched.clock.advance_s(5)
    retain(watched)
    for _ in range(20):
        watched.clock.advance_s(1)
        watched.say("sample", tiers=tiers(recent=50 * MB))
    rows = shown(watched)
    assert [(one.why, one.count) for one in rows] == [
        ("retention", 1),
        ("operator", 1),
        ("retention", 2),
    ]
    operator = rows[1]
    assert operator.overlaps
    assert operator.before == 60 * MB
    assert operator.after_10s == 50 * MB
    assert operator.freed_bytes is None, "what it freed cannot be told from the others"


def test_a_purge_alone_does_not_overlap() -> None:
    watched = Watched()
    watched.begin()
    watched.say("purge.end", tier="recent", cause="share_cap", freed_bytes=5 * MB)
    watched.clock.advance_s(31)
    watched.say("purge.end", tier="workspace", cause="share_cap", freed_bytes=5 * MB)
    watched.clock.advance_s(1)
    watched.say("purge.end", tier="recent", cause="share_cap", freed_bytes=5 * MB)
    assert [one.overlaps for one in shown(watched)] == [False, False, False]


def test_checkpoints_that_are_measured_stay_beside_the_newest_one() -> None:
    watched = Watched()
    watched.begin()
    for second in range(60):
        watched.clock.advance_s(1)
        watched.look(100 * MB)
        if second % 2 == 0:
            watched.say("checkpoint.commit", id=f"c{second}", kind="incremental", bytes=second)
    rows = shown(watched)
    assert [one.after_10s is not None for one in rows] == [False, True]
    assert rows[0].claimed == 58


def test_a_snapshot_shows_a_handful_of_all_kinds() -> None:
    watched = Watched()
    watched.begin()
    for number in range(40):
        watched.clock.advance_s(3)
        for tier in "abcdefgh":
            retain(watched, tier)
            watched.say("purge.end", tier=tier, cause="share_cap", freed_bytes=1)
        kind = "full" if number % 2 else "incremental"
        watched.say("checkpoint.commit", id=f"c{number}", kind=kind, bytes=1)
        shown(watched)
    rows = shown(watched)
    assert len(rows) == KEPT_ROWS
    assert {one.action.partition(" ")[0] for one in rows} == {"purge", "checkpoint"}


def asked(op: str, state: str = "done", **members: Any) -> CommandInfo:
    told: dict[str, Any] = {"id": f"c-{op}", "asked_us": T0_US, "changed_us": T0_US + S, **members}
    return CommandInfo(op=op, state=cast("CommandState", state), **told)


def test_who_asked_for_a_purge_and_why_is_told_by_the_ledger() -> None:
    watched = Watched()
    watched.begin()
    watched.say("purge.end", tier="recent", cause="operator", entries=1)
    watched.say("command", id="c-purge", op="purge", state="accepted")
    watched.say("purge.end", tier="recent", cause="operator", entries=2)
    watched.say("purge.end", tier="history", cause="retention", entries=2)
    watched.say("command", id="c-purge", op="purge", state="done")
    watched.say("checkpoint.commit", id="k1", kind="full")
    watched.say("command", id="c-save", op="checkpoint", state="done", result={"id": "k1"})
    ledger = (
        asked("purge", by="ctl", why="room for the night"),
        asked("checkpoint", id="c-save", by="dashboard"),
    )
    rows = watched.snapshot(commands=ledger).interventions
    told = [(row.action, row.tier, row.by, row.why) for row in rows]
    assert sorted(told) == [
        ("checkpoint full", "", "dashboard", "asked"),
        ("purge", "history", "", "retention"),
        ("purge", "recent", "", "operator"),
        ("purge", "recent", "ctl", "room for the night"),
    ]


def test_what_the_log_tells_of_in_no_other_way_is_told_by_the_ledger() -> None:
    watched = Watched()
    watched.begin()
    ledger = (
        asked("pause", by="engine", origin="engine", why="memory 76%"),
        asked("read_only", "running", id="c-2"),
        asked("purge", "refused", id="c-3", detail="no such tier"),
        asked("checkpoint", id="c-4"),
        asked("purge", id="c-5", dry_run=True),
        asked("engine.mode", id="c-6"),
        asked("note", id="c-7"),
    )
    rows = watched.snapshot(commands=ledger).interventions
    told = {(row.action, row.state, row.by, row.why) for row in rows}
    assert told == {
        ("pause", "done", "engine", "memory 76%"),
        ("read-only", "running", "", ""),
        ("purge", "refused", "", "no such tier"),
    }


def test_what_a_reclaim_freed_is_measured_of_the_whole_tree() -> None:
    watched = Watched()
    watched.begin()
    watched.live(30, 100 * MB)
    at_us = watched.clock.wall_us()
    watched.live(30, 80 * MB)
    ledger = (asked("reclaim", asked_us=at_us, changed_us=at_us + S, result={"freed_bytes": 9}),)
    (row,) = watched.snapshot(commands=ledger).interventions
    assert (row.before, row.after_10s, row.freed_bytes) == (100 * MB, 80 * MB, 20 * MB)
    assert (row.claimed, row.duration_s) == (9, 1.0)


def test_a_series_is_not_given_credit_for_a_purge_of_another_cause_behind_it() -> None:
    watched = Watched()
    watched.begin()
    for second in range(60):
        watched.clock.advance_s(1)
        watched.say("sample", tiers=tiers(recent=(60 if second < 46 else 0) * MB))
        if second in (38, 40, 42):
            retain(watched)
        if second == 45:
            watched.say("purge.end", tier="recent", cause="engine", freed_bytes=60 * MB)
    series = shown(watched)[-1]
    assert (series.why, series.count) == ("retention", 3)
    assert series.overlaps
    assert series.freed_bytes is None
