"""Hill climbing with random restarts, in three phases, from slice to slice of the corpus.

exploration    far steps: half of them random restarts, the others two knobs away from the best
accumulation   neighbours of the best, until several in a row brought nothing
verification   what was kept is decompressed and checked; then the next slice, from the start

The score of a result is `ratio * (megabytes a second) ** 0.1`: how much smaller, with a tenth of
an eye on the processor time.
"""

from __future__ import annotations

import random

from msgspec import structs

from memwatch.demo.results import SearchState
from memwatch.demo.settings import Settings, anywhere, beside

EXPLORATIONS = 7
ACCUMULATIONS = 9
PATIENCE = 4
VERIFICATIONS = 2
_TRIES = 20


def score_of(ratio: float, mb_per_s: float) -> float:
    """Return the figure that the search makes larger."""
    return float(ratio * mb_per_s**0.1)


class Search:
    """What to try next; follows from its state, apart from the times that scores hold."""

    def __init__(self, state: SearchState, slices: int) -> None:
        self.state = state
        """Replaced with every step, never changed."""
        self._slices = slices

    @property
    def phase(self) -> str:
        """exploration, accumulation or verification."""
        return self.state.phase

    @property
    def slice(self) -> int:
        """Which slice of the corpus is worked on."""
        return self.state.slice % self._slices

    def propose(self) -> Settings:
        """Return settings not tried on this slice yet, where such are found soon."""
        state = self.state
        rng = random.Random(f"{state.seed}/{state.proposals}")
        settings = self._guess(rng)
        for _ in range(_TRIES):
            if settings not in state.tried:
                break
            settings = self._guess(rng)
        self._become(proposals=state.proposals + 1, tried=(*state.tried, settings))
        return settings

    def learn(self, settings: Settings, score: float | None) -> bool:
        """Take the score of a proposal, None for a failure; returns whether it is the new best."""
        state = self.state
        better = score is not None and score > state.best_score
        if better:
            self._become(best=settings, best_score=score)
        self._become(vain=0 if better else state.vain + 1, in_phase=state.in_phase + 1)
        state = self.state
        if state.phase == "exploration" and state.in_phase >= EXPLORATIONS and state.best:
            self._become(phase="accumulation", in_phase=0, vain=0)
        elif state.phase == "accumulation" and (
            state.in_phase >= ACCUMULATIONS or state.vain >= PATIENCE
        ):
            self._become(phase="verification", in_phase=0, vain=0)
        return better

    def verified(self) -> None:
        """Take note of a verification; after the last one the next slice begins."""
        state = self.state
        if state.in_phase + 1 < VERIFICATIONS:
            self._become(in_phase=state.in_phase + 1)
            return
        self.state = SearchState(
            seed=state.seed, proposals=state.proposals, slice=(self.slice + 1) % self._slices
        )

    def _become(self, **changes: object) -> None:
        self.state = structs.replace(self.state, **changes)

    def _guess(self, rng: random.Random) -> Settings:
        best = self.state.best
        if best is None:
            return anywhere(rng)
        if self.phase == "accumulation":
            return beside(best, rng)
        return anywhere(rng) if rng.random() < 0.5 else beside(best, rng, 2)
