"""Points of the check before bed that are about the guard itself, whatever it watches. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from memwatch.cli.nightly_facts import DAY_S, Check, NightFacts
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text, duration_text


def guard_point(facts: NightFacts) -> Check:
    """Judge whether a guard is there and records."""
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


def points_of_guard(facts: NightFacts) -> Iterator[Check]:
    """Judge whether people are told, and whether the guard lasts."""
    yield from _notify(facts)
    yield _heartbeat(facts)
    yield _logout(facts)
    yield _again(facts)
    yield _reserve(facts)


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
            late = age_s > 7 * DAY_S
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
