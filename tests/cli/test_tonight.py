"""Each point of `memwatch tonight` says ok, look or NO for the right reason, and what to do."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from memwatch.cli.nightly import judge
from memwatch.cli.nightly_facts import Check, NightFacts
from memwatch.config.policy import Policy
from memwatch.domain.checkpoints import Checkpoint, Checkpoints
from memwatch.domain.command import CommandInfo
from memwatch.domain.control import ChannelInfo, EngineInfo, NotifyInfo
from memwatch.domain.recovery import PastRecovery, Recovery, RecoveryBudget, Span
from memwatch.domain.snapshot import Disk, GuardInfo, Limit, Limits, Resource, RunInfo, Snapshot
from memwatch.host.logout import Logout

NOW_US = 1_800_000_000_000_000
HOUR_US = 3_600_000_000
GB = 1_000_000_000
FULL = Checkpoint(id="full-1", kind="full", state="committed", bytes=GB)
CHANNEL = ChannelInfo(name="ntfy", state="sent", tested_us=NOW_US - HOUR_US)
BEAT = ChannelInfo(name="heartbeat", state="sent")
GOOD = Snapshot(
    seq=1,
    t_us=NOW_US,
    run=RunInfo(
        id="night-7", path="/runs/7", agent="a", profile="p", host="h", pid=9, state="running"
    ),
    guard=GuardInfo(pid=99),
    engine=EngineInfo(mode="act", will="WILL ACT (warn, intervene, emergency)"),
    limits=Limits(binding=Limit(name="cgroup", bytes=8 * GB, why="memory.max")),
    resources=(Resource(name="memory", used=3.0 * GB, share=0.375),),
    checkpoints=Checkpoints(last=FULL, last_recoverable_full=FULL, age_s=60.0, next_fits=True),
    recovery=Recovery(
        full_bytes=GB,
        rto_s=Span(low=18, likely=21, high=26),
        drill=PastRecovery(t_us=NOW_US - HOUR_US, total_s=19.0, matches=True),
    ),
    disk=Disk(free_bytes=200 * GB),
    notify=NotifyInfo(channels=(CHANNEL,), heartbeat=BEAT),
)


def answered(state: Any, detail: str = "") -> CommandInfo:
    return CommandInfo(
        id="c", op="purge", state=state, asked_us=0, changed_us=200_000, detail=detail
    )


def facts(snapshot: Snapshot | None = GOOD, **changed: Any) -> NightFacts:
    policy = Policy()
    status = {} if snapshot is None else msgspec.json.decode(msgspec.json.encode(snapshot))
    good: dict[str, Any] = {
        "shown": "night-7",
        "now_us": NOW_US,
        "status": status,
        "guard_pid": 99,
        "kept": True,
        "policy": policy,
        "agent_age_s": 0.4,
        "dry_runs": {"purge expired": answered("done")},
        "untried": ("pause",),
        "reserve_bytes": policy.disk_reserve_bytes,
    }
    return NightFacts(**{**good, **changed})


def check(name: str, found: NightFacts) -> Check:
    return next(one for one in judge(found) if one.name == name)


def test_all_is_well() -> None:
    checks = judge(facts())
    assert [one for one in checks if one.verdict != "ok"] == []
    assert [one.name for one in checks] == [
        *("guard", "armed", "limit", "policy", "agent", "steps", "disk", "memory", "saved"),
        *("recovery", "drill", "notify", "heartbeat", "logout", "restart", "reserve"),
    ]


def engine(**members: Any) -> Snapshot:
    return replace(GOOD, engine=replace(GOOD.engine, **members))


def memory(**members: Any) -> Snapshot:
    return replace(GOOD, resources=(replace(GOOD.resources[0], **members),))


def told(*channels: ChannelInfo, heartbeat: ChannelInfo | None = BEAT) -> Snapshot:
    return replace(GOOD, notify=NotifyInfo(channels=channels, heartbeat=heartbeat))


def crash(**members: Any) -> Snapshot:
    return replace(GOOD, recovery=replace(GOOD.recovery, **members))


DRILL = GOOD.recovery.drill
assert DRILL is not None
TABLE: dict[str, tuple[NightFacts, str, str, str]] = {
    "no guard": (facts(None, guard_pid=None), "guard", "NO", "nobody watches"),
    "a stuck guard": (facts(None), "guard", "NO", "does not answer"),
    "not recording": (
        facts(replace(GOOD, guard=GuardInfo(pid=9, recording=False, not_recording_why="ENOSPC"))),
        "guard",
        "NO",
        "ENOSPC",
    ),
    "shadow": (facts(engine(mode="shadow", will="")), "armed", "NO", "WILL NOT ACT (shadow)"),
    "ask": (facts(engine(mode="ask")), "armed", "look", "each plan waits for you"),
    "stopped": (facts(engine(stop_file="/h/STOP")), "armed", "NO", "/h/STOP"),
    "breaker": (facts(engine(open_breakers=("warn",))), "armed", "NO", "warn did not help"),
    "too short": (facts(engine(until_us=NOW_US + 3 * HOUR_US)), "armed", "look", "only 3h00m"),
    "long enough": (facts(engine(until_us=NOW_US + 9 * HOUR_US)), "armed", "ok", "until"),
    "no limit": (facts(replace(GOOD, limits=Limits())), "limit", "NO", "no level can be judged"),
    "high": (facts(replace(GOOD, level="warn")), "limit", "look", "the level is warn now"),
    "on its way": (
        facts(memory(time_to_limit_s=(3600.0, 7000.0))),
        "limit",
        "look",
        "reached in 60–117min",
    ),
    "wrong policy": (facts(policy_error="p.yaml line 3: x"), "policy", "NO", "p.yaml line 3"),
    "not taken over": (facts(engine(policy_error="line 4")), "policy", "NO", "line 4"),
    "lacks one": (facts(engine(missing={"retain": "no"})), "policy", "look", "no retain"),
    "deaf": (facts(agent_age_s=None), "agent", "NO", "does not say how it is"),
    "crashed": (
        facts(replace(GOOD, run=replace(GOOD.run, state="crashed", end_reason="signal 9"))),
        "agent",
        "NO",
        "the run is over: crashed (signal 9)",
    ),
    "stale": (facts(agent_age_s=75.0), "agent", "NO", "1m15s ago"),
    "a step refused": (
        facts(dry_runs={"purge history": answered("refused", "no tier history")}),
        "steps",
        "look",
        "purge history: refused, no tier history",
    ),
    "a step unanswered": (
        facts(dry_runs={"purge": answered("asked")}),
        "steps",
        "NO",
        "purge: asked, no answer",
    ),
    "full disk": (facts(replace(GOOD, disk=Disk(free_bytes=GB))), "disk", "NO", "room for 1 full"),
    "tight disk": (
        facts(replace(GOOD, disk=Disk(free_bytes=3 * GB))),
        "disk",
        "look",
        "room for 3 full",
    ),
    "unknown disk": (facts(replace(GOOD, disk=Disk())), "disk", "look", "nobody knows"),
    "no room in memory": (facts(memory(used=7.5 * GB)), "memory", "NO", "500M left"),
    "unmeasured memory": (facts(memory(used=None)), "memory", "look", "nobody knows"),
    "nothing saved": (facts(replace(GOOD, checkpoints=Checkpoints())), "saved", "NO", "no full"),
    "overdue": (
        facts(replace(GOOD, checkpoints=replace(GOOD.checkpoints, overdue=True))),
        "saved",
        "look",
        "overdue",
    ),
    "never drilled": (
        facts(replace(GOOD, recovery=Recovery(full_bytes=GB))),
        "drill",
        "look",
        "never tried",
    ),
    "drill lost something": (
        facts(replace(GOOD, recovery=Recovery(full_bytes=GB, drill=replace(DRILL, lossy=True)))),
        "drill",
        "NO",
        "did not bring all back",
    ),
    "damaged": (
        facts(replace(GOOD, checkpoints=replace(GOOD.checkpoints, damaged=("full-\x1b1",)))),
        "saved",
        "look",
        "damaged or missing: full-\ufffd1",
    ),
    "no estimate": (facts(crash(rto_s=None)), "recovery", "look", "nobody knows how long"),
    "no room to restore": (
        facts(crash(memory_fits=False, memory_bytes=9 * GB, memory_how="cgroup 8.0G")),
        "recovery",
        "NO",
        "back in 21s (18–26s) after a crash, but 9.0G of memory do not fit: cgroup 8.0G",
    ),
    "over budget": (
        facts(crash(budget=RecoveryBudget(over=("recovery 21s is over your 10s",)))),
        "recovery",
        "look",
        "over your 10s",
    ),
    "old drill": (facts(now_us=NOW_US + 30 * HOUR_US), "drill", "look", "1d07h ago"),
    "nobody told": (facts(told()), "notify", "look", "no channel"),
    "settings that nobody reads": (
        facts(replace(GOOD, notify=NotifyInfo(error="config.yaml line 3: no url"))),
        "notify",
        "NO",
        "nobody is told: config.yaml line 3",
    ),
    "untested": (facts(told(ChannelInfo(name="slack"))), "notify", "look", "never tested"),
    "failing": (
        facts(told(replace(CHANNEL, state="failed", detail="404"))),
        "notify",
        "NO",
        "ntfy failed: 404",
    ),
    "no heartbeat": (facts(told(CHANNEL, heartbeat=None)), "heartbeat", "look", "nobody would"),
    "lost heartbeat": (
        facts(told(CHANNEL, heartbeat=ChannelInfo(name="h", state="failed", detail="refused"))),
        "heartbeat",
        "NO",
        "refused",
    ),
    "on a terminal": (facts(logout=Logout(on_terminal=True)), "logout", "NO", "the terminal"),
    "in tmux": (
        facts(logout=Logout(on_terminal=True, in_multiplexer=True)),
        "logout",
        "look",
        "tmux",
    ),
    "no linger": (facts(logout=Logout(place="manager")), "logout", "NO", "your own systemd"),
    "linger": (facts(logout=Logout(place="manager", lingers=True)), "logout", "ok", "stays"),
    "killed": (
        facts(logout=Logout(place="session", killed=True)),
        "logout",
        "NO",
        "KillUserProcesses",
    ),
    "alone": (facts(kept=False), "restart", "look", "nobody starts the guard again"),
    "no reserve": (facts(reserve_bytes=0), "reserve", "NO", "disk full"),
}


@pytest.mark.parametrize("case", TABLE)
def test_each_point(case: str) -> None:
    found, name, verdict, words = TABLE[case]
    one = check(name, found)
    assert (one.verdict, words in one.text) == (verdict, True), one
    assert one.do or one.verdict != "NO", "whoever reads it before bed is told what to do"
    others = [one for one in judge(found) if one.verdict == "NO" and one.name != name]
    assert others == [] or not found.status, "only what is wrong is said to be"


def test_what_to_do_names_the_run() -> None:
    arm = check("armed", TABLE["shadow"][0]).do
    assert arm == "memwatch ctl night-7 mode act --for 10h"
    assert check("logout", TABLE["no linger"][0]).do == "loginctl enable-linger"


def test_text_of_others_is_inert() -> None:
    evil = "\x1b[31m\u202e"
    found = facts(
        engine(policy_error=evil, will=evil, missing={evil: evil}),
        dry_runs={"purge": answered("refused", evil)},
    )
    assert all(one.text.isprintable() and one.do.isprintable() for one in judge(found))
