"""A plan is measured as one; a hold that nobody here asked for is told all the same."""

from __future__ import annotations

from typing import Any

from tests.builders import T0_US
from tests.runtime.test_deeds import Night, by_resource, info, verdicts
from tests.runtime.watched import MB, S

PLAN = "62f0-warn"


def test_steps_that_run_back_to_back_are_measured_together() -> None:
    night = Night()
    night.pass_s(40)
    at_us = night.clock.wall_us()
    night.used, night.sizes["recent"] = 80 * MB, 10 * MB
    told: dict[str, Any] = {
        "plan": PLAN,
        "origin": "engine",
        "why": "memory 61%",
        "asked_us": at_us,
    }
    night.say("command", id=f"{PLAN}.0", op="purge", state="accepted", origin="engine")
    night.say("purge.end", tier="recent", cause="engine", how="oldest", freed_bytes=20 * MB)
    night.say("command", id=f"{PLAN}.0", op="purge", state="done", origin="engine")
    night.pass_s(1)
    night.say("command", id=f"{PLAN}.1", op="reclaim", state="accepted", origin="engine")
    night.say("command", id=f"{PLAN}.1", op="reclaim", state="done", origin="engine")
    ledger = (
        info("purge", id=f"{PLAN}.0", changed_us=at_us, **told),
        info("reclaim", id=f"{PLAN}.1", changed_us=at_us + S, **told),
    )
    night.pass_s(15)
    rows = {row.action: row for row in night.rows(commands=ledger)}
    assert set(rows) == {"plan warn", "purge", "reclaim"}
    whole = rows["plan warn"]
    assert (whole.id, whole.plan, whole.why, whole.duration_s) == (PLAN, PLAN, "memory 61%", 1.0)
    assert (whole.verdict, whole.freed_bytes) == ("effective", 20 * MB)
    assert whole.confounders == (), "its steps are what it is"
    assert verdicts(rows["purge"])["tier:recent"] == "effective", "the tier is its own"
    assert verdicts(rows["purge"])["memory"] == "unmeasured"
    assert (rows["purge"].plan, rows["reclaim"].plan) == (PLAN, PLAN)
    assert (rows["reclaim"].verdict, rows["reclaim"].overlaps) == ("unmeasured", True)
    assert rows["reclaim"].confounders[0] == "purge recent 1.0s before"


def test_a_plan_says_what_the_agent_claims_of_each_step_beside_what_all_of_them_did() -> None:
    night = Night()
    night.pass_s(40)
    at_us = night.clock.wall_us()
    night.used = 60 * MB
    told: dict[str, Any] = {"plan": PLAN, "origin": "engine", "asked_us": at_us}
    parts = [
        {"name": "garbage", "freed_bytes": 5 * MB, "duration_us": 20_000},
        {"name": "allocator", "freed_bytes": 30 * MB, "error": "x\x1b[2J"},
        "no part",
    ]
    ledger = (
        info("checkpoint", id=f"{PLAN}.0", changed_us=at_us, result={"bytes": 9 * MB}, **told),
        info("purge", id=f"{PLAN}.1", what="purge what is expired", changed_us=at_us,
             result={"freed_bytes": 1_000, "duration_us": 500}, **told),
        info("reclaim", id=f"{PLAN}.2", changed_us=at_us, result={"steps": parts}, **told),
    )  # fmt: skip
    night.pass_s(15)
    row = next(row for row in night.rows(commands=ledger) if row.id == PLAN)
    assert [(one.name, one.freed_bytes, one.duration_s) for one in row.stages] == [
        ("purge what is expired", 1_000, 0.0005),
        ("garbage", 5 * MB, 0.02),
        ("allocator", 30 * MB, None),
    ]
    assert "\x1b" not in row.stages[2].error
    assert (row.freed_bytes, row.claimed) == (40 * MB, None), "the measured total is no sum of them"


def test_a_plan_behind_another_one_cannot_be_told_from_it() -> None:
    night = Night()
    night.pass_s(40)
    ledger = []
    for place in (1, 2):
        at_us = night.clock.wall_us()
        night.used -= 10 * MB
        told: dict[str, Any] = {"origin": "engine", "asked_us": at_us, "changed_us": at_us}
        ledger.append(info("reclaim", id=f"{place}-warn.0", plan=f"{place}-warn", **told))
        night.pass_s(20)
        night.snapshot(commands=tuple(ledger))
    rows = {row.id: row for row in night.rows(commands=tuple(ledger))}
    assert (rows["1-warn"].verdict, rows["1-warn"].freed_bytes) == ("effective", 10 * MB)
    assert (rows["2-warn"].verdict, rows["2-warn"].overlaps) == ("unmeasured", True)
    assert rows["1-warn"].held_s == 20.0, "so long as it was the newest"


def test_a_plan_that_freed_nothing_by_itself_has_no_row() -> None:
    night = Night()
    night.pass_s(40)
    step = info("pause", id=f"{PLAN}.0", plan=PLAN, origin="engine", asked_us=T0_US + 40 * S)
    night.pass_s(15)
    assert [row.action for row in night.rows(commands=(step,))] == ["pause"]


def test_a_hold_of_another_guard_is_told_by_the_mode() -> None:
    night = Night()
    night.pass_s(40)
    night.say("mode", mode="draining", cause="pause by engine: memory 76%")
    night.pass_s(3)
    night.say("mode", mode="paused", cause="pause by engine: memory 76%")
    assert night.rows() == [], "who asked for it may still be heard of"
    night.pass_s(17)
    night.say("mode", mode="running", cause="")
    night.pass_s(3)
    row = night.row()
    assert (row.action, row.origin, row.why, row.pause_s) == ("pause", "engine", "memory 76%", 20.0)
    assert (row.verdict, by_resource(row)["memory"].freed) == ("none", 0.0)
    night.say("mode", mode="read_only", cause="log: no space left on device")
    night.pass_s(8)
    newest = night.rows()[0]
    assert (newest.action, newest.origin) == ("read-only", "agent")
    assert newest.why == "log: no space left on device"
    night.say("mode", mode="aborting", cause="")
    night.say("mode", mode="running", cause="")
    night.say("mode", mode="draining", cause="the run is about to end, asked by operator")
    night.pass_s(8)
    assert len(night.rows()) == 2


def test_a_hold_that_was_asked_for_here_is_told_once() -> None:
    night = Night()
    night.pass_s(40)
    at_us = night.clock.wall_us()
    night.say("mode", mode="paused", cause="pause by ctl")
    ledger = (info("pause", asked_us=at_us - S, changed_us=at_us + S, by="ctl"),)
    night.pass_s(20)
    assert night.row(commands=ledger).id == "c-pause"


def test_small_purges_by_retention_hide_no_large_one() -> None:
    night = Night()
    night.pass_s(40)
    night.say("purge.end", tier="recent", cause="retention", freed_bytes=1 * MB)
    night.pass_s(2)
    night.sizes["recent"] = 10 * MB
    night.say("purge.end", tier="recent", cause="share_cap", freed_bytes=19 * MB)
    night.pass_s(15)
    rows = {row.why: row for row in night.rows()}
    assert (rows["share_cap"].verdict, rows["share_cap"].freed_bytes) == ("effective", 20 * MB)
    assert "retention of recent" in rows["share_cap"].confounders
