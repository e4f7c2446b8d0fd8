"""What must be so for a night: each point of it judged from facts. Pure.

`ok` it is · `look` it may do, or nobody knows · `NO` it would not hold until the morning.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from memwatch.cli.engine_text import will_text
from memwatch.config.policy import Policy
from memwatch.domain.command import CommandInfo
from memwatch.domain.snapshot import PAST
from memwatch.domain.text import inert
from memwatch.domain.units import arrival_text, bytes_text, duration_text, share_text
from memwatch.host.logout import Logout

Status = dict[str, Any]
Verdict = Literal["ok", "look", "NO"]
NIGHT_S = 8 * 3600
_DAY_S = 86_400
_FEW_CHECKPOINTS = 5
_MANY_CHECKPOINTS = 1000


class Check(NamedTuple):
    """One point, and what to do about it."""

    name: str
    verdict: Verdict
    text: str
    do: str = ""


class NightFacts(Struct, frozen=True, kw_only=True):
    """What is known of a run this evening."""

    shown: str
    """The run as a person types it."""
    now_us: int
    """Wall clock."""
    status: Status = {}
    """{} when no guard answers."""
    guard_pid: int | None = None
    kept: bool = False
    """Somebody starts the guard again when it is killed."""
    logout: Logout = Logout()
    policy: Policy | None = None
    policy_error: str = ""
    agent_age_s: float | None = None
    """Age of what the agent says of itself; None when it says nothing that is its own."""
    dry_runs: Mapping[str, CommandInfo] = {}
    """What the agent answered to a dry run of each step of the policy."""
    untried: tuple[str, ...] = ()
    """Operations of the policy that have none."""
    reserve_bytes: int = 0


def judge(facts: NightFacts) -> list[Check]:
    """Return all points, in the order in which a person would ask."""
    run = facts.status.get("run") or {}
    if not facts.status or run.get("state") in PAST:  # nothing else of it matters
        return [_guard(facts), _policy(facts), _agent(facts)]
    return [
        _guard(facts),
        _armed(facts),
        _limit(facts),
        _policy(facts),
        _agent(facts),
        *_steps(facts),
        _disk(facts),
        _memory(facts),
        _checkpoint(facts),
        _drill(facts),
        *_notify(facts),
        _heartbeat(facts),
        _logout(facts),
        _again(facts),
        _reserve(facts),
    ]


def _guard(facts: NightFacts) -> Check:
    begin = f"memwatch guard {facts.shown} --detach"
    if facts.guard_pid is None:
        return Check("guard", "NO", "nobody watches this run", begin)
    if not facts.status:
        stuck = f"guard {facts.guard_pid} is there and does not answer"
        return Check("guard", "NO", stuck, f"kill -KILL {facts.guard_pid}; {begin}")
    guard = facts.status["guard"]
    if guard["recording"] is False:
        why = inert(str(guard["not_recording_why"]), 160)
        return Check("guard", "NO", f"it does not record: {why}", "memwatch status says more")
    return Check("guard", "ok", f"pid {facts.guard_pid}, records")


def _armed(facts: NightFacts) -> Check:
    engine, will = facts.status["engine"], will_text(facts.status)
    arm = f"memwatch ctl {facts.shown} mode act --for 10h"
    if engine.get("stop_file"):
        path = inert(str(engine["stop_file"]), 120)
        do = f"rm {inert(shlex.quote(str(engine['stop_file'])))}"
        return Check("armed", "NO", f"the file {path} keeps all engines from acting", do)
    if engine["mode"] == "ask":
        return Check("armed", "look", f"{will}: each plan waits for you", arm)
    if engine["mode"] != "act":
        return Check("armed", "NO", will, arm)
    if engine.get("open_breakers"):
        levels = ", ".join(inert(str(one), 12) for one in engine["open_breakers"])
        text = f"plans of {levels} did not help and are not made any more"
        return Check("armed", "NO", text, f"memwatch ctl {facts.shown} reset")
    until_us = engine.get("until_us")
    left_s = None if until_us is None else (until_us - facts.now_us) / 1e6
    if left_s is not None and left_s < NIGHT_S:
        return Check("armed", "look", f"{will}, only {duration_text(left_s)} from now", arm)
    return Check("armed", "ok", will)


def _limit(facts: NightFacts) -> Check:
    binding, memory = facts.status["limits"]["binding"], _resource(facts.status, "memory")
    if not binding:
        do = f"memwatch policy set {facts.shown} limit_bytes=8000000000"
        return Check("limit", "NO", "none is in force: no level can be judged", do)
    used = f", {share_text(memory['share'])} used" if memory else ""
    why = inert(str(binding.get("why") or binding["name"]), 60)
    text = f"{bytes_text(binding['bytes'])} ({why}){used}"
    arrival = memory["time_to_limit_s"] if memory else None
    level = inert(str(facts.status["level"]), 12)
    if level != "normal":
        return Check("limit", "look", f"{text}; the level is {level} now")
    if arrival and arrival[0] < NIGHT_S:
        return Check("limit", "look", f"{text}; as it grows it is reached in {_arrival(arrival)}")
    return Check("limit", "ok", text)


def _policy(facts: NightFacts) -> Check:
    engine = facts.status.get("engine") or {}
    error = facts.policy_error or str(engine.get("policy_error") or "")
    if error:
        do = f"memwatch policy check {facts.shown}"
        return Check("policy", "NO", f"not valid: {inert(error, 200)}", do)
    missing = [inert(str(op), 30) for op in engine.get("missing") or {}]
    if missing:
        return Check("policy", "look", f"this agent has no {', '.join(missing)}: left out")
    return Check("policy", "ok", inert(str(engine.get("policy") or "valid"), 120))


def _agent(facts: NightFacts) -> Check:
    run = facts.status.get("run") or {}
    if run.get("state") in PAST:
        why = inert(str(run.get("end_reason") or ""), 100)
        text = f"the run is over: {inert(str(run['state']), 12)}" + (f" ({why})" if why else "")
        return Check("agent", "NO", text, "start the agent again in the same directory")
    if facts.agent_age_s is None:
        text = "it does not say how it is (control/state.json)"
        return Check("agent", "NO", text, f"memwatch status {facts.shown} tells whether it lives")
    age = duration_text(max(facts.agent_age_s, 0))
    if facts.agent_age_s > 10:
        text = f"it was last heard {age} ago: busy, stopped, or gone"
        return Check("agent", "NO", text, f"memwatch status {facts.shown} tells whether it lives")
    return Check("agent", "ok", f"listens, heard {age} ago")


def _steps(facts: NightFacts) -> Iterator[Check]:
    """Judge the dry run of each step; what has none is named."""
    well = [name for name, info in facts.dry_runs.items() if info.state == "done"]
    slowest_us = max((i.changed_us - i.asked_us for i in facts.dry_runs.values()), default=0)
    for name, info in facts.dry_runs.items():
        if info.state != "done":
            verdict: Verdict = "look" if info.state == "refused" else "NO"
            detail = inert(info.detail, 120) or "no answer"
            do = "" if verdict == "look" else "try again once it answers: a plan would wait as long"
            yield Check("steps", verdict, f"{name}: {info.state}, {detail}", do)
    tried = f"dry run of {'; '.join(well)} ({duration_text(slowest_us / 1e6)} at most)"
    left = f"not tried, without a dry run: {', '.join(facts.untried)}"
    parts = [*([tried] if well else []), *([left] if facts.untried else [])]
    if parts:
        yield Check("steps", "ok", "; ".join(parts))


def _disk(facts: NightFacts) -> Check:
    free = facts.status["disk"]["free_bytes"]
    full = facts.status["recovery"]["full_bytes"]
    if free is None:
        return Check("disk", "look", "nobody knows how much room there is")
    if not full:
        do = f"memwatch ctl {facts.shown} checkpoint-full"
        return Check("disk", "look", f"{bytes_text(free)} free; no full checkpoint yet", do)
    count = int(free // full)
    shown = f"{count}" if count < _MANY_CHECKPOINTS else f"over {_MANY_CHECKPOINTS}"
    text = f"room for {shown} full checkpoints of {bytes_text(full)}"
    if facts.status["checkpoints"]["next_fits"] is False or count < 2:
        return Check("disk", "NO", text, f"make room on the disk of {_path(facts)}")
    return Check("disk", "look" if count < _FEW_CHECKPOINTS else "ok", text)


def _memory(facts: NightFacts) -> Check:
    binding, memory = facts.status["limits"]["binding"], _resource(facts.status, "memory")
    if not binding or not memory or memory["used"] is None or facts.policy is None:
        return Check("memory", "look", "nobody knows whether a checkpoint fits into memory")
    room = binding["bytes"] - memory["used"]
    outlook = facts.policy.outlook
    needed = memory["used"] * outlook.reserve_share * outlook.headroom_factor
    text = f"{bytes_text(room)} left, a checkpoint is reckoned to take {bytes_text(needed)}"
    if room < needed:
        return Check("memory", "NO", text, f"memwatch ctl {facts.shown} purge --dry-run")
    return Check("memory", "ok", text)


def _checkpoint(facts: NightFacts) -> Check:
    checkpoints = facts.status["checkpoints"]
    ask = f"memwatch ctl {facts.shown} checkpoint-full"
    if checkpoints["last_recoverable_full"] is None:
        return Check("saved", "NO", "no full checkpoint lies on disk", ask)
    text = f"the last checkpoint is {duration_text(checkpoints['age_s'])} old"
    if checkpoints["overdue"]:
        return Check("saved", "look", f"{text}; one is overdue", ask)
    return Check("saved", "ok", text)


def _drill(facts: NightFacts) -> Check:
    drill, do = facts.status["recovery"]["drill"], f"memwatch drill {facts.shown}"
    if not drill:
        return Check("drill", "look", "a recovery was never tried", do)
    age_s = (facts.now_us - drill["t_us"]) / 1e6
    took, age = duration_text(drill["total_s"]), duration_text(max(age_s, 0))
    if drill["lossy"] or drill["matches"] is False:
        return Check("drill", "NO", f"the one {age} ago did not bring all back", do)
    return Check("drill", "ok" if age_s < _DAY_S else "look", f"{age} ago, back in {took}", do)


def _notify(facts: NightFacts) -> Iterator[Check]:
    told = facts.status.get("notify") or {}
    channels = told.get("channels") or []
    test = f"memwatch tonight {facts.shown} --test-notify"
    if told.get("error"):
        yield Check(
            "notify", "NO", f"nobody is told: {inert(str(told['error']), 200)}", _anew(facts)
        )
    elif not channels:
        do = f"name one under notify: in config.yaml; {_anew(facts)}"
        yield Check("notify", "look", "nobody is woken: no channel is configured", do)
    for channel in channels:
        name, detail = inert(str(channel["name"]), 30), inert(str(channel["detail"]), 100)
        tested_us = channel["tested_us"]
        if channel["state"] == "failed":
            yield Check("notify", "NO", f"{name} failed: {detail}", test)
        elif tested_us is None:
            yield Check("notify", "look", f"{name} was never tested", test)
        else:
            age_s = max((facts.now_us - tested_us) / 1e6, 0)
            text = f"{name} got a test through {duration_text(age_s)} ago"
            late = age_s > 7 * _DAY_S
            yield Check("notify", "look" if late else "ok", text, test if late else "")


def _heartbeat(facts: NightFacts) -> Check:
    beat = (facts.status.get("notify") or {}).get("heartbeat")
    if not beat:
        do = f"name one under notify: heartbeat: in config.yaml; {_anew(facts)}"
        return Check("heartbeat", "look", "nobody would notice if this machine died", do)
    if beat["state"] == "sent":
        return Check("heartbeat", "ok", "the sign of life gets through")
    detail = inert(str(beat["detail"]), 100) or "none was sent yet"
    failed = beat["state"] == "failed"
    do = f"mend notify: heartbeat: url: in config.yaml; {_anew(facts)}" if failed else ""
    return Check("heartbeat", "NO" if failed else "look", detail, do)


def _logout(facts: NightFacts) -> Check:
    logout = facts.logout
    detach = _anew(facts)
    if logout.on_terminal:
        if logout.in_multiplexer:
            return Check("logout", "look", "the guard runs inside tmux or screen", detach)
        return Check("logout", "NO", "the guard ends with the terminal that it runs in", detach)
    if logout.place == "manager" and not logout.lingers:
        text = "the guard ends when you log out: it runs below your own systemd"
        return Check("logout", "NO", text, "loginctl enable-linger")
    if logout.place == "session" and logout.killed:
        text = "logging out ends what a login started (KillUserProcesses=yes)"
        do = f"memwatch guard {facts.shown} --unit, and loginctl enable-linger"
        return Check("logout", "NO", text, do)
    return Check("logout", "ok", "the guard stays when you log out")


def _again(facts: NightFacts) -> Check:
    if facts.kept:
        return Check("restart", "ok", "the guard is started again if it is killed")
    return Check("restart", "look", "nobody starts the guard again if it is killed", _anew(facts))


def _anew(facts: NightFacts) -> str:
    """Return how another guard takes the place of this one: config.yaml is read at its start."""
    return f"memwatch guard --stop {facts.shown}; memwatch guard {facts.shown} --detach"


def _reserve(facts: NightFacts) -> Check:
    wanted = facts.policy.disk_reserve_bytes if facts.policy else 0
    if not wanted:
        return Check("reserve", "look", "no room is kept for the guard's own log")
    if facts.reserve_bytes < wanted:
        text = "the room for the guard's own log is not there: disk full?"
        return Check("reserve", "NO", text, "make room on the disk of memwatch's own folder")
    return Check("reserve", "ok", f"{bytes_text(wanted)} of disk are kept for the guard's own log")


def _resource(status: Status, name: str) -> Status | None:
    return next((one for one in status["resources"] if one["name"] == name), None)


def _arrival(arrival: list[float]) -> str:
    return arrival_text(arrival[0], arrival[1])


def _path(facts: NightFacts) -> str:
    return inert(str(facts.status["run"]["path"]), 120)
