"""What was done about memory and what it did, newest first: by the log, and by the ledger.

Purges by retention are routine, and many: while they follow each other in one tier they are one
row. All else keeps rows of its own, so that what was measured stays in sight.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from memwatch.analytics.efficacy import Effect, measure
from memwatch.analytics.told import Purge
from memwatch.domain.checkpoints import Checkpoint
from memwatch.domain.command import CommandInfo
from memwatch.domain.intervention import Intervention
from memwatch.runtime.views.request_view import request_rows
from memwatch.runtime.views.ring import Ring

_S = 1_000_000
ROUTINE = "retention"
FOLLOWS_US = 60 * _S
"""A purge by retention that comes later than this after the one before begins a new row."""
KEPT_SERIES = 5
KEPT_PURGES = 5
KEPT_CHECKPOINTS = 3
"""Of each kind."""
KEPT_ROWS = 16
"""In all: the snapshot stays small."""
_OVERLAP_US = (30 * _S, 12 * _S)
"""What is measured of an intervention: the time before it, and behind it."""
_BY_GUARD = frozenset({"engine", "pressure"})
_ASKED = frozenset({"engine", "operator"})


class Series:
    """Purges of one tier by retention that follow each other."""

    def __init__(self, first: Purge) -> None:
        self.first = self.last = first
        self.count = 0
        self.claimed_bytes = 0
        self.closed = False

    def add(self, purge: Purge) -> None:
        """Take the next one."""
        self.last = purge
        self.count += 1
        self.claimed_bytes += purge.freed_bytes or 0


class InterventionView:
    """Measures each intervention until nothing about it can change, then remembers it."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._settled: dict[str, Intervention] = {}
        self._seen_lsn = 0
        self._series: list[Series] = []
        self._purges: list[Purge] = []
        """Those of any other cause."""
        self._overlapped: set[str] = set()

    def newest(
        self, now_at_us: int, commands: tuple[CommandInfo, ...] = ()
    ) -> tuple[Intervention, ...]:
        """Return the newest interventions, newest first, as known at an instant of the axis.

        `commands` are the requests of the ledger: they say who asked, and why.
        """
        self._take_purges()
        requests = {info.id: info for info in commands}
        found = [self._routine(series, now_at_us) for series in self._series]
        for purge in self._purges:
            row = self._purge(purge, now_at_us)
            found.append(_asked_by(row, requests.get(self._request_of(purge))))
        for one in self._newest_checkpoints(now_at_us):
            _, asked = self._ring.state.asked.get(one.id, ("", ""))
            found.append(_asked_by(self._checkpoint(one, now_at_us), requests.get(asked)))
        found += request_rows(self._ring, commands, now_at_us)
        found.sort(key=lambda one: one.asked_at_us, reverse=True)
        kept = {one.id for one in found}
        self._settled = {name: one for name, one in self._settled.items() if name in kept}
        self._overlapped &= kept
        return tuple(found[:KEPT_ROWS])

    def _request_of(self, purge: Purge) -> str:
        """Return the request that a purge belongs to: the one that was being carried out."""
        if purge.cause not in _ASKED:
            return ""
        spans = self._ring.state.spans.items()
        return next((name for name, (first, last) in spans if first < purge.lsn < last), "")

    def _take_purges(self) -> None:
        for purge in self._ring.state.purges:
            if purge.lsn <= self._seen_lsn:
                continue
            self._seen_lsn = purge.lsn
            running = next((s for s in self._series if s.first.tier == purge.tier), None)
            if purge.cause != ROUTINE:
                self._purges = [*self._purges, purge][-KEPT_PURGES:]
                if running is not None:
                    running.closed = True
                continue
            if running is None or running.closed or self._late(running.last, purge):
                running = Series(purge)
                self._series = [running, *self._series][:KEPT_SERIES]
            running.add(purge)

    def _late(self, before: Purge, purge: Purge) -> bool:
        return self._ring.axis_of(purge.at) - self._ring.axis_of(before.at) > FOLLOWS_US

    def _newest_checkpoints(self, now_at_us: int) -> list[Checkpoint]:
        """Return of each kind the newest, the newest that are measured, and one asked for."""
        state = self._ring.state
        ended = [one for one in state.checkpoints.values() if one.state in ("committed", "aborted")]
        found: list[Checkpoint] = []
        for is_full in (True, False):
            of_kind = [one for one in ended if (one.kind == "full") == is_full]
            kept = of_kind[-1:]
            asked = [one for one in of_kind[:-1] if one.id in state.asked][-1:]
            measured = [one for one in of_kind[:-1] if self._is_measured(one, now_at_us)]
            kept += asked
            kept += [one for one in measured if one not in asked][len(kept) - KEPT_CHECKPOINTS :]
            found += kept
        return found

    def _is_measured(self, checkpoint: Checkpoint, now_at_us: int) -> bool:
        done_at_us = self._ring.axis_of(self._ring.state.checkpoint_at[checkpoint.id])
        return now_at_us - done_at_us >= _OVERLAP_US[1]

    def _routine(self, series: Series, now_at_us: int) -> Intervention:
        first, last = series.first, series.last
        name = f"purge-{first.lsn}"
        known = self._settled.get(name)
        if known is not None and known.count == series.count:
            return known
        began_at_us = self._ring.axis_of(first.at) - first.duration_us
        done_at_us = self._ring.axis_of(last.at)
        effect = self._measure(f"tier:{first.tier}", began_at_us, done_at_us, now_at_us)
        single = self._of_purge(name, first, effect)
        if series.count == 1:
            return self._settle(effect, single)
        return self._settle(
            effect,
            Intervention(
                id=name,
                action=single.action,
                tier=single.tier,
                origin=single.origin,
                why=single.why,
                count=series.count,
                span_s=(done_at_us - began_at_us) / 1e6,
                asked_at_us=single.asked_at_us,
                done_at_us=last.t_us,
                duration_s=last.duration_us / 1e6,
                before=effect.before,
                after_10s=effect.after_10s,
                after_10min=effect.after_10min,
                freed_bytes=effect.freed,
                freed_share=effect.freed_share,
                rebound_s=effect.rebound_s,
                claimed=series.claimed_bytes // series.count,
            ),
        )

    def _purge(self, purge: Purge, now_at_us: int) -> Intervention:
        name = f"purge-{purge.lsn}"
        if name in self._settled:
            return self._settled[name]
        at_us = self._ring.axis_of(purge.at)
        if self._has_neighbour(purge, at_us, self._ring.state.purges):
            self._overlapped.add(name)
        began_at_us = at_us - purge.duration_us
        effect = self._measure(f"tier:{purge.tier}", began_at_us, at_us, now_at_us)
        return self._settle(effect, self._of_purge(name, purge, effect))

    def _has_neighbour(self, purge: Purge, at_us: int, others: Iterable[Purge]) -> bool:
        """Return whether another purge of the tier falls into what is measured of this one."""
        before_us, behind_us = _OVERLAP_US
        return any(
            -before_us <= self._ring.axis_of(other.at) - at_us <= behind_us
            for other in others
            if other.tier == purge.tier and other.lsn != purge.lsn
        )

    def _of_purge(self, name: str, purge: Purge, effect: Effect) -> Intervention:
        overlaps = name in self._overlapped
        return Intervention(
            id=name,
            action="purge",
            tier=purge.tier,
            origin=_origin(purge.cause),
            why=purge.cause or purge.how,
            asked_at_us=purge.t_us - purge.duration_us,
            done_at_us=purge.t_us,
            duration_s=purge.duration_us / 1e6,
            before=effect.before,
            after_10s=effect.after_10s,
            after_10min=effect.after_10min,
            freed_bytes=None if overlaps else effect.freed,
            freed_share=None if overlaps else effect.freed_share,
            rebound_s=None if overlaps else effect.rebound_s,
            claimed=purge.freed_bytes,
            overlaps=overlaps,
        )

    def _checkpoint(self, checkpoint: Checkpoint, now_at_us: int) -> Intervention:
        name = f"checkpoint-{checkpoint.id}"
        if name in self._settled:
            return self._settled[name]
        done = self._ring.state.checkpoint_at[checkpoint.id]
        asked_by, _ = self._ring.state.asked.get(checkpoint.id, ("", ""))
        took_us = round((checkpoint.duration_s or 0.0) * 1e6)
        done_at_us = self._ring.axis_of(done)
        effect = self._measure("memory", done_at_us - took_us, done_at_us, now_at_us)
        return self._settle(
            effect,
            Intervention(
                id=name,
                action=f"checkpoint {checkpoint.kind}",
                origin=asked_by or "agent",
                why=checkpoint.reason or ("asked" if asked_by else "cadence"),
                state="done" if checkpoint.state == "committed" else "failed",
                asked_at_us=checkpoint.began_us,
                done_at_us=done.t_us,
                duration_s=checkpoint.duration_s,
                before=effect.before,
                after_10s=effect.after_10s,
                after_10min=effect.after_10min,
                claimed=checkpoint.bytes,
            ),
        )

    def _measure(self, resource: str, began_at_us: int, done_at_us: int, now_at_us: int) -> Effect:
        series = self._ring.series_of(resource)
        max_gap_us = self._ring.max_gap_us(resource)
        return measure(series, began_at_us, done_at_us, now_at_us, max_gap_us)

    def _settle(self, effect: Effect, one: Intervention) -> Intervention:
        if effect.after_10min is not None:
            self._settled[one.id] = one
        return one


def _asked_by(row: Intervention, info: CommandInfo | None) -> Intervention:
    return row if info is None else replace(row, by=info.by, why=info.why or row.why)


def _origin(cause: str) -> str:
    if cause == "operator":
        return "operator"
    return "engine" if cause in _BY_GUARD else "agent"
