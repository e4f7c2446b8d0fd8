"""What each tier is to keep: as configured, as its phase wants it, or as somebody asked (R1, R10).

What was asked for wins until it is taken back or the start ends; a phase wins over what is
configured. What a tier must not delete no phase and nobody makes it delete (R4).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import asdict

from memwatch.agent.memory.stated import check_keep
from memwatch.domain.errors import UsageError
from memwatch.domain.policy import Keep
from memwatch.wal.segment import tier_file

_USUAL = Keep()


class Keeping:
    """Of all tiers of a run. Used with the tiers' lock held."""

    def __init__(
        self, keep: Mapping[str, Keep], phases: Mapping[str, Mapping[str, Keep]] | None = None
    ) -> None:
        """Raise UsageError for a tier that no file can be named by, or what cannot be kept so."""
        self._configured = dict(keep)
        self._phases = phases or {}
        self._asked: dict[str, Keep] = {}
        for name, what in keep.items():
            try:
                tier_file(name)
            except (TypeError, ValueError) as error:
                raise UsageError(str(error)) from None
            self._check(name, what)
        for phase, tiers in self._phases.items():
            for name, what in tiers.items():
                if name not in keep:
                    raise UsageError(f"phase {phase} names a tier {name}, which there is not")
                self._check(name, what)

    def of(self, tier: str, phase: str) -> Keep:
        """Return what a tier is to keep now."""
        return self._asked.get(tier) or self._usual(tier, phase)

    def wish(self, tier: str, changes: Mapping[str, Any] | None, phase: str) -> Keep:
        """Return what a tier would keep: as usual but for `changes`, None for what is usual.

        Raises UsageError for what cannot be kept so.
        """
        usual = self._usual(tier, phase)
        if changes is None:
            return usual
        try:
            keep = msgspec.convert(asdict(usual) | dict(changes), Keep)
        except msgspec.ValidationError as error:
            raise UsageError(f"Keep of tier {tier}: {error}") from None
        self._check(tier, keep)
        return keep

    def ask(self, tier: str, keep: Keep | None) -> None:
        """Have a tier keep what `wish` returned, None for what is usual."""
        if keep is None:
            self._asked.pop(tier, None)
        else:
            self._asked[tier] = keep

    def _usual(self, tier: str, phase: str) -> Keep:
        return self._phases.get(phase, {}).get(tier) or self._configured.get(tier, _USUAL)

    def _check(self, tier: str, keep: Keep) -> None:
        check_keep(tier, keep)
        below = keep.demote_to
        if below is not None and (below not in self._configured or below == tier):
            raise UsageError(f"tier {tier} is demoted to {below}: no other tier")
        if keep.delete and not self._configured.get(tier, _USUAL).delete:
            raise UsageError(f"tier {tier} deletes nothing: that stays so")


def told(keep: Keep) -> dict[str, Any]:
    """Return what is not usual of a tier.

    >>> told(Keep(count=3))
    {'count': 3}
    """
    return differences(_USUAL, keep)[1]


def differences(old: Keep, new: Keep) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the members in which two differ, before and after.

    >>> differences(Keep(count=3), Keep())
    ({'count': 3}, {'count': None})
    """
    before, after = asdict(old), asdict(new)
    names = [name for name in before if before[name] != after[name]]
    return {name: before[name] for name in names}, {name: after[name] for name in names}
