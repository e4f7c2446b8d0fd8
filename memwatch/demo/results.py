"""What the demo keeps in its tiers."""

from __future__ import annotations

from msgspec import Struct

from memwatch.demo.settings import Settings


class Call(Struct, frozen=True):
    """A tool call of the experiment in progress (`workspace`)."""

    tool: str
    index: int
    cpu_s: float
    output: bytes


class Result(Struct, frozen=True, kw_only=True):
    """What an experiment found (`recent`); with its `Packed` it is complete."""

    experiment: int
    phase: str
    slice: int
    settings: Settings
    status: str
    text_bytes: int
    text_sha256: str
    packed_bytes: int
    cpu_s: float
    ratio: float
    score: float


class Packed(Struct, frozen=True):
    """A compressed text (`recent`).

    One that was kept is the yield of the search, so it is persisted whole; one that was discarded
    can be made again from its settings.
    """

    dictionary: bytes
    chunks: tuple[bytes, ...]


class Metrics(Struct, frozen=True, kw_only=True):
    """What stays of an experiment that left `recent` (`history`)."""

    experiment: int
    slice: int
    settings: Settings
    status: str
    ratio: float
    score: float
    cpu_s: float


class Verified(Struct, frozen=True, kw_only=True):
    """The best result of its kind that was decompressed and found whole (`verified`)."""

    experiment: int
    settings: Settings
    text_sha256: str
    packed_bytes: int
    ratio: float
    score: float
    times: int
    """How often it was verified."""


class SearchState(Struct, frozen=True, kw_only=True):
    """Where the search stands (`search`): what a demo that is started again goes on from."""

    seed: int
    proposals: int = 0
    """Made so far; with the seed they say what is guessed next."""
    phase: str = "exploration"
    slice: int = 0
    best: Settings | None = None
    best_score: float = 0.0
    in_phase: int = 0
    vain: int = 0
    tried: tuple[Settings, ...] = ()
    """On this slice, in their order."""


TYPES = (Call, Result, Packed, Metrics, Verified, SearchState)


def metrics_of(result: Result) -> Metrics:
    """Return the key metrics of a result."""
    return Metrics(
        experiment=result.experiment,
        slice=result.slice,
        settings=result.settings,
        status=result.status,
        ratio=result.ratio,
        score=result.score,
        cpu_s=result.cpu_s,
    )
