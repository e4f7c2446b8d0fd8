"""What a run's past teaches: what to do, what to change. Pure; each with the figures behind it.

Only what was measured counts: an intervention that is pending, unmeasured or overlapped by another
one teaches nothing. Source: R13; incidents, "Intervention lessons".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain, takewhile
from math import ceil
from statistics import median
from typing import Final, NamedTuple

from msgspec import to_builtins

from memwatch.config.policy import Action, LevelRule, Policy
from memwatch.domain.checkpoints import Checkpoints
from memwatch.domain.intervention import Advice, Intervention, ResourceEffect
from memwatch.domain.level import Level
from memwatch.domain.recovery import Recovery
from memwatch.domain.snapshot import Limits, Resource
from memwatch.domain.units import bytes_text, counted, duration_text, share_text, times_text
from memwatch.domain.wording import request_text

MOST = 4
_SOON_S = 3600.0
_FAILED: Final = frozenset({"none", "worse"})
_MEASURED: Final = _FAILED | {"effective"}
_ABORT: Final = "abort_experiment"
_FREES: Final = frozenset({"purge", "reclaim", "compact", _ABORT})
_TWICE, _THRICE = 2, 3
_TIME_SHARE = 0.05
"""Share of a run's time in checkpoints over which a slower cadence is worth a word."""
_LEAST_S = 60.0
"""No cool-down and no pause shorter than this is advised."""


class Kind(NamedTuple):
    """Interventions that are the same deed."""

    action: str
    tier: str
    how: str

    @property
    def text(self) -> str:
        """The deed in words."""
        if self.action.partition(" ")[0] == "checkpoint":
            return self.action
        said = {"tier": self.tier, "how": self.how}
        return request_text(self.action, {name: value for name, value in said.items() if value})


def advise(
    interventions: Sequence[Intervention],
    recovery: Recovery,
    checkpoints: Checkpoints,
    limits: Limits,
    policy: Policy,
    memory: Resource | None = None,
) -> tuple[Advice, ...]:
    """Return the most useful advice first, `MOST` at most; `interventions` come newest first.

    `memory` is the tree's usage as it is now: without it no action is held against a target.
    """
    known = [it for it in interventions if _teaches(it)]
    found = chain(
        _cheapest(known, limits, policy, memory),
        _stopped(known),
        _impossible(recovery),
        _bloat(checkpoints),
        _term(recovery),
        _vain_steps(known, policy),
        _short_rebounds(known, policy),
        _vain_pauses(known, policy),
        _cadence(checkpoints, policy),
        _prune(checkpoints),
    )
    return tuple(one for one, _ in zip(found, range(MOST), strict=False))


def kinds_of(known: Sequence[Intervention]) -> dict[Kind, list[Intervention]]:
    """Return interventions by deed, in their order."""
    found: dict[Kind, list[Intervention]] = {}
    for it in known:
        found.setdefault(Kind(it.action.replace("-", "_"), it.tier, it.how), []).append(it)
    return found


def steps_text(steps: Sequence[Action]) -> str:
    """Return steps as a value that `memwatch policy … set` takes, without what goes unsaid.

    >>> steps_text((Action(op="purge", args={"how": "expired"}), Action(op="reclaim")))
    '[{"op": "purge", "args": {"how": "expired"}}, {"op": "reclaim"}]'
    """
    unsaid = to_builtins(Action(op=""))
    told = [to_builtins(one).items() for one in steps]
    return json.dumps([{k: v for k, v in one if k == "op" or unsaid[k] != v} for one in told])


def effect_on(it: Intervention, resource: str) -> ResourceEffect | None:
    """Return what was measured of one resource around an intervention."""
    return next((one for one in it.effects if one.resource == resource), None)


def _teaches(it: Intervention) -> bool:
    return it.verdict in _MEASURED and it.count == 1 and not it.overlaps


def _meant_to_free(kind: Kind) -> bool:
    """Whether it is memory that a deed is for: a checkpoint frees nothing, and should not."""
    return kind.action in _FREES or kind.action == "pause"


# -- what to do ------------------------------------------------------------------------------


