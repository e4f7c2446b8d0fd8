"""What the agent's log tells was done: purges, checkpoints, compactions, restarts.

Purges by retention are routine, and many: while they follow each other in one tier they are one
deed. All else keeps rows of its own, so that what was measured stays in sight.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from memwatch.analytics.deed_fold import Begun, Compaction
from memwatch.analytics.efficacy.effect import When
from memwatch.analytics.told import Purge
from memwatch.domain.checkpoints import Checkpoint
from memwatch.domain.intervention import Intervention
from memwatch.runtime.views.deed import WHOLE, Deed, of_tier
from memwatch.runtime.views.ring import Ring

_S = 1_000_000
ROUTINE = "retention"
FOLLOWS_US = 60 * _S
"""A purge by retention that comes later than this after the one before begins a new row."""
_BY_GUARD = frozenset({"engine", "pressure"})
_ENDED = ("committed", "aborted")
_TIERS = 4
"""So many are looked at when all of them begin anew."""


class Series:
    """Purges of one tier by retention that follow each other."""

    def __init__(self, first: Purge) -> None:
        self.first = self.last = first
        self.count = 0
        self.claimed_bytes = 0

    def add(self, purge: Purge) -> None:
        """Take the next one."""
        self.last = purge
        self.count += 1
        self.claimed_bytes += purge.freed_bytes or 0


class LogDeeds:
    """Turns what is new in the state of a run into deeds."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._seen_lsn = 0
        self._running: dict[str, Series] = {}
        self._saved_changes = -1
        self._saved: set[str] = set()
        self._compacted: set[int] = set()
        self._starts: set[int] = set()

    def new(self) -> Iterator[Deed]:
        """Return deeds that are new, or say more than before."""
        yield from self._purges()
        yield from self._checkpoints()
        yield from self._compactions()
        yield from self._restarts()

    def is_open(self, deed: Deed, now_at_us: int) -> bool:
        """Say whether a series may still go on."""
        running = self._running.get(deed.row.tier) if deed.kind == "routine" else None
        if running is None or running.first.lsn != deed.lsn:
            return False
        return now_at_us - self._ring.axis_of(running.last.at) <= FOLLOWS_US

    def request_of(self, deed: Deed) -> tuple[str, str]:
        """Return who asked for it and the name of the request; nothing for what was not asked.

        The log says so only behind it, when the request has come to its end.
        """
        state = self._ring.state
        if deed.kind == "checkpoint":
            return state.asked.get(deed.id.removeprefix("checkpoint-"), ("", ""))
        if deed.kind != "purge" or deed.row.why not in ("engine", "operator"):
            return "", ""
        spans = state.spans.items()
        name = next((name for name, (first, last) in spans if first < deed.lsn < last), "")
        return deed.row.origin if name else "", name

    # -- purges ------------------------------------------------------------------------------

    def _purges(self) -> Iterator[Deed]:
        touched: dict[int, Series] = {}
        for purge in self._ring.state.purges:
            if purge.lsn <= self._seen_lsn:
                continue
            self._seen_lsn = purge.lsn
            if purge.cause != ROUTINE:
                self._running.pop(purge.tier, None)
                yield self._purge(purge)
            else:
                series = self._series_of(purge)
                touched[series.first.lsn] = series
        for series in touched.values():
            yield self._series(series)

    def _series_of(self, purge: Purge) -> Series:
        series = self._running.get(purge.tier)
        if series is None or self._late(series.last, purge):
            series = self._running[purge.tier] = Series(purge)
        series.add(purge)
        return series

    def _late(self, before: Purge, purge: Purge) -> bool:
        return self._ring.axis_of(purge.at) - self._ring.axis_of(before.at) > FOLLOWS_US

    def _purge(self, purge: Purge) -> Deed:
        done_us = self._ring.axis_of(purge.at)
        resources = of_tier(purge.tier)
        return Deed(
            kind="purge",
            row=self._row(purge),
            when=When(done_us - purge.duration_us, done_us),
            resources=resources,
            acts_on=frozenset(resources),
            claims=resources[0],
            lsn=purge.lsn,
        )

    def _row(self, purge: Purge) -> Intervention:
        return Intervention(
            id=f"purge-{purge.lsn}",
            action="purge",
            tier=purge.tier,
            how=purge.how,
            origin=_origin(purge.cause),
            why=purge.cause or purge.how,
            asked_at_us=purge.t_us - purge.duration_us,
            done_at_us=purge.t_us,
            duration_s=purge.duration_us / 1e6,
            claimed=purge.freed_bytes,
        )

    def _series(self, series: Series) -> Deed:
        first, last = series.first, series.last
        began_us = self._ring.axis_of(first.at) - first.duration_us
        done_us = self._ring.axis_of(last.at)
        row = self._row(first)
        if series.count > 1:
            row = replace(
                row,
                how="",
                count=series.count,
                span_s=(done_us - began_us) / 1e6,
                done_at_us=last.t_us,
                duration_s=last.duration_us / 1e6,
                claimed=series.claimed_bytes // series.count,
            )
        resources = of_tier(first.tier)[:2]
        return Deed(
            kind="routine",
            row=row,
            when=When(began_us, done_us),
            resources=resources,
            acts_on=frozenset(resources),
            claims=resources[0] if series.count == 1 else "",
            lsn=first.lsn,
        )

    # -- checkpoints -------------------------------------------------------------------------

    def _checkpoints(self) -> Iterator[Deed]:
        state = self._ring.state
        if state.saved.changed == self._saved_changes:
            return
        self._saved_changes = state.saved.changed
        for one in state.checkpoints.values():
            if one.state in _ENDED and one.id not in self._saved:
                self._saved.add(one.id)
                yield self._checkpoint(one)
        self._saved &= state.checkpoints.keys()

    def _checkpoint(self, one: Checkpoint) -> Deed:
        done = self._ring.state.checkpoint_at[one.id]
        done_us, took_us = self._ring.axis_of(done), round((one.duration_s or 0.0) * 1e6)
        return Deed(
            kind="checkpoint",
            row=Intervention(
                id=f"checkpoint-{one.id}",
                action=f"checkpoint {one.kind}",
                origin="agent",
                why=one.reason or "cadence",
                state="done" if one.state == "committed" else "failed",
                asked_at_us=one.began_us,
                done_at_us=done.t_us,
                duration_s=one.duration_s,
                pause_s=one.stall_s,
                claimed=one.bytes,
            ),
            when=When(done_us - took_us, done_us),
            resources=("memory", "disk"),
            acts_on=frozenset({"disk"}),
            lsn=done.lsn,
        )

    # -- compactions and restarts --------------------------------------------------------------

    def _compactions(self) -> Iterator[Deed]:
        found = self._ring.state.deeds.compactions
        for one in found:
            if one.lsn not in self._compacted:
                self._compacted.add(one.lsn)
                if not self._was_asked(one):
                    yield self._compaction(one)
        self._compacted &= {one.lsn for one in found}

    def _was_asked(self, one: Compaction) -> bool:
        """Say whether a request to compact has a row of its own for it."""
        return any(
            asked.op == "compact" and asked.taken.lsn < one.lsn
            and (asked.ended is None or one.lsn < asked.ended.lsn)
            for asked in self._ring.state.deeds.requests.values()
        )  # fmt: skip

    def _compaction(self, one: Compaction) -> Deed:
        done_us = self._ring.axis_of(one.at)
        tokens, tier = f"tokens:{one.tier}", f"tier:{one.tier}"
        return Deed(
            kind="compact",
            row=Intervention(
                id=f"compact-{one.lsn}",
                action="compact",
                tier=one.tier,
                how=one.how,
                origin="agent",
                why=one.how or "the agent's own",
                asked_at_us=one.t_us - one.duration_us,
                done_at_us=one.t_us,
                duration_s=one.duration_us / 1e6,
                claimed=saved_tokens(one),
            ),
            when=When(done_us - one.duration_us, done_us),
            resources=(tokens, tier, *WHOLE),
            acts_on=frozenset({tokens, tier}),
            claims=tokens,
            lsn=one.lsn,
        )

    def _restarts(self) -> Iterator[Deed]:
        for begun in self._ring.state.deeds.starts:
            if begun.died is not None and begun.lsn not in self._starts:
                self._starts.add(begun.lsn)
                yield self._restart(begun)

    def _restart(self, begun: Begun) -> Deed:
        assert begun.died is not None
        died_us, done_us = self._ring.axis_of(begun.died), self._ring.axis_of(begun.at)
        resources = (*WHOLE, *self._ring.resources("tier:")[:_TIERS])
        return Deed(
            kind="restart",
            row=Intervention(
                id=f"restart-{begun.lsn}",
                action="restart",
                origin="agent",
                why="ended and begun again" if begun.well else "after a crash",
                asked_at_us=begun.died.t_us,
                done_at_us=begun.t_us,
                duration_s=max(done_us - died_us, 0) / 1e6,
            ),
            when=When(min(died_us, done_us), done_us),
            resources=resources,
            acts_on=frozenset(resources),
            lsn=begun.lsn,
        )


def saved_tokens(one: Compaction) -> int | None:
    """Return by how many tokens the agent itself says that it shortened its context."""
    if one.before_tokens is None or one.after_tokens is None:
        return None
    return one.before_tokens - one.after_tokens


def _origin(cause: str) -> str:
    if cause == "operator":
        return "operator"
    return "engine" if cause in _BY_GUARD else "agent"
