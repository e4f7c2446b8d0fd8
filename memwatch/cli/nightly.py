"""What must be so for a night: each point of it judged from facts. Pure.

`ok` it is · `look` it may do, or nobody knows · `NO` it would not hold until the morning.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from memwatch.cli.engine_text import will_text
from memwatch.cli.nightly_facts import DAY_S, NIGHT_S, Check, NightFacts, Verdict
from memwatch.cli.nightly_guard import guard_point, points_of_guard
from memwatch.cli.nightly_store import points_of_store
from memwatch.domain.snapshot import PAST
from memwatch.domain.text import inert
from memwatch.domain.units import arrival_text, bytes_text, duration_text, estimate_text, share_text

_FEW_CHECKPOINTS = 5
_MANY_CHECKPOINTS = 1000


def judge(facts: NightFacts) -> list[Check]:
    """Return all points, in the order in which a person would ask."""
    run = facts.status.get("run") or {}
    if facts.source != "native":
        return [guard_point(facts), *points_of_store(facts), *points_of_guard(facts)]
    if not facts.status or run.get("state") in PAST:  # nothing else of it matters
        return [guard_point(facts), _policy(facts), _agent(facts)]
    return [
        guard_point(facts),
        _armed(facts),
        _limit(facts),
        _policy(facts),
        _agent(facts),
        *_steps(facts),
        _disk(facts),
        _memory(facts),
        _checkpoint(facts),
        _recovery(facts),
        _drill(facts),
        *points_of_guard(facts),
    ]


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
    binding, memory = facts.status["limits"]["binding"], facts.resource("memory")
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
        return Check(
            "limit", "look", f"{text}; as it grows it is reached in {arrival_text(*arrival)}"
        )
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
        return Check("disk", "NO", text, f"make room on the disk of {facts.path}")
    return Check("disk", "look" if count < _FEW_CHECKPOINTS else "ok", text)


def _memory(facts: NightFacts) -> Check:
    binding, memory = facts.status["limits"]["binding"], facts.resource("memory")
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
    if broken := dict.fromkeys([*checkpoints["damaged"], *checkpoints["missing"]]):
        names = ", ".join(inert(str(name), 40) for name in list(broken)[:3])
        return Check("saved", "look", f"{text}; damaged or missing: {names}", ask)
    if checkpoints["overdue"]:
        return Check("saved", "look", f"{text}; one is overdue", ask)
    return Check("saved", "ok", text)


def _recovery(facts: NightFacts) -> Check:
    """Judge what a crash in the night would cost, as far as it is estimated."""
    found = facts.status["recovery"]
    rto = found["rto_s"]
    if not rto:
        return Check("recovery", "look", "nobody knows how long it would take to be back")
    text = f"back in {estimate_text(rto['low'], rto['likely'], rto['high'])} after a crash"
    if found["memory_fits"] is False:
        how, needed = inert(str(found["memory_how"]), 120), bytes_text(found["memory_bytes"])
        do = f"memwatch ctl {facts.shown} purge --dry-run"
        return Check("recovery", "NO", f"{text}, but {needed} of memory do not fit: {how}", do)
    if over := [inert(str(said), 120) for said in found["budget"]["over"]]:
        return Check("recovery", "look", f"{text}; {'; '.join(over)}")
    return Check("recovery", "ok", text)


def _drill(facts: NightFacts) -> Check:
    drill, do = facts.status["recovery"]["drill"], f"memwatch drill {facts.shown}"
    if not drill:
        return Check("drill", "look", "a recovery was never tried", do)
    age_s = (facts.now_us - drill["t_us"]) / 1e6
    took, age = duration_text(drill["total_s"]), duration_text(max(age_s, 0))
    if drill["lossy"] or drill["matches"] is False:
        return Check("drill", "NO", f"the one {age} ago did not bring all back", do)
    return Check("drill", "ok" if age_s < DAY_S else "look", f"{age} ago, back in {took}", do)
