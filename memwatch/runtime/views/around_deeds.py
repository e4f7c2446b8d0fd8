"""What happened around a deed: other deeds, experiments, phases, pauses, limits."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import pairwise

from memwatch.analytics.efficacy.around import Tried, around
from memwatch.analytics.efficacy.confounders import Happened, confounders
from memwatch.analytics.efficacy.effect import When
from memwatch.analytics.efficacy.window import Spans
from memwatch.domain.intervention import ExperimentsAround
from memwatch.domain.units import bytes_text
from memwatch.runtime.views.deed import Deed
from memwatch.runtime.views.log_deeds import ROUTINE
from memwatch.runtime.views.ring import Ring

_RUNNING = "running"
_PURGES = ("purge", "routine")
_COUNTS_SHARE = 0.2
"""Other purges of a tier that say they freed less than this share of what a purge says it freed
do not hide it."""


_NEAREST = 32
"""Deeds before, and behind, that are looked at to tell what else happened: a row has no more."""


class AroundDeeds:
    """Answers what else there was; asked under the ring's lock."""

    def __init__(self, ring: Ring, spans: Spans) -> None:
        self._ring = ring
        self._spans = spans
        self._limits: deque[tuple[int, int]] = deque(maxlen=16)
        self._acted: dict[str, list[tuple[int, int, Deed]]] = {}
        self._done: list[tuple[int, int, Deed]] = []
        """All that are no plan, in order of time."""

    def mind_limit(self, now_us: int, limit_bytes: int | None) -> None:
        """Note the binding limit of an instant."""
        if limit_bytes and (not self._limits or self._limits[-1][1] != limit_bytes):
            self._limits.append((now_us, limit_bytes))

    def mind(self, deeds: Iterable[Deed]) -> None:
        """Take all deeds that are known, to tell neighbours from each other."""
        self._acted, self._done = {}, []
        for order, deed in enumerate(deeds):
            if deed.when is not None:
                placed = (deed.when.done_us, order, deed)
                for resource in deed.acts_on:
                    self._acted.setdefault(resource, []).append(placed)
                if deed.kind != "plan":
                    self._done.append(placed)
        for acted in (self._done, *self._acted.values()):
            acted.sort(key=_place)

    # -- others on the same resource -----------------------------------------------------------

    def voids(self, deed: Deed, resource: str) -> bool:
        """Say whether another one changed the resource while this one was measured.

        Of a series of purges by retention all such are its own; and they are too small to hide what
        was done about the process. In one tier all count by what they say they freed.
        """
        when = deed.when
        if when is None:
            return False
        from_us = when.began_us if deed.kind == "routine" else when.done_us
        first, last = from_us - self._spans.before_us, when.done_us + self._spans.early[1]
        kind, _, tier = resource.partition(":")
        if _is_of_tier(kind) and deed.kind in _PURGES and self._purged(deed, tier, first, last):
            return True
        return any(
            _is_another(deed, other)
            and other.kind != "routine"
            and not _one_tier(deed, other, kind)
            for other in self._near(resource, first, last)
        )

    def _purged(self, deed: Deed, tier: str, first: int, last: int) -> bool:
        """Say whether other purges of its tier freed what counts beside its own claim."""
        allowed = _COUNTS_SHARE * (deed.row.claimed or 0)
        series = deed.kind == "routine"
        others = [
            purge
            for purge in self._ring.state.purges
            if purge.tier == tier
            and purge.lsn != deed.lsn
            and not (series and purge.cause == ROUTINE)
            and first <= self._ring.axis_of(purge.at) <= last
        ]
        known = [purge.freed_bytes for purge in others if purge.freed_bytes is not None]
        return len(known) < len(others) or sum(known) > allowed

    def next_us(self, deed: Deed, resource: str) -> int | None:
        """Return when the next one began to change the resource, behind the first look."""
        if deed.when is None:
            return None
        acted = self._acted.get(resource, [])
        from_us = deed.when.done_us + self._spans.early[1]
        for done_us, _, other in acted[bisect_left(acted, from_us, key=_time) :]:
            if _is_another(deed, other) and other.kind != "routine":
                began_us = other.when.began_us if other.when else done_us
                return max(began_us, from_us)
        return None

    def _near(self, resource: str, first: int, last: int) -> Iterator[Deed]:
        acted = self._acted.get(resource, [])
        for at_us, _, other in acted[bisect_left(acted, first, key=_time) :]:
            if at_us > last:
                return
            yield other

    # -- in words --------------------------------------------------------------------------------

    def others(self, deed: Deed) -> list[str]:
        """Return what else fell into the time in which a deed was measured."""
        when = deed.when
        if when is None:
            return []
        found = [*self._deeds(deed, when), *self._work(), *self._changed_limits()]
        found.sort(key=lambda one: (one.aside, _distance(one.at_us, when)))
        early_us = self._spans.early[1]
        return confounders(when.began_us, when.done_us, found, early_us, self._spans.before_us)

    def _deeds(self, deed: Deed, when: When) -> Iterator[Happened]:
        """Return the deeds that may be near; of very many those that are nearest."""
        middle = bisect_left(self._done, when.done_us, key=_time)
        first = bisect_left(self._done, when.began_us - self._spans.before_us, key=_time)
        last = bisect_right(self._done, when.done_us + self._spans.early[1], key=_time)
        for _, _, other in self._done[max(first, middle - _NEAREST) : min(last, middle + _NEAREST)]:
            if other.when is not None and _is_another(deed, other):
                due = other.kind == "checkpoint" and other.row.origin == "agent"
                yield Happened(
                    other.when.done_us,
                    other.what,
                    counted=due or other.kind == "routine",
                    aside=not other.acts_on & set(deed.resources),
                )

    def _work(self) -> Iterator[Happened]:
        state, axis = self._ring.state, self._ring.axis_of
        for end in state.recent_experiments:
            yield Happened(axis(end.at), "experiment ended", counted=True)
        begins = state.deeds.experiments
        for begin in begins:
            yield Happened(axis(begin.at), "experiment began", counted=True)
        for earlier, later in pairwise(begins):
            if later.phase and later.phase != earlier.phase:
                yield Happened(axis(later.at), f"phase {later.phase}")

    def _changed_limits(self) -> Iterator[Happened]:
        for (_, before), (at_us, after) in pairwise(self._limits):
            yield Happened(at_us, f"limit {bytes_text(after)}, was {bytes_text(before)}")

    # -- experiments and pauses --------------------------------------------------------------------

    def experiments(self, deed: Deed) -> ExperimentsAround | None:
        """Return the next experiments against those before; None where it was not done."""
        if deed.when is None:
            return None
        axis = self._ring.axis_of
        tried = []
        for end in self._ring.state.recent_experiments:
            if end.duration_us is not None:
                ended_us = axis(end.at)
                tried.append(Tried(ended_us - end.duration_us, ended_us, end.status))
        return around(tried, deed.when.began_us, deed.when.done_us)

    def pause(self, deed: Deed, now_us: int) -> tuple[float | None, bool]:
        """Return how long new experiments were kept from beginning, and whether that is over."""
        if deed.when is None or not deed.holds:
            return None, True
        changes: list[tuple[int, str]] = []
        for change in self._ring.state.deeds.modes:
            insort(changes, (self._ring.axis_of(change.at), change.mode))
        begun_us: int | None = None
        for at_us, mode in changes:
            if mode == _RUNNING:
                if begun_us is not None and at_us > deed.when.began_us:
                    return (at_us - begun_us) / 1e6, True
                begun_us = None
            elif begun_us is None and at_us <= deed.when.done_us + self._spans.settle_us:
                begun_us = at_us
        if begun_us is None:
            return None, now_us > deed.when.done_us + self._spans.early[1]
        return max(now_us - begun_us, 0) / 1e6, False


def _time(placed: tuple[int, int, Deed]) -> int:
    return placed[0]


def _place(placed: tuple[int, int, Deed]) -> tuple[int, int]:
    return placed[:2]


def _is_another(deed: Deed, other: Deed) -> bool:
    """Say whether two are not the same: a plan is its steps."""
    own_step = deed.kind == "plan" and other.row.plan == deed.id
    return other.id != deed.id and not own_step


def _one_tier(deed: Deed, other: Deed, kind: str) -> bool:
    """Say whether two are purges of one tier: there each is held against what it claims."""
    return _is_of_tier(kind) and deed.kind in _PURGES and other.kind == "purge"


def _is_of_tier(kind: str) -> bool:
    return kind in ("tier", "tokens")


def _distance(at_us: int, when: When) -> int:
    return max(when.began_us - at_us, at_us - when.done_us, 0)
