"""Hill climbing with random restarts, in three phases, from slice to slice of the corpus.

exploration    far steps: half of them random restarts, the others two knobs away from the best
accumulation   neighbours of the best, until several in a row brought nothing
verification   what was kept is decompressed and checked; then the next slice, from the start

The score of a result is `ratio * (megabytes a second) ** 0.1`: how much smaller, with a tenth of
an eye on the processor time.
"""

from __future__ import annotations

import random
from typing import Literal

from memwatch.demo.settings import Settings, anywhere, beside

Phase = Literal["exploration", "accumulation", "verification"]

EXPLORATIONS = 7
ACCUMULATIONS = 9
PATIENCE = 4
VERIFICATIONS = 2
_TRIES = 20


def score_of(ratio: float, mb_per_s: float) -> float:
    """Return the figure that the search makes larger."""
    return float(ratio * mb_per_s**0.1)


class Search:
    """What to try next; deterministic by seed, apart from the times that scores hold."""

    def __init__(self, seed: int, slices: int) -> None:
        self._rng = random.Random(seed)
        self._slices = slices
        self.phase: Phase = "exploration"
        self.slice = 0
        """Which slice of the corpus is worked on."""
        self.best: Settings | None = None
        self.best_score = 0.0
        self._in_phase = 0
        self._vain = 0
        self._tried: set[Settings] = set()

    def propose(self) -> Settings:
        """Return settings not tried on this slice yet, where such are found soon."""
        settings = self._guess()
        for _ in range(_TRIES):
            if settings not in self._tried:
                break
            settings = self._guess()
        self._tried.add(settings)
        return settings

    def learn(self, settings: Settings, score: float | None) -> bool:
        """Take the score of a proposal, None for a failure; returns whether it is the new best."""
        better = score is not None and score > self.best_score
        if score is not None and better:
            self.best, self.best_score = settings, score
        self._vain = 0 if better else self._vain + 1
        self._in_phase += 1
        if self.phase == "exploration" and self._in_phase >= EXPLORATIONS and self.best:
            self._enter("accumulation")
        elif self.phase == "accumulation" and (
            self._in_phase >= ACCUMULATIONS or self._vain >= PATIENCE
        ):
            self._enter("verification")
        return better

    def verified(self) -> None:
        """Take note of a verification; after the last one the next slice begins."""
        self._in_phase += 1
        if self._in_phase >= VERIFICATIONS:
            self._enter("exploration")
            self.slice = (self.slice + 1) % self._slices
            self.best, self.best_score = None, 0.0
            self._tried.clear()

    def _enter(self, phase: Phase) -> None:
        self.phase, self._in_phase, self._vain = phase, 0, 0

    def _guess(self) -> Settings:
        if self.best is None:
            return anywhere(self._rng)
        if self.phase == "accumulation":
            return beside(self.best, self._rng)
        return anywhere(self._rng) if self._rng.random() < 0.5 else beside(self.best, self._rng, 2)
