"""The policy in force as the guard tells it: limits, what it may do, plans, why it waits."""

from __future__ import annotations

from collections.abc import Iterator

from memwatch.domain.control import EngineInfo, NotifyInfo
from memwatch.domain.plan import Plan
from memwatch.domain.snapshot import Limits, Snapshot
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text, duration_text, share_text
from memwatch.domain.wording import op_text
from memwatch.ui.format import moment_text
from memwatch.ui.frame import Frame
from memwatch.ui.line import Line
from memwatch.ui.panels.facts import Fact, fact_lines
from memwatch.ui.words import does_words, guard_words, plan_words, step_words


def policy_lines(frame: Frame, width: int) -> list[Line]:
    """Return what the guard goes by and what it is at."""
    snapshot = frame.snapshot
    if snapshot is None:
        return [[("nothing was received yet", "dim")]]
    facts = [
        *_authority(snapshot),
        *_thresholds(snapshot),
        *_plans(snapshot),
        *_waits(snapshot.engine),
        *_told(snapshot.notify, snapshot.t_us),
        ("change it", "G: what the guard may do by itself; thresholds: memwatch policy set"),
    ]
    return fact_lines(facts, width)


def _authority(snapshot: Snapshot) -> Iterator[Fact]:
    engine = snapshot.engine
    will = inert(engine.will, 120) or guard_words(engine, engine.mode)
    yield "guard", f"{will}: {does}" if (does := does_words(engine)) else will
    parts = [f"set by {inert(engine.by, 24)}" if engine.by else ""]
    if engine.until_us is not None:
        parts.append(f"until {moment_text(engine.until_us, snapshot.t_us)}")
    if said := ", ".join(part for part in parts if part):
        yield "", said
    if engine.stop_file:
        yield "stop file", f"{inert(engine.stop_file)}: no guard of yours acts while it exists"
    if engine.allow:
        yield "may use", ", ".join(op_text(op) for op in engine.allow)
    for op, why in engine.missing.items():
        yield "cannot", f"{op_text(op)}: {inert(why, 120)}"
    if engine.policy:
        yield "policy", inert(engine.policy, 300)
    if engine.policy_error:
        yield "NOT TAKEN", f"{inert(engine.policy_error, 300)}; the policy before is in force"


def _thresholds(snapshot: Snapshot) -> Iterator[Fact]:
    limits, memory = snapshot.limits, snapshot.resource("memory")
    used = "" if memory is None else f", memory at {share_text(memory.share)}"
    yield "level", f"{snapshot.level}{used}"
    named = (
        ("warn", limits.warn),
        ("intervene", limits.intervene),
        ("emergency", limits.emergency),
        ("hard", limits.hard_share),
    )
    for name, share in named:
        yield name, _share(share, limits)
    yield "soft", f"{_share(limits.soft_share, limits)} {inert(snapshot.engine.soft_why, 300)}"
    if (pressure := snapshot.engine.pressure) is not None:
        some = f"some {pressure.some_avg10:.1f}% of 10 s, {pressure.some_avg60:.1f}% of 60 s"
        yield "pressure", f"{some}, full {pressure.full_avg10:.1f}% ({pressure.scope})"


def _share(share: float, limits: Limits) -> str:
    binding = limits.binding
    of = "" if binding is None else f" = {bytes_text(share * binding.bytes)}"
    return f"{share_text(share)}{of}"


def _plans(snapshot: Snapshot) -> Iterator[Fact]:
    for name, plan in (("plan", snapshot.engine.plan), ("plan before", snapshot.engine.last)):
        if plan is not None:
            yield from _plan(name, plan, snapshot.t_us)


def _plan(name: str, plan: Plan, now_us: int) -> Iterator[Fact]:
    made = f", made {moment_text(plan.made_us, now_us)}" if plan.made_us else ""
    freed = "" if plan.freed_bytes is None else f", freed {bytes_text(plan.freed_bytes)}"
    yield name, f"{plan_words(plan).removeprefix('plan ')}{freed}{made}"
    yield "", inert(plan.why, 400)
    for number, step in enumerate(plan.steps, 1):
        detail = f": {inert(step.detail, 120)}" if step.detail else ""
        patience = f" (it waits {duration_text(step.patience_s)} for an answer)"
        yield "", f"{number} {step_words(step)}{detail}{'' if step.asked_us else patience}"


def _waits(engine: EngineInfo) -> Iterator[Fact]:
    if engine.waiting:
        yield "waits", inert(engine.waiting, 300)
    if engine.open_breakers:
        levels = ", ".join(engine.open_breakers)
        yield "gave up", f"{levels}: its plans had no effect; G lets it try again"


def _told(notify: NotifyInfo | None, now_us: int) -> Iterator[Fact]:
    if notify is None:
        return
    told = [*notify.channels, *([notify.heartbeat] if notify.heartbeat else [])]
    for one in told:
        at = "" if one.at_us is None else f" {moment_text(one.at_us, now_us)}"
        detail = f": {inert(one.detail, 120)}" if one.detail else ""
        yield "tells", f"{inert(one.name, 24)} {one.state or 'nothing sent yet'}{at}{detail}"
    if notify.error:
        yield "tells", f"NOBODY: {inert(notify.error, 300)}"
    elif not notify.channels:
        yield "tells", "nobody: no channel is configured (notify in config.yaml)"
