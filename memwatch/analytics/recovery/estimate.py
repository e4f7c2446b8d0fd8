"""Work and costs -> seconds: each term of a recovery as a range, and their sum. Source: R12."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import exp, log
from typing import Final, NamedTuple

from msgspec.structs import replace

from memwatch.analytics.recovery.costs import (
    ASSUMED_START_S,
    LEARNT,
    Costs,
    LearntTerm,
    Ratio,
    StartSeen,
    amounts,
    ratios,
    reference_s,
)
from memwatch.analytics.recovery.work import Work
from memwatch.domain.recovery import (
    Basis,
    DiskRate,
    MeasuredTerm,
    RecoveryTerm,
    Span,
    TermName,
)
from memwatch.domain.units import counted, duration_text

_ASSUMED: Final = log(2)
"""Half a range is a factor, as a logarithm: twice, and half of it, where nothing was measured."""
_MOST_TOTAL: Final = log(2) / 2 - 1e-6
"""Once it was measured the whole has a range of no more than low to twice that."""
_MOST_ASSUMED: Final = 0.25
"""With so much of it assumed the whole still counts as measured: were that twice as long, the whole
would be a quarter longer."""
_LEAST: Final = log(1.12)
_ONE: Final = log(1.35)
"""After a single measurement; with n of them what it has above the least is an n-th."""
_SIGMAS: Final = 1.7
_BY_SIZE: Final = 0.05
"""For each factor of e that the nearest measurement differs in size."""
_JITTER_S: Final = 4e-3
"""What a busy machine adds to anything short, or spares it."""
_MOMENT_S: Final = 20e-3
"""The most that it adds to anything, but for rare moments."""
_NOISE: Final = 0.1
_REFERENCE: Final = log(2.5)
"""How far the reference may be from this machine."""
_BLOBS: Final = log(1.8)
"""Which persisted values the state still needs is known by and large."""
_TICK_S: Final = 0.01
"""Processes' begins are told in hundredths of a second."""
_TOLD_FROM_BYTES: Final = 10_000_000


class _Ranged(NamedTuple):
    likely: float
    half: float

    @property
    def low(self) -> float:
        return self.likely * exp(-self.half)

    @property
    def high(self) -> float:
        return self.likely * exp(self.half)


def estimate(
    work: Work, costs: Costs, disk: DiskRate | None, now_us: int
) -> tuple[tuple[RecoveryTerm, ...], Span]:
    """Return the terms of a recovery that has something to do in them, and their sum.

    `costs` are of one run (`costs.learn`). `now_us` is wall time, for ages.
    """
    asked = (name for name in LEARNT if reference_s(name, work, disk) > 0)
    learnt = (_learnt(name, work, costs, disk, now_us) for name in asked)
    terms = (_start(costs, now_us), *learnt)
    span = total(terms)
    return tuple(_within(span, terms)), span


def total(terms: Iterable[RecoveryTerm]) -> Span:
    """Return the sum of terms; a slow hour is slow in each of them, so ranges add up.

    Short terms may vary by more than the whole does.
    """
    found = tuple(terms)
    likely = sum(term.seconds for term in found)
    low, high = sum(term.low_s for term in found), sum(term.high_s for term in found)
    assumed = sum(term.seconds for term in found if term.basis == "assumed")
    if assumed <= _MOST_ASSUMED * likely:
        low = max(low, likely * exp(-_MOST_TOTAL))
        high = min(high, likely * exp(_MOST_TOTAL))
    return Span(low=low, likely=likely, high=high)


def _within(span: Span, terms: Sequence[RecoveryTerm]) -> Iterator[RecoveryTerm]:
    """Yield terms none of which may be what the sum of all cannot come to."""
    low, high = sum(term.low_s for term in terms), sum(term.high_s for term in terms)
    for term in terms:
        least, most = span.low - (high - term.high_s), span.high - (low - term.low_s)
        yield replace(
            term,
            low_s=min(max(term.low_s, least), term.seconds),
            high_s=max(min(term.high_s, most), term.seconds),
        )


def comparable(
    terms: Sequence[RecoveryTerm], names: Iterable[str], start_s: float | None = None
) -> Span | None:
    """Return the estimate of the named terms, to hold a recovery against that had these.

    With `start_s` that stands for the start: a drill's process is not the agent's. It has the
    least range of all, as no sum is told closer. None where nothing was estimated.
    """
    if not terms:
        return None
    wanted = set(names)
    found = [term for term in terms if term.name in wanted]
    if start_s is not None:
        own = _term("start", _Ranged(start_s, _LEAST), "measured", 0.0, "its own")
        found = [own, *(term for term in found if term.name != "start")]
    return total(found)


def expected(terms: Iterable[RecoveryTerm]) -> tuple[MeasuredTerm, ...]:
    """Return an estimate as a recovery keeps it: what was thought of each term."""
    return tuple(
        MeasuredTerm(term.name, term.seconds, term.bytes or 0, term.records or 0) for term in terms
    )


