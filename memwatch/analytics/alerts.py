"""What a person should know: raised once when it begins, cleared once when it is over. Pure.

An alert is raised again only when it became worse. One that is over is cleared `CLEAR_AFTER_S`
later, so that a figure which is missing for a moment (a guard that begins, say) ends nothing.
Keys: `memory`, `silent`, `crashed`, `killed`, `recording`, `disk`, `read_only`, `policy`,
`breaker.<level>`, `plan.<id>`, `budget`. Source: D5, D7, R12.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from memwatch.analytics.budget import VAIN
from memwatch.domain.control import Alert
from memwatch.domain.level import ACTING, Level, rank
from memwatch.domain.operations import ENGINE
from memwatch.domain.record import Record
from memwatch.domain.snapshot import PAST, Snapshot
from memwatch.domain.text import inert
from memwatch.domain.units import arrival_text, bytes_text, duration_text, share_text

AlertSeverity = Literal["notice", "warning", "error"]

SEVERITIES: Final[tuple[AlertSeverity, ...]] = ("notice", "warning", "error")
"""From light to grave."""
_SEVERITIES: Final[dict[str, AlertSeverity]] = {severity: severity for severity in SEVERITIES}
CLEAR_AFTER_S = 5.0
_S = 1_000_000
_LISTENED_US = 10 * _S
"""Silence counts while we listen: a machine that slept, or a guard that was held up, was deaf."""


class Moment(NamedTuple):
    """An instant by both clocks."""

    t_us: int
    m_us: int


class Rules(Struct, frozen=True, kw_only=True):
    """From when on something is an alert."""

    least: Level = "intervene"
    """Of memory; under it nothing is raised."""
    silent_after_s: float = 300.0


class Raised(Struct, frozen=True, kw_only=True):
    """An alert that stands."""

    alert: Alert
    since_m_us: int
    over_m_us: int | None = None
    """Boot clock since when its reason is gone."""


class AlertState(Struct, frozen=True, kw_only=True):
    """What was told, and how long the run has been silent."""

    raised: dict[str, Raised] = {}
    judged_m_us: int | None = None
    last_lsn: int = 0
    silence_us: int = 0

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """Return those that stand, gravest first, then oldest first."""
        found = [raised.alert for raised in self.raised.values()]
        return tuple(sorted(found, key=lambda it: (-grave(it.severity), it.raised_us)))


class Cleared(Struct, frozen=True, kw_only=True):
    """An alert whose reason is gone."""

    alert: Alert
    lasted_us: int
    moot: bool = False
    """It ended only because the run did: that is no all-clear for a person."""


class _Finding(NamedTuple):
    key: str
    severity: AlertSeverity
    text: str


def grave(severity: AlertSeverity) -> int:
    """Return the place of a severity, 0 for `notice`."""
    return SEVERITIES.index(severity)


def severity_of(level: Level) -> AlertSeverity:
    """Return how grave a level is.

    >>> [severity_of(level) for level in ("warn", "intervene", "emergency", "hard")]
    ['notice', 'warning', 'error', 'error']
    """
    return SEVERITIES[min(max(rank(level) - 1, 0), 2)]


def severity_named(text: str) -> AlertSeverity:
    """Return the severity that a log names; `warning` for any other word."""
    return _SEVERITIES.get(text, "warning")


def judge(
    state: AlertState, snapshot: Snapshot, now: Moment, rules: Rules
) -> tuple[AlertState, tuple[Alert, ...], tuple[Cleared, ...]]:
    """Return the next state, what is raised now (anew, or as worse), and what is cleared now."""
    state = _listen(state, snapshot, now)
    found = {it.key: it for look in _LOOKS for it in look(snapshot, rules, state.silence_us)}
    raised: dict[str, Raised] = {}
    news: list[Alert] = []
    cleared: list[Cleared] = []
    for key, standing in state.raised.items():
        if key in found:
            raised[key] = _still(standing, found[key])
            if raised[key].alert.severity != standing.alert.severity:
                news.append(raised[key].alert)
        elif standing.over_m_us is None:
            raised[key] = replace(standing, over_m_us=now.m_us)
        elif now.m_us - standing.over_m_us < CLEAR_AFTER_S * _S:
            raised[key] = standing
        else:
            cleared.append(_cleared(standing, standing.over_m_us, snapshot))
    for key, finding in found.items():
        if key not in state.raised:
            alert = Alert(key=key, severity=finding.severity, text=finding.text, raised_us=now.t_us)
            raised[key] = Raised(alert=alert, since_m_us=now.m_us)
            news.append(alert)
    return replace(state, raised=raised), tuple(news), tuple(cleared)


def restore(records: Iterable[Record], now: Moment) -> AlertState:
    """Return the state that `alert` records of a guard's log tell, in their order (R7).

    The time that an alert stands goes by the wall clock there: it may be of another boot.
    """
    raised: dict[str, Raised] = {}
    for record in records:
        key = inert(record.text("key"), 80)
        if record.kind != "alert" or not key:
            continue
        if record.text("state") not in ("raised", "stands"):
            raised.pop(key, None)
            continue
        before = raised.get(key)
        alert = Alert(
            key=key,
            severity=severity_named(record.text("severity")),
            text=inert(record.text("text"), 200),
            raised_us=record.number("raised_us")
            or (before.alert.raised_us if before else record.t_us),
        )
        age_us = max(now.t_us - alert.raised_us, 0)
        raised[key] = Raised(alert=alert, since_m_us=now.m_us - age_us)
    return AlertState(raised=raised)


def _listen(state: AlertState, snapshot: Snapshot, now: Moment) -> AlertState:
    """Count how long nothing came from the run, as far as we listened."""
    lsn = snapshot.source.last_lsn
    if state.judged_m_us is None:
        last_us = snapshot.progress.last_record_us
        silence_us = max(now.t_us - last_us, 0) if last_us else 0
    elif lsn != state.last_lsn or snapshot.run.state in PAST:
        silence_us = 0
    else:
        silence_us = state.silence_us + min(now.m_us - state.judged_m_us, _LISTENED_US)
    return replace(state, judged_m_us=now.m_us, last_lsn=lsn, silence_us=silence_us)


def _still(standing: Raised, finding: _Finding) -> Raised:
    alert = standing.alert
    if grave(finding.severity) > grave(alert.severity):
        alert = replace(alert, severity=finding.severity, text=finding.text)
    return Raised(alert=alert, since_m_us=standing.since_m_us)


def _cleared(standing: Raised, over_m_us: int, snapshot: Snapshot) -> Cleared:
    lasted_us = max(over_m_us - standing.since_m_us, 0)
    moot = snapshot.run.state in PAST and standing.alert.key not in _OUTLIVE
    return Cleared(alert=standing.alert, lasted_us=lasted_us, moot=moot)


# -- what is looked for --------------------------------------------------------------------------


def _memory(snapshot: Snapshot, rules: Rules, _: int) -> Iterator[_Finding]:
    level = snapshot.level
    if level == "normal" or rank(level) < rank(rules.least) or snapshot.run.state in PAST:
        return
    text = f"memory {level}"
    memory = snapshot.resource("memory")
    if memory is not None:
        text += f": {share_text(memory.share)} of {bytes_text(memory.limit)}"
        if memory.time_to_limit_s is not None:
            text += f", limit in {arrival_text(*memory.time_to_limit_s)}"
    yield _Finding("memory", severity_of(level), text)


def _run(snapshot: Snapshot, rules: Rules, silence_us: int) -> Iterator[_Finding]:
    run = snapshot.run
    if run.state in ("crashed", "killed"):
        why = f": {run.end_reason}" if run.end_reason else ""
        yield _Finding(run.state, "error", inert(f"{run.agent} {run.state}{why}", 200))
    elif silence_us >= rules.silent_after_s * _S:
        yield _Finding("silent", "error", f"no record for {duration_text(rules.silent_after_s)}")


def _recording(snapshot: Snapshot, _: Rules, __: int) -> Iterator[_Finding]:
    guard = snapshot.guard
    if guard.recording is False:
        text = inert(f"the guard cannot record: {guard.not_recording_why}", 200)
        yield _Finding("recording", "error", text)


def _disk(snapshot: Snapshot, _: Rules, __: int) -> Iterator[_Finding]:
    if snapshot.run.state in PAST or snapshot.guard.recording is False:
        return  # the light says the latter, too: it is an alert of its own
    light = next((it for it in snapshot.lights if it.name == "DISK"), None)
    if light is not None and light.word in ("ACT", "CRIT"):
        severity: AlertSeverity = "error" if light.word == "CRIT" else "warning"
        yield _Finding("disk", severity, inert(f"disk: only {light.figure} free", 200))
    elif snapshot.checkpoints.next_fits is False:
        yield _Finding("disk", "warning", "disk: no room for the next checkpoints")


def _engine(snapshot: Snapshot, _: Rules, __: int) -> Iterator[_Finding]:
    engine = snapshot.engine
    if engine.policy_error:
        text = inert(f"the changed policy is not taken over: {engine.policy_error}", 200)
        yield _Finding("policy", "warning", text)
    if snapshot.run.state in PAST:
        return
    for slot in engine.open_breakers:
        which = inert(slot, 60)
        text = (
            f"plans of {which} had no effect: none is made again until it was normal for a while "
            "or you reset the engine"
        )
        # A run that lives at warn wakes nobody: what is left there is only not tried again.
        gentle = which.rpartition(" ")[2] == "warn"
        yield _Finding(f"breaker.{which}", "notice" if gentle else "error", text)
    plan = engine.plan
    if plan is not None and plan.state == "proposed" and not plan.dry and engine.mode == "ask":
        text = inert(f"a plan waits for you ({plan.level}): {plan.why}", 200)
        yield _Finding(f"plan.{inert(plan.id, 60)}", "warning", text)


def _read_only(snapshot: Snapshot, _: Rules, __: int) -> Iterator[_Finding]:
    if snapshot.run.state in PAST:
        return
    holds = (hold for hold in snapshot.holds if hold.op == "read_only" and hold.effective)
    if any(hold.owner == ENGINE for hold in holds):
        text = "the hard limit was touched: read-only until a person lets it write again"
        yield _Finding("read_only", "error", text)


def _settings(snapshot: Snapshot, _: Rules, __: int) -> Iterator[_Finding]:
    if snapshot.notify is not None and snapshot.notify.error:
        text = inert(f"nobody is told of anything: {snapshot.notify.error}", 200)
        yield _Finding("settings", "warning", text)


def _budget(snapshot: Snapshot, _: Rules, __: int) -> Iterator[_Finding]:
    """Look for what a crash would cost over its budget, unless the guard is about to mend it."""
    budget, engine = snapshot.recovery.budget, snapshot.engine
    if not budget.over or snapshot.run.state in PAST:
        return
    if budget.beyond:
        text = f"{'; '.join(budget.beyond)}: no checkpoint brings it under"
        yield _Finding("budget", "warning", text)
    elif engine.waiting.startswith(VAIN):
        yield _Finding("budget", "warning", f"{'; '.join(budget.over)}: {VAIN}")
    elif engine.mode not in ACTING or "checkpoint" not in engine.allow:
        text = f"{'; '.join(budget.over)}: {budget.checkpoint} checkpoint, which is left to you"
        yield _Finding("budget", "notice", text)


_Look = Callable[[Snapshot, Rules, int], Iterable[_Finding]]
_LOOKS: tuple[_Look, ...] = (
    _memory,
    _run,
    _recording,
    _disk,
    _engine,
    _budget,
    _read_only,
    _settings,
)
_OUTLIVE = frozenset({"recording", "policy", "settings", "crashed", "killed"})
"""What is not over because the run is."""
