"""One deed under watch: its effects, its experiments, and the row that says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from msgspec.structs import replace

from memwatch.analytics.efficacy.confounders import MOST, of_effects, of_usage
from memwatch.analytics.efficacy.effect import EffectWatch, When
from memwatch.analytics.efficacy.window import Reading, Spans
from memwatch.domain.intervention import ExperimentsAround, Intervention, ResourceEffect, Verdict
from memwatch.runtime.views.deed import Deed

Stage = Literal["", "10s", "10min", "settled"]
STAGES: tuple[Stage, ...] = ("", "10s", "10min", "settled")
_OPEN = ("asked", "accepted", "running")
_DIFFERS_SHARE = 0.10
"""A claim that is off by more is not what we measured."""
_UNACCOUNTED_SHARE = 0.02
"""Of the memory of the tree: what no tier accounts for may be next to nothing by itself."""
_SOON_US = 3_000_000
"""Until the first look is over only what else happened changes."""
_LATER_US = 5_000_000
"""Once the first look is over, nobody needs the next at once."""

ReadingOf = Callable[[str], Reading | None]


class Known(NamedTuple):
    """How far an intervention is known, and what of it."""

    stage: Stage
    row: Intervention


class DeedWatch:
    """What is known of a deed; asks for nothing again that cannot change any more."""

    def __init__(self, deed: Deed, spans: Spans, used_bytes: float) -> None:
        self.deed = deed
        verdict: Verdict = "pending" if deed.when else _without_effect(deed.row.state)
        if deed.kind == "checkpoint":
            verdict = _saved(deed.row.state)
        self.row: Intervention = replace(deed.row, verdict=verdict)
        self.others: list[str] = []
        """What else happened meanwhile."""
        self.experiments: ExperimentsAround | None = None
        self.pause_s: float | None = None
        self.pause_over = not deed.holds
        self.settled = deed.when is None and deed.row.state not in _OPEN
        self.is_early = bool(deed.resources) and deed.when is not None
        """The first look is still to come, in which others count."""
        self._spans = spans
        self._due_us = 0
        self.recalled: Known | None = None
        """What a guard before this one wrote down of it."""
        floor = _UNACCOUNTED_SHARE * used_bytes
        self.watches = [
            EffectWatch(
                name,
                deed.when,
                spans,
                unit="tokens" if name.startswith("tokens:") else "bytes",
                floor=floor if name == "unaccounted" else 0.0,
                afresh=deed.kind == "restart",
            )
            for name in deed.resources
            if deed.when is not None
        ]

    @property
    def when(self) -> When | None:
        """When it was done."""
        return self.deed.when

    def is_due(self, now_us: int) -> bool:
        """Say whether there may be something new."""
        return not self.settled and now_us >= self._due_us

    @property
    def stage(self) -> Stage:
        """How far it is known."""
        if self.settled:
            return "settled"
        if self.watches and all(watch.late_over for watch in self.watches):
            return "10min"
        return "10s" if self.watches and not self.is_early else ""

    def recall(self, known: Known) -> None:
        """Go on with what another guard knew of it."""
        self.recalled = known
        if known.stage == "settled":
            self.settled, self.row = True, known.row

    def look(
        self, now_us: int, reading_of: ReadingOf, until_of: Callable[[str], int | None]
    ) -> None:
        """Look at all its resources, and put the row together."""
        for watch in self.watches:
            watch.look(reading_of(watch.resource), now_us, until_of(watch.resource))
        self.is_early = any(not watch.early_over for watch in self.watches)
        self.settled = self._is_settled(now_us)
        self._due_us = self._next_us(now_us)
        self.row = self._row(now_us)

    def _next_us(self, now_us: int) -> int:
        """Return when there may be something new: at the latest when the first look is over."""
        if not self.is_early or self.when is None:
            return now_us + _LATER_US
        early_us = self.when.done_us + self._spans.early[1]
        return min(now_us + _SOON_US, early_us) if now_us < early_us else 0

    def told(self, deed: Deed) -> None:
        """Take over what is known better of the same deed: who asked for it, and why."""
        self.deed, row = deed, deed.row
        self.row = replace(
            self.row, origin=row.origin, by=row.by, why=row.why, plan=row.plan, state=row.state
        )

    def _is_settled(self, now_us: int) -> bool:
        if self.when is None:
            return self.settled
        if now_us >= self.when.done_us + self._spans.watch_us:
            return True
        tried = self.experiments is not None and self.experiments.after >= 3
        return tried and self.pause_over and all(watch.settled for watch in self.watches)

    def _row(self, now_us: int) -> Intervention:
        effects = self._effects(now_us)
        row = self.deed.row
        if not effects:
            return replace(row, pause_s=self._pause_s, verdict=_without_effect(row.state))
        first, watch = effects[0], self.watches[0]
        return replace(
            row,
            verdict=_saved(row.state) if self.deed.kind == "checkpoint" else first.verdict,
            effects=effects,
            pause_s=self._pause_s,
            experiments=self.experiments,
            confounders=tuple(self._confounders(effects)[:MOST]),
            before=first.before,
            after_10s=first.after_10s,
            after_10min=first.after_10min,
            freed_bytes=first.freed,
            freed_share=first.freed_share,
            rebound_s=first.rebound_s,
            held_s=first.held_s,
            differs=self._differs(effects),
            overlaps=watch.voided,
        )

    @property
    def _pause_s(self) -> float | None:
        return self.deed.row.pause_s if self.pause_s is None else self.pause_s

    def _effects(self, now_us: int) -> tuple[ResourceEffect, ...]:
        """Return them, first that which it is about; others only where something was measured."""
        found = [watch.effect(now_us) for watch in self.watches]
        if self.recalled is not None:
            known = {one.resource: one for one in self.recalled.row.effects}
            found = [_together(known.get(one.resource), one) for one in found]
        rest = [one for one in found[1:] if one.before is not None or one.after_10s is not None]
        return (*found[:1], *rest)

    def _confounders(self, effects: tuple[ResourceEffect, ...]) -> list[str]:
        watch, window_s = self.watches[0], self._spans.before_us / 1e6
        said = of_usage(watch.before, window_s, effects[0].unit)
        told = [*said, *of_effects(effects, watch.came_back_unseen), *self.others]
        recalled = self.recalled.row.confounders if self.recalled else ()
        return list(dict.fromkeys([*recalled, *told]))

    def _differs(self, effects: tuple[ResourceEffect, ...]) -> bool:
        """Say whether the agent's claim is not what was measured, noise allowed for."""
        claimed = self.deed.row.claimed
        about = next((one for one in effects if one.resource == self.deed.claims), None)
        if claimed is None or about is None or about.freed is None:
            return False
        watch = next(one for one in self.watches if one.resource == about.resource)
        return abs(claimed - about.freed) > max(_DIFFERS_SHARE * abs(claimed), watch.least or 0.0)


def _saved(state: str) -> Verdict:
    """Return the verdict of a checkpoint, whose purpose is that it is there: it frees nothing."""
    return "effective" if state == "done" else "none"


def _without_effect(state: str) -> Literal["pending", "unmeasured"]:
    return "pending" if state in _OPEN else "unmeasured"


def _together(known: ResourceEffect | None, found: ResourceEffect) -> ResourceEffect:
    """Return what two guards measured of one resource: what was seen once stays seen."""
    if known is None:
        return found
    if found.verdict in ("pending", "unmeasured") and known.verdict != "pending":
        late = found.after_10min if known.after_10min is None else known.after_10min
        return replace(known, after_10min=late)
    rebound_s = known.rebound_s if found.rebound_s is None else found.rebound_s
    held = [one.held_s for one in (known, found) if one.held_s is not None]
    measured = {
        name: getattr(known, name)
        for name in ("before", "after_10s", "after_10min")
        if getattr(found, name) is None
    }
    held_s = max(held) if held and rebound_s is None else None
    return replace(found, rebound_s=rebound_s, held_s=held_s, **measured)
