"""One resource around one intervention, looked at again and again until all about it is known."""

from __future__ import annotations

from typing import Literal, NamedTuple

from memwatch.analytics.efficacy.rebound import WIDTH, Return, back_level
from memwatch.analytics.efficacy.verdict import least_change, verdict_of
from memwatch.analytics.efficacy.window import (
    Reading,
    Spans,
    Usage,
    first_behind,
    median_of,
    usage_of,
)
from memwatch.domain.intervention import ResourceEffect, Verdict

_S = 1_000_000


class When(NamedTuple):
    """Begin and end of an intervention, on the axis of the series."""

    began_us: int
    done_us: int


class EffectWatch:
    """What an intervention did to one resource, as far as it is known."""

    def __init__(
        self,
        resource: str,
        when: When,
        spans: Spans,
        *,
        unit: Literal["bytes", "tokens"] = "bytes",
        floor: float = 0.0,
        afresh: bool = False,
    ) -> None:
        """`floor` is the least change that counts, whatever was used before.

        With `afresh` all begins anew behind it: what was told before its end does not hold on.
        """
        self.resource = resource
        self.voided = False
        """Another one did its work meanwhile: what was measured stays, nothing is said of it."""
        self._unit = unit
        self._when = when
        self._spans = spans
        self._floor = floor
        self._afresh = afresh
        self.before: Usage | None = None
        self._early: float | None = None
        self._late: float | None = None
        self._early_over = self._late_over = False
        """Measured, or not to be measured any more."""
        self._late_counts = True
        self._return: Return | None = None
        self._watched_us = when.done_us
        self._watch_over = False

    @property
    def early_over(self) -> bool:
        """Whether all is known of the time soon after it."""
        return self._early_over

    @property
    def late_over(self) -> bool:
        """Whether all is known of the time a good while after it."""
        return self._late_over

    @property
    def settled(self) -> bool:
        """Whether nothing about it can change any more."""
        return self._early_over and self._late_over and self._rebound_over

    @property
    def came_back_unseen(self) -> bool:
        """Whether usage came back while nobody measured."""
        return self._return is not None and self._return.gap

    def look(self, reading: Reading | None, now_us: int, until_us: int | None = None) -> None:
        """Measure what can be measured at an instant.

        `until_us` is when the next intervention of this resource began: what is seen from then on
        is not about this one.
        """
        if reading is not None:
            self._look_before(reading)
        self._look_early(reading, now_us)
        self._look_late(reading, now_us, until_us)
        self._look_back(reading, now_us, until_us)

    def effect(self, now_us: int) -> ResourceEffect:
        """Return all that is known at an instant."""
        before, verdict = self.before, self.verdict
        freed = None if self.voided else self._freed
        share = freed / before.level if freed is not None and before and before.level else None
        back = None if self.voided or self._return is None else self._return
        back_us = back.at_us if back else None
        done_us = self._when.done_us
        held_us = min(now_us, self._watched_us) - done_us if back and back_us is None else None
        return ResourceEffect(
            resource=self.resource,
            unit=self._unit,
            before=before.level if before else None,
            after_10s=self._early,
            after_10min=self._late,
            freed=freed,
            freed_share=share,
            rebound_s=None if back_us is None else (back_us - done_us) / 1e6,
            held_s=None if held_us is None else float(max(held_us, 0) // _S),
            verdict=verdict,
        )

    @property
    def verdict(self) -> Verdict:
        """The verdict as far as it was measured."""
        early, late = self._verdict_early, self._verdict_late
        if self.voided:
            return "unmeasured" if self._early_over else "pending"
        if late == "effective" or (early is None and late is not None):
            return late if early != "effective" else early
        if early is not None:
            return early
        return "unmeasured" if self._early_over else "pending"

    @property
    def least(self) -> float | None:
        """The smallest change that is told from noise; None while nothing was measured before."""
        return least_change(self.before, self._floor) if self.before else None

    @property
    def _verdict_early(self) -> Verdict | None:
        return self._judge(self._early, self._spans.settle_us)

    @property
    def _verdict_late(self) -> Verdict | None:
        return self._judge(self._late, self._spans.late_us) if self._late_counts else None

    def _judge(self, after: float | None, behind_us: int) -> Verdict | None:
        if self.before is None or after is None:
            return None
        apart_us = self._when.done_us + behind_us - self._when.began_us
        if self.before.came_to is None:  # a median speaks for the middle of its window
            apart_us += self._spans.before_us // 2
        return verdict_of(self.before, after, apart_us / _S, self._floor)

    @property
    def _freed(self) -> float | None:
        """What was freed soon after; what was freed later where it came later."""
        if self.before is None:
            return None
        later = self._verdict_early != "effective" and self._verdict_late == "effective"
        after = self._late if later or (self._early is None and self._late_counts) else self._early
        return None if after is None else self.before.level - after

    # -- looking -----------------------------------------------------------------------------

    def _look_before(self, reading: Reading) -> None:
        if not self._early_over or self.before is None:
            began_us = self._when.began_us
            found = usage_of(reading, began_us - self._spans.before_us, began_us)
            self.before = found or self.before

    def _look_early(self, reading: Reading | None, now_us: int) -> None:
        if self._early_over:
            return
        first, last = self._spans.early
        start, end = self._when.done_us + first, self._when.done_us + last
        if now_us < end:
            return
        self._early = self._after(reading, start, end)
        waits_us = reading.max_gap_us if reading and not reading.held else 0
        self._early_over = self._early is not None or now_us >= end + waits_us

    def _look_late(self, reading: Reading | None, now_us: int, until_us: int | None) -> None:
        if self._late_over:
            return
        first, last = self._spans.late
        start, end = self._when.done_us + first, self._when.done_us + last
        if now_us < end:
            return
        self._late = self._after(reading, start, end)
        self._late_counts = until_us is None or until_us >= start
        waits_us = reading.max_gap_us if reading and not reading.held else 0
        self._late_over = self._late is not None or now_us >= end + waits_us

    def _after(self, reading: Reading | None, start: int, end: int) -> float | None:
        """Return the median of a window; of a slow series the first sample behind it."""
        if reading is None:
            return None
        since = self._when.done_us if self._afresh or not reading.held else None
        found = median_of(reading, start, end, since)
        return found if found is not None or reading.held else first_behind(reading, end)

    def _look_back(self, reading: Reading | None, now_us: int, until_us: int | None) -> None:
        if self._rebound_over or reading is None or self._freed is None:
            return
        if self._return is None:
            if self.voided or self.verdict != "effective":
                return
            self._return = self._begin_return(reading)
        over_us = self._when.done_us + self._spans.watch_us
        end_us = over_us if until_us is None else min(over_us, until_us)
        self._return.look(reading, min(now_us + 1, end_us))
        self._watched_us = self._return.seen_us
        self._watch_over = now_us >= end_us

    def _begin_return(self, reading: Reading) -> Return:
        """Begin where it was first seen that something had been freed."""
        assert self.before is not None
        freed = self._freed or 0.0
        soon = self._verdict_early == "effective"
        from_us = self._when.done_us + (self._spans.early if soon else self._spans.late)[0]
        level = back_level(self.before.level, freed, self.before.noise)
        return Return(level, from_us, width=1 if reading.held else WIDTH)

    @property
    def _rebound_over(self) -> bool:
        if self._return is None:
            return self.voided or (self._late_over and self.verdict != "effective")
        return self._return.at_us is not None or self._watch_over