def _cheapest(
    known: Sequence[Intervention], limits: Limits, policy: Policy, memory: Resource | None
) -> Iterator[Advice]:
    """Name the cheapest deed that brings memory under the end of its level, by past medians."""
    target = _target(limits, policy, memory)
    if target is None:
        return
    need, share = target
    offers = [one for kind, of in kinds_of(known).items() if (one := _offer(kind, of)) is not None]
    enough = [one for one in offers if one.freed >= need]
    under = f"under {share_text(share)}"
    if enough:
        # What an abort throws away is not in its time: it is named where nothing else is enough.
        best = min(enough, key=lambda one: (one.kind.action == _ABORT, one.cost_s, -one.freed))
        text = (
            f"{best.kind.text}: ~{bytes_text(best.freed)} in {duration_text(best.cost_s)} "
            f"({best.times}), the cheapest that brings memory {under}"
        )
        yield Advice(text=text, kind="action")
    elif offers:
        most = max(offers, key=lambda one: one.freed)
        text = (
            f"nothing measured here frees the {bytes_text(need)} that it takes to be {under}; "
            f"most: {most.kind.text}, ~{bytes_text(most.freed)} ({most.times})"
        )
        yield Advice(text=text, kind="action")


def _target(limits: Limits, policy: Policy, memory: Resource | None) -> tuple[float, float] | None:
    """Return how many bytes are too many, and the share of the limit to come under."""
    if memory is None or memory.used is None or limits.binding is None:
        return None
    arrival = memory.time_to_limit_s
    if memory.level == "normal" and (arrival is None or arrival[0] >= _SOON_S):
        return None
    ends = {"warn": policy.exit.warn, "intervene": policy.exit.intervene}
    share = ends.get(memory.level, policy.exit.emergency)
    if memory.level == "normal":
        share = policy.exit.warn
    need = memory.used - share * limits.binding.bytes
    return (need, share) if need > 0 else None


class _Offer(NamedTuple):
    kind: Kind
    freed: float
    cost_s: float
    times: str


def _offer(kind: Kind, of: Sequence[Intervention]) -> _Offer | None:
    """Return what a deed frees of the process tree's memory; a tier's own bytes are not enough."""
    if not _meant_to_free(kind) or kind.action == "pause":
        return None
    memory = [(it, effect_on(it, "memory")) for it in of]
    freed = [(it, one.freed) for it, one in memory if one is not None and one.freed is not None]
    if not freed or median(size for _, size in freed) <= 0:
        return None
    cost_s = median((it.duration_s or 0.0) + (it.pause_s or 0.0) for it, _ in freed)
    return _Offer(kind, median(size for _, size in freed), cost_s, times_text(len(freed)))


def _stopped(known: Sequence[Intervention]) -> Iterator[Advice]:
    """Name what worked and does not any more."""
    for kind, of in kinds_of(known).items():
        if not _meant_to_free(kind):
            continue
        failed = list(takewhile(lambda it: it.verdict in _FAILED, of))
        worked = [it for it in of[len(failed) :] if it.verdict == "effective"]
        if len(failed) < _TWICE or not worked:
            continue
        sizes = [it.freed_bytes for it in worked if it.freed_bytes is not None]
        before = f"it freed ~{bytes_text(median(sizes))}" if sizes else "it worked"
        text = (
            f"{kind.text} stopped working: no effect the last {len(failed)} times, before that "
            f"{before} ({times_text(len(worked))})"
        )
        yield Advice(text=text, kind="stopped")


def _term(recovery: Recovery) -> Iterator[Advice]:
    if recovery.fix and recovery.grade in ("watch", "poor"):
        yield Advice(text=recovery.fix, kind="recovery")


def _bloat(checkpoints: Checkpoints) -> Iterator[Advice]:
    bloat = checkpoints.bloat
    if bloat.verdict == "bloat" and bloat.why:
        text = f"checkpoint bloat: {bloat.why}" + (f"; {bloat.do}" if bloat.do else "")
        yield Advice(text=text, kind="checkpoint")


def _prune(checkpoints: Checkpoints) -> Iterator[Advice]:
    prune = checkpoints.prune
    if prune.count and prune.bytes:
        text = f"{counted(prune.count, 'checkpoint')} of {bytes_text(prune.bytes)} could go"
        text += f": {prune.why}"
        yield Advice(text=text, kind="checkpoint")


# -- which value to change -------------------------------------------------------------------


def _impossible(recovery: Recovery) -> Iterator[Advice]:
    """Name a budget that no checkpoint can hold, and one that could be."""
    budget, rto = recovery.budget, recovery.rto_s
    if not budget.beyond or rto is None:
        return
    dear = max(recovery.terms, key=lambda term: term.seconds, default=None)
    most = f", most of it {dear.name} ({duration_text(dear.seconds)})" if dear else ""
    step_s = 10 if rto.high > 10 else 1
    value = ceil(rto.high / step_s) * step_s
    text = f"{budget.beyond[0]} whatever checkpoint is taken{most}: it could be {value}s"
    yield Advice(text=text, kind="policy", set=f"budget.recover_s={value}")