def _start(costs: Costs, now_us: int) -> RecoveryTerm:
    seen = next(iter(costs.starts.values()), ())
    if not seen:
        how = "assumed: no start of this agent was seen"
        return _term("start", _Ranged(ASSUMED_START_S, _ASSUMED), "assumed", None, how)
    weighted = [(log(one.seconds), 0.7**rank) for rank, one in enumerate(seen)]
    ranged = _range(weighted, exp(_median(weighted)), _TICK_S)
    how = f"{counted(len(seen), 'start')} of this agent"
    return _term("start", ranged, "measured", _age_s(seen[0], now_us), how)


def _learnt(
    name: LearntTerm, work: Work, costs: Costs, disk: DiskRate | None, now_us: int
) -> RecoveryTerm:
    size, records = amounts(name, work)
    expected_s = reference_s(name, work, disk)
    known = ratios(name, work, costs, disk)
    if not known:
        how = f"assumed{_disk_words(disk)}; a drill measures it"
        ranged = _Ranged(expected_s, _ASSUMED)
        return _term(name, ranged, "assumed", None, how, (size, records))
    weighted = [(log(one.ratio), one.weight) for one in known]
    likely = expected_s * exp(_median(weighted) * _trust(weighted, expected_s))
    ranged = _range(weighted, likely, _JITTER_S, min(one.distance for one in known))
    if name == "blobs":
        ranged = _Ranged(likely, max(ranged.half, _BLOBS))
    best = max(known, key=lambda one: one.weight).sample
    basis: Basis = "drilled" if best.kind == "drill" else "measured"
    age_s = max(now_us - max(one.sample.t_us for one in known), 0) / 1e6
    how = _how(known) + _rate_words(name, likely, size, records)
    return _term(name, ranged, basis, age_s, how, (size, records))


def _range(
    weighted: list[tuple[float, float]], likely: float, jitter_s: float, distance: float = 0.0
) -> _Ranged:
    """Return the range of a figure from logarithms of measurements and their weights."""
    whole, count = sum(weight for _, weight in weighted), _count_of(weighted)
    middle = _median(weighted)
    spread = sum(weight * abs(value - middle) for value, weight in weighted) / whole
    half = max(_LEAST + (_ONE - _LEAST) / count, _SIGMAS * 1.25 * spread)
    half += _BY_SIZE * distance + log(1 + jitter_s / likely)
    return _Ranged(likely, min(half, _ASSUMED))


def _trust(weighted: list[tuple[float, float]], expected_s: float) -> float:
    """Return how far to follow what was measured from the reference, from 0 to 1.

    Of something short a single measurement is mostly what else the machine did at that moment;
    what took far longer than such a moment was not short, whatever the reference says.
    """
    took_s = expected_s * exp(max(_median(weighted), 0.0))
    noise = _NOISE + min(_JITTER_S / expected_s, _MOMENT_S / took_s)
    return _REFERENCE**2 / (_REFERENCE**2 + noise**2 / _count_of(weighted))


def _count_of(weighted: list[tuple[float, float]]) -> float:
    """Return how many equal measurements would say as much."""
    whole = sum(weight for _, weight in weighted)
    return whole**2 / sum(weight**2 for _, weight in weighted)


def _median(weighted: list[tuple[float, float]]) -> float:
    """Return the weighted median; between two, their mean by weight."""
    ordered = sorted(weighted)
    half, below = sum(weight for _, weight in ordered) / 2, 0.0
    for at, (value, weight) in enumerate(ordered):
        below += weight
        if below > half * (1 + 1e-9) or at == len(ordered) - 1:
            return value
        if below >= half * (1 - 1e-9):
            return (value + ordered[at + 1][0]) / 2
    raise ValueError("no values")


def _term(
    name: TermName,
    ranged: _Ranged,
    basis: Basis,
    age_s: float | None,
    how: str,
    size: tuple[int, int] | None = None,
) -> RecoveryTerm:
    return RecoveryTerm(
        name=name,
        seconds=ranged.likely,
        low_s=ranged.low,
        high_s=ranged.high,
        basis=basis,
        age_s=age_s,
        bytes=size[0] if size else None,
        records=size[1] if size and size[1] else None,
        how=how,
    )


def _how(known: Sequence[Ratio]) -> str:
    own = [one.sample for one in known if one.sample.own]
    whose = "of this run" if own else "of other runs on this machine"
    samples = own or [one.sample for one in known]
    counts = {kind: sum(one.kind == kind for one in samples) for kind in ("drill", "restart")}
    words = [counted(count, kind) for kind, count in counts.items() if count]
    return f"{' and '.join(words)} {whose}"


def _rate_words(name: LearntTerm, likely: float, size: int, records: int) -> str:
    if name == "replay":
        return f", {duration_text(likely / records)} a record" if records >= 1_000 else ""
    if size < _TOLD_FROM_BYTES:
        return ""
    return f", {duration_text(likely / size * 1e9)} a GB"


def _disk_words(disk: DiskRate | None) -> str:
    return " but for the disk, which was measured" if disk and disk.read_bytes_per_s else ""


def _age_s(seen: StartSeen, now_us: int) -> float:
    return max(now_us - seen.t_us, 0) / 1e6
