"""What a person could do now, and what that gained before in this run. Pure.

A gain is the median of what the same purge freed here, as it was measured; without history the
text says so. Source: D6, R8, R12, R13.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from memwatch.domain.control import Suggestion
from memwatch.domain.intervention import Intervention
from memwatch.domain.level import rank
from memwatch.domain.recovery import RecoveryBudget
from memwatch.domain.snapshot import PAST, Resource, Snapshot, Tier
from memwatch.domain.units import bytes_text, duration_text, local_time_text, times_text

SOON_S = 3600.0
"""A limit that is reached earlier than this calls for a suggestion at a normal level as well."""
_LEAST_SHARE = 0.01
"""Of the limit: what frees less, or holds no more, is not worth a person's key."""
_CLAIMS = 5
"""Newest reclaims whose own account counts."""
_NEVER = frozenset({"verified"})
"""Records that rollbacks are decided by are not purged on a hint (R4)."""


def suggest(snapshot: Snapshot) -> Suggestion | None:
    """Return what helps most now; None when nothing needs help or nothing can be done."""
    if snapshot.run.state in PAST:
        return None
    ops, memory = snapshot.run.ops, snapshot.resource("memory")
    gentle = rank(snapshot.level) < rank("emergency")
    if "checkpoint" in ops and gentle and (found := _for_budget(snapshot.recovery.budget)):
        return found
    if _pressed(snapshot, memory):
        purge = _purge(snapshot, memory) if "purge" in ops else None
        give_back = _reclaim(snapshot, memory) if "reclaim" in ops else None
        both = [one for one in (purge, give_back) if one is not None]
        known = [one for one in both if one.gain_bytes is not None]
        if both:  # what gained something comes before what nobody tried
            return max(known, key=lambda one: one.gain_bytes or 0.0) if known else both[0]
    if snapshot.checkpoints.overdue and "checkpoint" in ops:
        return _checkpoint(snapshot)
    return None


def _for_budget(budget: RecoveryBudget) -> Suggestion | None:
    """Return the checkpoint that brings what a crash would cost under the policy's budget."""
    kind = budget.checkpoint
    over = [text for text in budget.over if text not in budget.beyond]
    if kind is None or not over:
        return None
    text = f"checkpoint {kind}: {over[0]}"
    return Suggestion(op="checkpoint", args={"kind": kind}, text=text, basis="budget")


def _pressed(snapshot: Snapshot, memory: Resource | None) -> bool:
    if snapshot.level != "normal":
        return True
    arrival = memory.time_to_limit_s if memory else None
    return arrival is not None and arrival[0] < SOON_S


def _purge(snapshot: Snapshot, memory: Resource | None) -> Suggestion | None:
    """Return the purge of the tier that gained most; of the largest one without history."""
    limit = memory.limit if memory and memory.limit else 0.0
    held = {it.name: it for it in snapshot.tiers if it.bytes and it.name not in _NEVER}
    measured = {name: _gains(snapshot.interventions, name) for name in held}
    best: tuple[float, str] | None = None
    for name, gains in measured.items():
        if gains:
            # what a tier does not hold any more, it cannot give
            gain = min(median(it.freed_bytes or 0.0 for it in gains), float(held[name].bytes or 0))
            if gain > limit * _LEAST_SHARE and (best is None or gain > best[0]):
                best = gain, name
    if best is not None:
        return _measured(best[1], best[0], measured[best[1]])
    least = limit * _LEAST_SHARE
    unknown = [it for it in held.values() if not measured[it.name] and (it.bytes or 0) > least]
    return _unmeasured(max(unknown, key=lambda it: it.bytes or 0)) if unknown else None


def _reclaim(snapshot: Snapshot, memory: Resource | None) -> Suggestion | None:
    """Return to collect garbage and drop caches, unless that gained nothing here."""
    what = "reclaim: collect garbage, drop caches"
    gains = _gains(snapshot.interventions, "", "reclaim")
    limit = memory.limit if memory and memory.limit else 0.0
    if gains:
        gain = median(it.freed_bytes or 0.0 for it in gains)
        text, basis = f"{what}: ~{bytes_text(gain)}", _basis(gains)
    elif told := _claims(snapshot.interventions):
        gain = median(told)
        text, basis = f"{what}: ~{bytes_text(gain)}, as the agent says", "the agent's own account"
    else:
        return Suggestion(op="reclaim", text=f"{what}; gain not measured yet")
    if gain <= limit * _LEAST_SHARE:
        return None
    return Suggestion(op="reclaim", text=text, gain_bytes=gain, basis=basis)


def _claims(interventions: Iterable[Intervention]) -> list[int]:
    """Return what the agent says that the newest reclaims freed: as steps they are not measured."""
    told = (it.claimed for it in interventions if it.op == "reclaim" and it.state == "done")
    return [
        claimed for claimed, _ in zip(told, range(_CLAIMS), strict=False) if claimed is not None
    ]


def _gains(
    interventions: Iterable[Intervention], tier: str, op: str = "purge"
) -> list[Intervention]:
    return [
        it
        for it in interventions
        if it.op == op
        and it.tier == tier
        and it.count == 1
        and it.freed_bytes is not None
        and not it.overlaps
    ]


def _basis(gains: list[Intervention]) -> str:
    newest_us = max(it.done_at_us or it.asked_at_us for it in gains)
    return f"measured {times_text(len(gains))}, last {local_time_text(newest_us, '%H:%M')}"


def _measured(tier: str, gain: float, gains: list[Intervention]) -> Suggestion:
    text = f"purge {tier}, expired first: ~{bytes_text(gain)}"
    back = [it.rebound_s for it in gains if it.rebound_s is not None]
    back_s = median(back) if back else None
    if back_s is not None:
        text += f", back in ~{duration_text(back_s)}"
    basis = _basis(gains)
    return Suggestion(
        op="purge", args={"tier": tier}, text=text, gain_bytes=gain, back_s=back_s, basis=basis
    )


def _unmeasured(tier: Tier) -> Suggestion:
    text = f"purge {tier.name}, expired first: gain not measured yet"
    basis = f"the largest tier, {bytes_text(tier.bytes)}"
    return Suggestion(op="purge", args={"tier": tier.name}, text=text, basis=basis)


def _checkpoint(snapshot: Snapshot) -> Suggestion:
    saved = snapshot.checkpoints
    kind = "full" if saved.overdue_kind == "full" else "incremental"
    age = "none yet" if saved.age_s is None else f"the last is {duration_text(saved.age_s)} old"
    text = f"checkpoint {kind}: overdue, {age}"
    return Suggestion(op="checkpoint", args={"kind": kind}, text=text, basis="cadence")
