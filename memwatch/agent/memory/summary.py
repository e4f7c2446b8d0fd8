"""What stays of an experiment when a tier lets it go: a summary in the tier below (R1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from memwatch.agent.memory.entry import Entry

SUMMARY_PREFIX: Final = "summary/"
"""Of the key of a summary; the number of the experiment follows."""

REMEMBERED: Final = 1_000
"""Experiments whose outcome is known here; older ones are summed up by what they hold."""

_LISTED = 100

Summarize = Callable[[list[Entry]], Any]
"""Makes a summary of the entries of one experiment; None leaves it to `Summaries`."""


class Summaries:
    """Makes the summaries of a run's experiments."""

    def __init__(self, summarize: Summarize | None) -> None:
        self.summarize = summarize
        """The run's own way; None where it has none."""
        self._outcomes: dict[int, dict[str, Any]] = {}

    def ended(self, number: int, outcome: Mapping[str, Any]) -> None:
        """Remember title, status and metrics of an experiment."""
        self._outcomes[number] = dict(outcome)
        if len(self._outcomes) > REMEMBERED:
            del self._outcomes[next(iter(self._outcomes))]

    def plain(self, number: int, entries: list[Entry]) -> dict[str, Any]:
        """Return the outcome of an experiment; where nobody knows it, what its entries held."""
        outcome = self._outcomes.get(number)
        if outcome is not None:
            return {"experiment": number, **outcome}
        held = {entry.key: entry.full_bytes or entry.bytes for entry in entries}
        listed = dict(list(held.items())[:_LISTED])
        return {
            "experiment": number,
            "entries": len(held),
            "bytes": sum(held.values()),
            "keys": listed,
        }
