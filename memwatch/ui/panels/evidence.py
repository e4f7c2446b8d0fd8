"""Evidence: for each panel, where its numbers come from. From the snapshot only."""

from __future__ import annotations

from collections.abc import Callable

from memwatch.domain.snapshot import Resource, Snapshot
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text, duration_text, share_text
from memwatch.ui.format import age_text, clock_text, count_text, rate_text
from memwatch.ui.frame import Frame
from memwatch.ui.line import Line
from memwatch.ui.panels.crash_evidence import acts_facts, recovery_facts
from memwatch.ui.panels.facts import Fact, fact_lines
from memwatch.ui.panels.growth import limit_lines
from memwatch.ui.panels.log import log_title


def evidence_lines(panel: str, frame: Frame, width: int) -> list[Line]:
    """Return samples, formula, window, source and age behind the figures of a panel."""
    snapshot = frame.snapshot
    if snapshot is None:
        return [[("nothing was received yet", "dim")]]
    return fact_lines([*_EVIDENCE[panel](snapshot), *_reading(snapshot, frame)], width)


def _measured(resource: Resource | None, snapshot: Snapshot) -> str:
    if resource is None or resource.used is None:
        return "not measured yet"
    age = (
        ""
        if resource.at_us is None
        else f", {age_text((snapshot.t_us - resource.at_us) / 1e6)} old"
    )
    return f"{resource.used:,.0f} bytes{age}"


def _tiers(snapshot: Snapshot) -> list[Fact]:
    facts = [
        ("tree", _measured(snapshot.resource("memory"), snapshot)),
        ("", "resident + swapped bytes of the agent's process and all descendants ever seen; pages"
             " shared between them count in each (source: /proc, read by the guard)"),
        ("tiers", "the agent's own sample records (absolute, on change, at least each minute)"),
    ]  # fmt: skip
    facts += [
        (
            f"  {inert(tier.name, 10)}",
            f"{bytes_text(tier.bytes)} in {count_text(tier.entries)} entries",
        )
        for tier in snapshot.tiers
    ]
    facts += [
        (
            "unaccounted",
            _measured(snapshot.resource("unaccounted"), snapshot) + " = tree − sum of tiers",
        ),
        ("columns", "each keeps the last value; a peak above it is drawn as '; never a mean"),
        ("gap", "an empty column: nothing was recorded then"),
    ]
    return facts + _limits(snapshot)


def _limits(snapshot: Snapshot) -> list[Fact]:
    limits = snapshot.limits
    shares = (
        f"warn {share_text(limits.warn)}, intervene {share_text(limits.intervene)}, emergency"
        f" {share_text(limits.emergency)}, soft {share_text(limits.soft_share)}, hard"
        f" {share_text(limits.hard_share)} of the binding limit; {inert(limits.why)}"
    )
    named = ["".join(text for text, _ in line) for line in limit_lines(limits)]
    facts = [("limit", named[0].removeprefix("limit ")), *(("", text) for text in named[1:])]
    if limits.binding is not None and limits.binding.why:
        facts.append(("", inert(limits.binding.why)))
    return [*facts, ("thresholds", shares)]


def _growth(snapshot: Snapshot) -> list[Fact]:
    facts = [
        ("formula", "robust slope over each window, per minute, from record time or a clock that"
                    " never runs back; – while a window holds too little"),
        ("windows", ", ".join(snapshot.windows)),
    ]  # fmt: skip
    for resource in snapshot.resources:
        if resource.name in ("memory", "unaccounted"):
            rates = [f"{w} {rate_text(resource.growth_per_min.get(w))}" for w in snapshot.windows]
            facts.append((resource.name, ", ".join(rates)))
    for tier in snapshot.tiers:
        rates = [f"{w} {rate_text(tier.growth_per_min.get(w))}" for w in snapshot.windows]
        facts.append((inert(tier.name, 12), ", ".join(rates)))
    memory = snapshot.resource("memory")
    if memory is not None and memory.time_to_limit_s is not None:
        low, high = memory.time_to_limit_s
        text = f"{duration_text(low)} to {duration_text(high)}: room below the limit / each slope"
        facts.append(("to limit", text))
    return facts + _limits(snapshot)


def _processes(snapshot: Snapshot) -> list[Fact]:
    pids = ", ".join(f"{member.pid}" for member in snapshot.processes.members[:12])
    return [
        (
            "tree",
            "the agent's process and all descendants ever seen; one whose parent left stays ours",
        ),
        ("identity", "pid + start ticks + boot: a number used again is not mistaken"),
        ("orphan", "its parent left the tree while it lives on"),
        ("members", f"the largest by resident + swapped bytes: {pids}"),
    ]


def _log(snapshot: Snapshot) -> list[Fact]:
    return [
        ("events", f"{snapshot.event_seq} so far, from the agent's log and the guard's own"),
        ("records", f"{snapshot.source.records:,} read, last lsn {snapshot.source.last_lsn:,}"),
        ("damage", f"{snapshot.source.damaged} damaged, {snapshot.source.gaps} gaps,"
                   f" {snapshot.source.unknown} of unknown kind: shown, counted, skipped"),
    ]  # fmt: skip


def _since(snapshot: Snapshot) -> list[Fact]:
    since = snapshot.since
    facts = [
        ("since", "the last viewer closed; a viewer that opens does not begin it anew, one that"
                  " closes does"),
        ("counts", "both logs, as they tell it: levels and plans by the guard, the rest by the"
                   " agent; freed as far as the guard measured it"),
    ]  # fmt: skip
    if since is not None:
        facts.append(("from", clock_text(since.from_us)))
    facts += [
        (inert(alert.key, 12), f"{alert.severity} since {clock_text(alert.raised_us)}: "
                               f"{inert(alert.text)}")
        for alert in snapshot.alerts
    ]  # fmt: skip
    return facts


def _reading(snapshot: Snapshot, frame: Frame) -> list[Fact]:
    source = snapshot.source
    how = f"{inert(source.kind, 20)}, by {source.watch}" + (
        f" ({inert(source.watch_why, 60)})" if source.watch_why else ""
    )
    lag = "" if source.lag_s is None else f", newest record {age_text(source.lag_s)} old"
    facts = [
        ("source", f"{inert(snapshot.run.path)}: {how}{lag}"),
        (
            "age",
            f"snapshot {snapshot.seq} of {clock_text(snapshot.t_us)}, came"
            f" {age_text(frame.link.age_s)} ago",
        ),
    ]
    trouble = log_title(frame)
    return [*facts, ("reading", trouble)] if trouble else facts


_EVIDENCE: dict[str, Callable[[Snapshot], list[Fact]]] = {
    "tiers": _tiers,
    "growth": _growth,
    "acts": acts_facts,
    "recovery": recovery_facts,
    "since": _since,
    "procs": _processes,
    "log": _log,
}
