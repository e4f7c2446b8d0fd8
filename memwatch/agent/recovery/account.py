"""What a recovery finds out on its way: what is wrong, what is lost, where the time goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from memwatch.agent.recovery.report import Term, TermName

_MOST_SAID = 200
_TERMS: tuple[TermName, ...] = ("load", "blobs", "read", "replay", "decode")


class Findings:
    """Sentences for a report; of very many the later ones are only counted."""

    def __init__(self) -> None:
        self._said: dict[str, None] = {}
        self._more = 0

    def __bool__(self) -> bool:
        """Whether anything was said."""
        return bool(self._said)

    def add(self, sentence: object) -> None:
        """Add a sentence, once."""
        if len(self._said) < _MOST_SAID:
            self._said[str(sentence)] = None
        else:
            self._more += 1

    def all(self) -> tuple[str, ...]:
        """Return them."""
        return (*self._said, f"and {self._more} more") if self._more else tuple(self._said)


class Account:
    """Findings and times of one recovery."""

    def __init__(self) -> None:
        self.damaged = Findings()
        """What is not as it was written, whether something made up for it or not."""
        self.lost = Findings()
        self._seconds: dict[TermName, float] = dict.fromkeys(_TERMS, 0.0)
        self._bytes: dict[TermName, int] = dict.fromkeys(_TERMS, 0)
        self._records: dict[TermName, int] = dict.fromkeys(_TERMS, 0)

    @contextmanager
    def time(self, term: TermName) -> Iterator[None]:
        """Count the time inside to a term."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.spent(term, time.perf_counter() - began)

    def spent(self, term: TermName, seconds: float, count_bytes: int = 0, records: int = 0) -> None:
        """Count time, bytes and records to a term."""
        self._seconds[term] += seconds
        self._bytes[term] += count_bytes
        self._records[term] += records

    def terms(self) -> tuple[Term, ...]:
        """Return all terms, in the order of the work; what was read for it is replayed."""
        self._bytes["replay"] = self._bytes["read"]
        return tuple(
            Term(name, self._seconds[name], self._bytes[name], self._records[name])
            for name in _TERMS
        )
