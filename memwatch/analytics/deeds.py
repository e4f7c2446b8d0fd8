"""What was done about memory so far, by deed, and what of it would help again. Pure.

Only what was measured counts. Steps of a plan run back to back, so it is the plan that is offered;
what the agent says of its steps stands beside it as the agent's word. Source: R13.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from statistics import median
from typing import Final, NamedTuple

from memwatch.config.policy import Policy
from memwatch.domain.intervention import IN_VAIN, MEASURED, Advice, Intervention, ResourceEffect
from memwatch.domain.recovery import Recovery
from memwatch.domain.snapshot import Limits, Resource
from memwatch.domain.units import bytes_text, duration_text, share_text, times_text
from memwatch.domain.wording import op_text, request_text

_ABORT: Final = "abort_experiment"
_RESTART: Final = "restart"
FREES: Final = frozenset({"purge", "reclaim", "compact", _ABORT})
"""Operations that are there to free memory."""
_OFFERED: Final = FREES | {"plan", _RESTART}
_SOON_S = 3600.0
_TWICE = 2


class Kind(NamedTuple):
    """Interventions that are the same deed."""

    action: str
    tier: str
    how: str

    @property
    def op(self) -> str:
        """The operation that it is."""
        return self.action.partition(" ")[0]

    @property
    def text(self) -> str:
        """The deed in words."""
        if self.op == "checkpoint":
            return self.action
        if self.op == "plan":
            level = self.action.partition(" ")[2]
            return f"a plan of {level}" + (f" ({self.how})" if self.how else "")
        said = {"tier": self.tier, "how": self.how}
        return request_text(self.action, {name: value for name, value in said.items() if value})

    @property
    def loses(self) -> int:
        """Return what it throws away besides memory: nothing, the experiment, the process."""
        if self.op == _RESTART:
            return 2
        return int(self.op == _ABORT or op_text(_ABORT) in self.how)


def kinds_of(known: Sequence[Intervention]) -> dict[Kind, list[Intervention]]:
    """Return interventions by deed, in their order."""
    found: dict[Kind, list[Intervention]] = {}
    for it in known:
        found.setdefault(Kind(it.action.replace("-", "_"), it.tier, it.how), []).append(it)
    return found


def effect_on(it: Intervention, resource: str) -> ResourceEffect | None:
    """Return what was measured of one resource around an intervention."""
    return next((one for one in it.effects if one.resource == resource), None)


def teaches(it: Intervention) -> bool:
    """Say whether it was measured, and by itself."""
    return it.verdict in MEASURED and it.count == 1 and not it.overlaps


# -- what would help -----------------------------------------------------------------------------


def what_helps(
    known: Sequence[Intervention],
    recovery: Recovery,
    limits: Limits,
    policy: Policy,
    memory: Resource | None,
) -> Iterator[Advice]:
    """Name the cheapest deed that brings memory under the end of its level, by past medians."""
    target = _target(limits, policy, memory)
    if target is None:
        return
    need, share = target
    kinds = kinds_of(known)
    offers = [one for kind, of in kinds.items() if (one := _offer(kind, of)) is not None]
    enough = [one for one in offers if one.freed >= need]
    under = f"under {share_text(share)}"
    if enough:
        # What an abort throws away is not in its time: it is named where nothing else is enough.
        best = min(enough, key=lambda one: (one.kind.loses, one.cost_s, -one.freed))
        text = (
            f"{best.kind.text}: ~{bytes_text(best.freed)} in {duration_text(best.cost_s)} "
            f"({best.times}), the cheapest that brings memory {under}{best.account}"
        )
        yield Advice(text=text, kind="action")
    elif offers:
        most = max(offers, key=lambda one: one.freed)
        text = (
            f"nothing measured here frees the {bytes_text(need)} that it takes to be {under}; "
            f"most: {most.kind.text}, ~{bytes_text(most.freed)} ({most.times}){most.account}"
        )
        yield Advice(text=text, kind="action")
    else:
        yield from _nothing_helps(kinds, recovery)


def _target(limits: Limits, policy: Policy, memory: Resource | None) -> tuple[float, float] | None:
    """Return how many bytes are too many, and the share of the limit to come under."""
    if memory is None or memory.used is None or limits.binding is None:
        return None
    arrival = memory.time_to_limit_s
    if memory.level == "normal" and (arrival is None or arrival[0] >= _SOON_S):
        return None
    lowered = max(policy.thresholds.warn - limits.soft_share, 0.0)  # the soft limit moves warn
    ends = {"warn": policy.exit.warn - lowered, "intervene": policy.exit.intervene}
    share = ends.get(memory.level, policy.exit.emergency)
    if memory.level == "normal":
        share = ends["warn"]
    need = memory.used - share * limits.binding.bytes
    return (need, share) if need > 0 else None


class _Offer(NamedTuple):
    kind: Kind
    freed: float
    cost_s: float
    times: str
    account: str


def _offer(kind: Kind, of: Sequence[Intervention]) -> _Offer | None:
    """Return what a deed frees of the process tree's memory; a tier's own bytes are not enough."""
    if kind.op not in _OFFERED:
        return None
    memory = [(it, effect_on(it, "memory")) for it in of]
    freed = [(it, one.freed) for it, one in memory if one is not None and one.freed is not None]
    if not freed or median(size for _, size in freed) <= 0:
        return None
    cost_s = median((it.duration_s or 0.0) + (it.pause_s or 0.0) for it, _ in freed)
    size = median(size for _, size in freed)
    account = _account([it for it, _ in freed]) if kind.op == "plan" else ""
    return _Offer(kind, size, cost_s, times_text(len(freed)), account)


def _account(plans: Sequence[Intervention]) -> str:
    """Return which step the agent itself says freed most."""
    told: dict[str, list[int]] = {}
    for stage in (stage for it in plans for stage in it.stages):
        told.setdefault(stage.name, []).append(stage.freed_bytes or 0)
    if not told:
        return ""
    name, freed = max(((n, median(sizes)) for n, sizes in told.items()), key=lambda one: one[1])
    return f"; most of it by {name}, as the agent says: {bytes_text(freed)}" if freed > 0 else ""


def _nothing_helps(kinds: dict[Kind, list[Intervention]], recovery: Recovery) -> Iterator[Advice]:
    """Say that all that was tried was in vain, and what a restart would cost."""
    tried = {kind: of for kind, of in kinds.items() if kind.op in FREES or kind.op == "plan"}
    vain = {kind: of for kind, of in tried.items() if effect_on(of[0], "memory") is not None}
    times = sum(len(of) for of in vain.values())
    if times < _TWICE:
        return
    named = ", ".join(f"{kind.text} ({times_text(len(of))})" for kind, of in [*vain.items()][:3])
    text = f"nothing that was tried frees memory: {named}"
    rto = recovery.rto_s
    if rto is not None:
        text += f"; a restart is back in {duration_text(rto.likely)} by the estimate"
    yield Advice(text=text, kind="action")


# -- what does not help any more -----------------------------------------------------------------


def what_stopped(known: Sequence[Intervention]) -> Iterator[Advice]:
    """Name what worked and does not any more."""
    for kind, of in kinds_of(known).items():
        if kind.op not in FREES and kind.op not in ("plan", "pause"):
            continue
        failed = list(takewhile(lambda it: it.verdict in IN_VAIN, of))
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
