"""What a run's past teaches: what to do, what to change. Pure; each with the figures behind it.

Only what was measured counts: an intervention that is pending, unmeasured or overlapped by another
one teaches nothing. Source: R13; incidents, "Intervention lessons".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from math import ceil
from statistics import median

from msgspec import to_builtins

from memwatch.analytics.deeds import FREES, effect_on, teaches, what_helps, what_stopped
from memwatch.analytics.efficacy.confounders import grew_before
from memwatch.config.policy import Action, LevelRule, Policy
from memwatch.domain.checkpoints import Checkpoints
from memwatch.domain.intervention import IN_VAIN, Advice, Intervention
from memwatch.domain.level import Level
from memwatch.domain.recovery import Recovery
from memwatch.domain.snapshot import Limits, Resource
from memwatch.domain.units import bytes_text, counted, duration_text, share_text, times_text
from memwatch.domain.wording import request_text

MOST = 4
_LITTLE = 0.001
"""Of the limit: a step that frees less, by the agent's own account, frees nothing."""
_TWICE, _THRICE = 2, 3
_TIME_SHARE = 0.05
"""Share of a run's time in checkpoints over which a slower cadence is worth a word."""
_LEAST_S = 60.0
"""No cool-down and no pause shorter than this is advised."""


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
    known = [it for it in interventions if teaches(it)]
    found = chain(
        what_helps(known, recovery, limits, policy, memory),
        what_stopped(known),
        _impossible(recovery),
        _bloat(checkpoints),
        _term(recovery),
        _vain_steps(known, interventions, limits, policy),
        _short_rebounds(known, policy),
        _vain_pauses(known, policy),
        _cadence(checkpoints, policy),
        _prune(checkpoints),
    )
    return tuple(one for one, _ in zip(not_undone(found), range(MOST), strict=False))


def not_undone(found: Iterable[Advice]) -> Iterator[Advice]:
    """Leave out what would set a value again that advice before it set: only the last would hold.

    It is given once the first was followed, if it still holds then.
    """
    seen: set[str] = set()
    for one in found:
        key = one.set.partition("=")[0]
        if not key or key not in seen:
            seen.add(key)
            yield one


def steps_text(steps: Sequence[Action]) -> str:
    """Return steps as a value that `memwatch policy … set` takes, without what goes unsaid.

    >>> steps_text((Action(op="purge", args={"how": "expired"}), Action(op="reclaim")))
    '[{"op": "purge", "args": {"how": "expired"}}, {"op": "reclaim"}]'
    """
    unsaid = to_builtins(Action(op=""))
    told = [to_builtins(one).items() for one in steps]
    return json.dumps([{k: v for k, v in one if k == "op" or unsaid[k] != v} for one in told])


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


def _vain_steps(
    known: Sequence[Intervention],
    all_of_them: Sequence[Intervention],
    limits: Limits,
    policy: Policy,
) -> Iterator[Advice]:
    """Name steps of a gentle level that never freed anything.

    As we measured it; where steps run back to back, as the agent itself says of each.
    """
    gentle: tuple[tuple[Level, LevelRule], ...] = (
        ("warn", policy.levels.warn),
        ("intervene", policy.levels.intervene),
    )
    for level, rule in gentle:
        at_level = [it for it in known if _level_of(it) == level]
        plans = [it for it in all_of_them if it.op == "plan" and _level_of(it) == level]
        for action in rule.steps:
            what, key = request_text(action.op, action.args), f"levels.{level}.steps"
            vain = _measured_vain(at_level, action) or _vain_by_account(plans, what, limits)
            if not vain:
                continue
            rest = tuple(one for one in rule.steps if one != action)
            yield Advice(
                text=f"{what} freed {vain}: not worth a step of {key}",
                kind="policy",
                set=f"{key}={steps_text(rest)}" if rest else "",
            )


def _measured_vain(at_level: Sequence[Intervention], action: Action) -> str:
    tried = [it for it in at_level if _is_step(it, action)]
    if len(tried) < _THRICE or any(it.verdict not in IN_VAIN for it in tried):
        return ""
    return f"nothing {len(tried)} of {len(tried)} times"


def _vain_by_account(plans: Sequence[Intervention], what: str, limits: Limits) -> str:
    """Return what a step freed at most in the plans of a level, where that is next to nothing."""
    told = [stage.freed_bytes for it in plans for stage in it.stages if stage.name == what]
    if len(told) < _THRICE or limits.binding is None:
        return ""
    known = [freed for freed in told if freed is not None]
    most = max(known, default=0)
    if len(known) < len(told) or most > _LITTLE * limits.binding.bytes:
        return ""
    little = f"{bytes_text(most)} at most" if most > 0 else "nothing"
    return f"{little} in {len(told)} plans, by the agent's own account"


def _is_step(it: Intervention, action: Action) -> bool:
    if action.op not in FREES or it.op != action.op:
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
    """Name pauses that freed nothing; where memory grew before, to hold that up is what they do."""
    pauses = [it for it in known if it.action == "pause"]
    if any(grew_before(it.confounders) for it in pauses):
        return
    longest_s = policy.pause.longest_s
    if len(pauses) < _TWICE or any(it.verdict not in IN_VAIN for it in pauses):
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
