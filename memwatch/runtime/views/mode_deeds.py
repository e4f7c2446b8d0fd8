"""Pauses and read-only times that no request here tells of, from the agent's own changes of mode.

Another guard asked for them, or the agent itself went read-only as its log could not be written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from memwatch.analytics.deed_fold import ModeChange
from memwatch.analytics.efficacy.effect import When
from memwatch.domain.intervention import Intervention
from memwatch.domain.operations import ENGINE, HOLDS
from memwatch.runtime.views.deed import Deed
from memwatch.runtime.views.ring import Ring

WAITS_US = 5_000_000
"""So long after it a request may still turn up that asked for it."""
_NEAR_US = 2_000_000
_CAUSE = re.compile(r"(pause|read_only) by ([^\s:]+):? ?(.*)")


class ModeDeeds:
    """Turns times in which the agent was held into deeds."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._seen_lsn = 0

    def new(self, now_us: int, known: Iterable[Intervention]) -> Iterator[Deed]:
        """Return holds that none of the rows `known` tells of."""
        modes = self._ring.state.deeds.modes
        if not modes or modes[-1].lsn <= self._seen_lsn:
            return
        asked = [row for row in known if row.action.replace("-", "_") in HOLDS]
        for held, changes in groupby(modes, key=lambda change: change.mode != "running"):
            first = next(changes)
            if not held or first.lsn <= self._seen_lsn:
                continue
            if now_us - self._ring.axis_of(first.at) < WAITS_US:
                return  # a request that asked for it may not be known yet
            self._seen_lsn = first.lsn
            deed = self._deed(first)
            if deed is not None and not any(_is_of(row, first.t_us) for row in asked):
                yield deed
        self._seen_lsn = max(self._seen_lsn, modes[-1].lsn)

    def _deed(self, first: ModeChange) -> Deed | None:
        told = _CAUSE.fullmatch(first.cause)
        own = first.cause.startswith("log: ")
        if told is None and not own:
            return None
        op, owner, reason = told.groups() if told else ("read_only", "agent", first.cause)
        origin = owner if owner in (ENGINE, "agent") else "operator"
        at_us = self._ring.axis_of(first.at)
        row = Intervention(
            id=f"mode-{first.lsn}",
            action=op.replace("_", "-"),
            origin=origin,
            by="" if origin != "operator" else owner,
            why=reason,
            asked_at_us=first.t_us,
            done_at_us=first.t_us,
            duration_s=0.0,
        )
        return Deed(
            kind="mode",
            row=row,
            when=When(at_us, at_us),
            resources=("memory",),
            holds=True,
            lsn=first.lsn,
        )


def _is_of(row: Intervention, t_us: int) -> bool:
    """Say whether a hold that was asked for is the one that began at a time."""
    until_us = t_us if row.done_at_us is None else row.done_at_us
    return row.asked_at_us - _NEAR_US <= t_us <= until_us + _NEAR_US
