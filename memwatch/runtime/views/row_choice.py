"""Which interventions are remembered, and which of them a snapshot shows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec.structs import replace

from memwatch.domain.intervention import Intervention, ResourceEffect
from memwatch.runtime.views.deed import Deed, DeedKind
from memwatch.runtime.views.deed_watch import DeedWatch

KEPT_ROWS = 8
"""In a snapshot, which stays small; all others, and all that is known of these, come as rows."""
KEPT_CHECKPOINTS = 2
"""Of each kind of checkpoint that a snapshot shows."""
_SAID = 2
"""Of what else happened."""
SHOWN: Mapping[DeedKind, int] = {
    "routine": 3,
    "purge": 3,
    "request": 3,
    "plan": 2,
    "mode": 1,
    "restart": 1,
    "compact": 2,
}
"""The newest of each kind that a snapshot shows."""
REMEMBERED: Mapping[DeedKind, int] = {
    "routine": 32,
    "purge": 96,
    "checkpoint": 64,
    "request": 64,
    "plan": 32,
    "mode": 16,
    "restart": 16,
    "compact": 32,
}
"""The newest of each kind that are remembered: none crowds out another."""


def surplus(watches: Collection[DeedWatch]) -> list[str]:
    """Return the names of those that are remembered no more."""
    gone = []
    for kind, most in REMEMBERED.items():
        of_kind = [watch for watch in watches if watch.deed.kind == kind]
        if len(of_kind) > most:
            of_kind.sort(key=lambda watch: watch.deed.row.asked_at_us)
            gone += [watch.deed.id for watch in of_kind[:-most]]
    return gone


def shown(watches: Iterable[DeedWatch], older: Iterable[Intervention]) -> tuple[Intervention, ...]:
    """Return rows for a snapshot, newest first: none of its kinds crowds out another."""
    newest = sorted(watches, key=lambda watch: _newest(watch.row), reverse=True)
    kept = [row for kind, most in SHOWN.items() for row in _of(newest, kind)[:most]]
    for is_full in (True, False):
        kept += _checkpoints([w for w in newest if _is_full(w.deed) is is_full])
    rows = sorted(kept, key=_newest, reverse=True)[:KEPT_ROWS]
    if len(rows) < KEPT_ROWS:
        rows += sorted(older, key=_newest, reverse=True)[: KEPT_ROWS - len(rows)]
    return tuple(slim(row) for row in sorted(rows, key=_newest, reverse=True))


def slim(row: Intervention) -> Intervention:
    """Return a row without what only its evidence shows."""
    rest = [one for one in row.effects[1:] if one.resource == "memory" or _is_news(one)]
    said = [one for one in rest if one.verdict != "unmeasured"]
    confounders = row.confounders[:_SAID]
    effects = (*row.effects[:1], *said[:2])
    return replace(row, effects=effects, confounders=confounders, stages=(), experiments=None)


def _is_news(effect: ResourceEffect) -> bool:
    return effect.unit == "tokens" and effect.verdict in ("effective", "worse")


def _newest(row: Intervention) -> int:
    return row.asked_at_us


def _of(watches: Iterable[DeedWatch], kind: DeedKind) -> list[Intervention]:
    return [watch.row for watch in watches if watch.deed.kind == kind]


def _is_full(deed: Deed) -> bool | None:
    return "full" in deed.row.action if deed.kind == "checkpoint" else None


def _checkpoints(newest: list[DeedWatch]) -> list[Intervention]:
    """Return the newest, the newest one that was asked for, and the newest that are measured."""
    kept = newest[:1]
    kept += [watch for watch in newest[1:] if watch.row.origin != "agent"][:1]
    measured = (watch for watch in newest[1:] if not watch.is_early and watch not in kept)
    kept += list(measured)[: max(KEPT_CHECKPOINTS - len(kept), 0)]
    return [watch.row for watch in kept]