def _vain_steps(known: Sequence[Intervention], policy: Policy) -> Iterator[Advice]:
    """Name steps of a gentle level that never freed anything."""
    gentle: tuple[tuple[Level, LevelRule], ...] = (
        ("warn", policy.levels.warn),
        ("intervene", policy.levels.intervene),
    )
    for level, rule in gentle:
        at_level = [it for it in known if _level_of(it) == level]
        for action in rule.steps:
            tried = [it for it in at_level if _is_step(it, action)]
            if len(tried) < _THRICE or any(it.verdict not in _FAILED for it in tried):
                continue
            rest = tuple(one for one in rule.steps if one != action)
            what, key = request_text(action.op, action.args), f"levels.{level}.steps"
            text = f"{what} freed nothing {len(tried)} of {len(tried)} times: not worth a step"
            yield Advice(
                text=f"{text} of {key}",
                kind="policy",
                set=f"{key}={steps_text(rest)}" if rest else "",
            )


def _is_step(it: Intervention, action: Action) -> bool:
    if action.op not in _FREES or it.op != action.op:
        return False
    wanted = {name: action.args[name] for name in ("tier", "how") if name in action.args}
    return all(getattr(it, name) == value for name, value in wanted.items())


def _level_of(it: Intervention) -> str:
    """Return the level of the plan that it was a step of: plans are named `<time>-<level>`."""
    return it.plan.rpartition("-")[2]


def _short_rebounds(known: Sequence[Intervention], policy: Policy) -> Iterator[Advice]:
    """Name a cool-down that outlasts what its plans gain."""
    for level in ("warn", "intervene", "emergency"):
        rule: LevelRule = getattr(policy.levels, level)
        back = [
            seconds
            for it in known
            if _level_of(it) == level and (seconds := _rebound_s(it)) is not None
        ]
        if len(back) < _TWICE or median(back) >= rule.cooldown_s or rule.cooldown_s <= _LEAST_S:
            continue
        value = max(_LEAST_S, median(back) // 10 * 10)
        text = (
            f"memory is back {duration_text(median(back))} after a plan of {level} "
            f"({times_text(len(back))}), and the next may come after "
            f"{duration_text(rule.cooldown_s)}"
        )
        yield Advice(text=text, kind="policy", set=f"levels.{level}.cooldown_s={value:g}")


def _rebound_s(it: Intervention) -> float | None:
    memory = effect_on(it, "memory")
    return memory.rebound_s if memory is not None else it.rebound_s


def _vain_pauses(known: Sequence[Intervention], policy: Policy) -> Iterator[Advice]:
    pauses = [it for it in known if it.action == "pause"]
    longest_s = policy.pause.longest_s
    if len(pauses) < _TWICE or any(it.verdict not in _FAILED for it in pauses):
        return
    lost_s = sum(it.pause_s or 0.0 for it in pauses)
    value = max(_LEAST_S, longest_s // 2)
    if value >= longest_s:
        return
    text = (
        f"{len(pauses)} pauses freed nothing and cost {duration_text(lost_s)}: give up sooner than "
        f"after {duration_text(longest_s)}"
    )
    yield Advice(text=text, kind="policy", set=f"pause.longest_s={value:g}")


def _cadence(checkpoints: Checkpoints, policy: Policy) -> Iterator[Advice]:
    """Name a cadence that takes more of the run's time than it should; bloat says so by itself."""
    stats = checkpoints.stats
    share, every_s = stats.time_share, stats.every_s
    if checkpoints.bloat.verdict == "bloat" or share is None or not every_s:
        return
    if share <= _TIME_SHARE:
        return
    slower_s = ceil(every_s * share / _TIME_SHARE)
    text = (
        f"checkpoints take {share_text(share)} of the time, one each {duration_text(every_s)}: "
        f"one each {duration_text(slower_s)} would take {share_text(_TIME_SHARE)}"
    )
    work_s = policy.budget.work_s
    change = f"budget.work_s={slower_s}" if work_s is not None and work_s < slower_s else ""
    yield Advice(text=text, kind="policy" if change else "checkpoint", set=change)
