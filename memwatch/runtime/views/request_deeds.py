"""Requests as deeds: what the agent's own log tells of in no other way.

A purge or checkpoint that was done has a row of its own; one that was refused, failed or lost has
none there and stands here, with pauses, aborts and all else that was asked. Who asked, and why, the
ledger knows; when the agent took it and when it was done its log knows better.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from memwatch.actuators.inert_result import inert_result
from memwatch.analytics.deed_fold import Asked
from memwatch.analytics.efficacy.effect import When
from memwatch.domain.command import AGENT_STATES, FINAL_STATES, CommandInfo
from memwatch.domain.intervention import Intervention
from memwatch.domain.operations import HOLDS, JOBS
from memwatch.domain.record import whole
from memwatch.runtime.views.deed import WHOLE, Deed, of_tier
from memwatch.runtime.views.log_deeds import saved_tokens
from memwatch.runtime.views.plan_deeds import plan_deed, stages_of
from memwatch.runtime.views.ring import Ring

_TOLD_BY_LOG = frozenset({"purge", "checkpoint"})
_NOT_ABOUT_MEMORY = frozenset({"note", "leak"})
_FREEING = frozenset({"reclaim", "abort_experiment", "end_run"})
_PAUSING = frozenset({*HOLDS, "abort_experiment"})


class RequestDeeds:
    """Turns requests that are new or moved into deeds."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._known: dict[str, tuple[CommandInfo | None, Asked | None]] = {}

    def new(self, commands: Iterable[CommandInfo]) -> Iterator[Deed]:
        """Return a deed for each request that has none by the log, and moved; and its plan's."""
        told, ledger = self._ring.state.deeds.requests, {info.id: info for info in commands}
        known, self._known = self._known, {}
        plans: dict[str, None] = {}
        for name in [*ledger, *(name for name in told if name not in ledger)]:
            info, asked = ledger.get(name), told.get(name)
            self._known[name] = (info, asked)
            before = known.get(name, (None, None))
            if before[0] is info and before[1] is asked:
                continue
            info = info or _of_log(asked)
            if info is None or info.dry_run:
                continue
            plans[info.plan] = None
            if _is_shown(info):
                yield self._deed(info, asked)
        plans.pop("", None)
        for plan in plans:
            steps = [info for info in ledger.values() if info.plan == plan and info.state == "done"]
            deed = plan_deed(plan, [(info, self._when(info, told.get(info.id))) for info in steps])
            if deed is not None:
                yield deed

    def _deed(self, info: CommandInfo, asked: Asked | None) -> Deed:
        ended = info.state in FINAL_STATES
        when = self._when(info, asked) if info.state == "done" else None
        tokens = self._tokens(asked) if info.op == "compact" else ""
        tier = tokens.partition(":")[2] or (self._tier(asked) if info.op == "retain" else "")
        resources = _resources(info.op, tier, tokens)
        done_us = info.changed_us if ended else None
        return Deed(
            kind="request",
            row=Intervention(
                id=info.id,
                action=info.op.replace("_", "-"),
                tier=tier,
                origin=info.origin,
                by=info.by,
                why=info.why or info.detail,
                plan=info.plan,
                state=info.state,
                asked_at_us=info.asked_us,
                done_at_us=done_us,
                duration_s=_took_s(info, when) if ended else None,
                stages=stages_of(info.result),
                claimed=self._claimed(info, asked),
            ),
            when=when,
            resources=resources if when else (),
            acts_on=_acts_on(info.op, resources),
            claims=tokens or ("memory" if info.op in _FREEING else ""),
            holds=info.op in _PAUSING,
        )

    def _when(self, info: CommandInfo, asked: Asked | None) -> When:
        """Return from when to when the agent did it, by its own clock where it logged it."""
        axis, to_axis = self._ring.axis_of, self._ring.to_axis
        done_us = axis(asked.ended) if asked and asked.ended else to_axis(info.changed_us)
        began_us = axis(asked.taken) if asked else to_axis(info.asked_us)
        return When(min(began_us, done_us), done_us)

    def _tier(self, asked: Asked | None) -> str:
        """Return the tier that keeps something else since a request."""
        if asked is None or asked.ended is None:
            return ""
        first, last = asked.taken.lsn, asked.ended.lsn
        found = (one.tier for one in self._ring.state.deeds.retained if first < one.lsn < last)
        return next(found, "")

    def _tokens(self, asked: Asked | None) -> str:
        """Return the series of the tokens that were to become fewer."""
        named = next((f"tokens:{one.tier}" for one in self._compactions(asked)), "tokens:context")
        held = self._ring.resources("tokens:")
        return named if named in held or not held else held[0]

    def _compactions(self, asked: Asked | None) -> list[Any]:
        if asked is None:
            return []
        last = asked.ended.lsn if asked.ended else asked.taken.lsn
        found = self._ring.state.deeds.compactions
        return [one for one in found if asked.taken.lsn < one.lsn <= last]

    def _claimed(self, info: CommandInfo, asked: Asked | None) -> int | None:
        if info.op == "compact":
            saved = [saved_tokens(one) for one in self._compactions(asked)]
            return next((amount for amount in saved if amount is not None), None)
        return whole(info.result.get("freed_bytes"))


def _of_log(asked: Asked | None) -> CommandInfo | None:
    """Return a request that no ledger here knows, as the agent's log tells it."""
    if asked is None:
        return None
    return CommandInfo(
        id=asked.id,
        op=asked.op,
        state=AGENT_STATES.get(asked.state, "unknown"),
        asked_us=asked.taken.t_us,
        changed_us=(asked.ended or asked.taken).t_us,
        origin=asked.origin,
        detail=asked.detail,
        dry_run=asked.dry_run,
        result=inert_result(asked.result),
    )


def _is_shown(info: CommandInfo) -> bool:
    if "." in info.op or info.op in _NOT_ABOUT_MEMORY or info.op == "?":
        return False
    lost = info.state in FINAL_STATES and info.state != "done"
    return lost or info.op not in _TOLD_BY_LOG


def _took_s(info: CommandInfo, when: When | None) -> float:
    if when is not None:
        return (when.done_us - when.began_us) / 1e6
    return max(info.changed_us - info.asked_us, 0) / 1e6


def _resources(op: str, tier: str, tokens: str) -> tuple[str, ...]:
    if op == "compact":
        return (tokens, f"tier:{tier}", *WHOLE)
    if op == "retain" and tier:
        return of_tier(tier)
    return WHOLE if op in JOBS else ("memory",)


def _acts_on(op: str, resources: tuple[str, ...]) -> frozenset[str]:
    """Return what a request is meant to change: a shorter context is no smaller process."""
    if op == "compact":
        return frozenset(resources) - frozenset(WHOLE)
    return frozenset(resources) if op in _FREEING or op == "retain" else frozenset()
