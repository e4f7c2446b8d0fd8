"""Bloat: checkpoints that grow, or take time, without the state growing. Source: metrics.

Each cause gives a course of pressures, one for each checkpoint (or chain): 1 is where bloat begins.
A verdict needs two in a row and goes back only well below, so that one odd checkpoint says nothing
and a figure around the line does not flicker. It follows from the course alone, whoever reads it
and when.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Literal, NamedTuple

from memwatch.analytics.checkpoints.course import Seen, fulls, step_slope, sure_slope
from memwatch.analytics.checkpoints.stats import time_share
from memwatch.domain.checkpoints import Bloat
from memwatch.domain.units import bytes_text, duration_text, share_text

Verdict = Literal["not enough data", "stable", "watching", "bloat"]
Source = Literal["native", "directory", "langgraph"]

WINDOW = 8
"""Checkpoints that a pressure looks back on."""
LEAST = 4
GROWTH = 0.20
"""Full ones grew by this share over the window …"""
THINNING = 0.15
"""… and by this share more than the state that they hold."""
LEAST_GROWTH_BYTES = 100_000
TIME = 0.10
"""Share of the time that checkpoints take."""
TIME_AIM = 0.05
REWRITTEN = 0.4
"""A store writes this share of the whole state again with each checkpoint …"""
AMPLIFIED = 20
"""… and has written so many times the state in all."""
CHAIN = 10
"""Increments of one chain hold so many times the full one that they follow …"""
LEAST_CHAIN_BYTES = 5_000_000


class _Cause(NamedTuple):
    pressures: list[float]
    why: str
    do: str


def bloat_of(course: Sequence[Seen], source: Source, written: int | None = None) -> Bloat:
    """Judge a course of complete checkpoints, oldest first.

    `written` is what was written for all of the store where that is more than the course holds.
    """
    causes = [_growth(course, source)]
    if source != "langgraph":  # there a checkpoint's time is that of the step it ends
        causes.append(_time(course, source))
    if source == "native":
        causes.append(_chains(course))
    if source == "langgraph":
        causes.append(_rewriting(course, written))
    judged = [(settled(cause.pressures), cause) for cause in causes if cause]
    if not judged:
        return Bloat()
    verdict, worst = max(judged, key=lambda one: (_ORDER.index(one[0]), one[1].pressures[-1]))
    if verdict in ("stable", "not enough data"):
        return Bloat(verdict=verdict)
    return Bloat(verdict=verdict, why=worst.why, do=worst.do)


_ORDER: tuple[Verdict, ...] = ("not enough data", "stable", "watching", "bloat")


def settled(pressures: Sequence[float]) -> Verdict:
    """Return the verdict that a course of pressures leads to.

    >>> settled([0, 0, 9]), settled([0, 9, 9]), settled([9, 9, 0]), settled([9, 9, 0, 0])
    ('watching', 'bloat', 'bloat', 'stable')
    """
    if not pressures:
        return "not enough data"
    verdict: Verdict = "stable"
    before = 0.0
    for pressure in pressures:
        low, high = sorted((before, pressure))
        if low >= 1:
            verdict = "bloat"
        elif high < 0.4:
            verdict = "stable"
        elif (verdict == "stable" and pressure >= 0.5) or (verdict == "bloat" and high < 0.8):
            verdict = "watching"
        before = pressure
    return verdict


def _windows(course: Sequence[Seen], measure: Callable[[Sequence[Seen]], float]) -> list[float]:
    """Measure the window that ends at each of a course, from the first that is long enough."""
    ends = range(LEAST, len(course) + 1)
    return [max(measure(course[max(end - WINDOW, 0) : end]), 0.0) for end in ends]


def _growth(course: Sequence[Seen], source: Source) -> _Cause | None:
    """Full ones grow, and more than the state does: entries, tiers, or the steps of a graph."""
    held = fulls(course)
    if len(held) < LEAST:
        return None
    window = held[-WINDOW:]
    grown, sizes = _rise(_sizes(window)), _sizes(window)
    why = f"full ones grew {share_text(grown)} over the last {len(window)}, to "
    why += bytes_text(sizes[-1])
    state = _state(window, source)
    if state:
        why += f"; the state {share_text(max(_rise(state), 0.0))}"
    pressures = _windows(held, lambda some: _growing(some, source))
    return _Cause(pressures, why, _leaner(window, source))


def _growing(window: Sequence[Seen], source: Source) -> float:
    sizes = _sizes(window)
    if sure_slope(sizes) * (len(sizes) - 1) < LEAST_GROWTH_BYTES:
        return 0.0
    state = _state(window, source)
    grown = _rise(sizes) / GROWTH
    if not state:
        return grown
    ratios = [size / of for size, of in zip(sizes, state, strict=True)]
    return min(grown, _rise(ratios) / THINNING)


def _sizes(window: Sequence[Seen]) -> list[float]:
    return [float(seen.one.bytes or 0) for seen in window]


def _state(window: Sequence[Seen], source: Source) -> list[float]:
    """Return the size of the state at each, by the first measure that all of them have."""
    names = ["state_bytes", "entries"] + (["step"] if source == "langgraph" else [])
    for name in names:
        values = [getattr(seen.one, name) or 0 for seen in window]
        if all(value > 0 for value in values):
            return [float(value) for value in values]
    return []


def _rise(values: Sequence[float]) -> float:
    """Return by which share of their beginning values rose for sure."""
    slope, steps = sure_slope(values), len(values) - 1
    first = median(value - slope * place for place, value in enumerate(values))
    return slope * steps / first if first > 0 else 0.0


def _leaner(window: Sequence[Seen], source: Source) -> str:
    if source != "native":
        return "see what the program adds to each one: a history, a cache, old messages"
    own = [float(seen.one.file_bytes or 0) for seen in window]
    rest = [size - part for size, part in zip(_sizes(window), own, strict=True)]
    if step_slope(rest) > step_slope(own):
        return "persisted values grow: drop or shrink large ones, or make them rebuildable"
    return "its own files grow: longer values, or more files and calls in the journal"


def _time(course: Sequence[Seen], source: Source) -> _Cause | None:
    timed = [seen for seen in course if seen.one.duration_s is not None]
    if len(timed) < LEAST:
        return None
    window = timed[-WINDOW:]
    share = time_share(window) or 0.0
    took = sum(seen.one.duration_s or 0.0 for seen in window[1:]) / (len(window) - 1)
    every = (window[-1].at_us - window[0].at_us) / 1e6 / (len(window) - 1)
    why = f"checkpoints take {share_text(share)} of the time: {duration_text(took)}"
    why += f" each, one every {duration_text(every)} on average"
    setting = "checkpoints.incremental_s" if source == "native" else "its save interval"
    do = f"one every {duration_text(took / TIME_AIM)} ({setting}) takes {share_text(TIME_AIM)}"
    return _Cause(_windows(timed, lambda some: (time_share(some) or 0.0) / TIME), why, do)


def _chains(course: Sequence[Seen]) -> _Cause | None:
    """Increments hold many times what they build on: recovery reads all of them."""
    chains: list[list[int]] = []
    for _, one in course:
        size = (one.bytes if one.file_bytes is None else one.file_bytes) or 0
        if one.kind == "full":
            chains.append([size, 0])
        elif chains:
            chains[-1][1] += size
    if len(course) < LEAST or not chains:
        return None
    ratios = [_ratio(base, held) for base, held in chains]
    base, held = max(chains[-2:], key=lambda chain: _ratio(*chain))
    why = f"the increments of one chain hold {bytes_text(held)}, its full one {bytes_text(base)}"
    do = f"a full one sooner: chain_bytes {bytes_text(max(3 * base, LEAST_CHAIN_BYTES))}"
    return _Cause(ratios, why, do)


def _ratio(base: int, held: int) -> float:
    return held / base / CHAIN if base and held >= LEAST_CHAIN_BYTES else 0.0


def _rewriting(course: Sequence[Seen], written: int | None) -> _Cause | None:
    """Each checkpoint of a graph holds all of its state again."""
    if len(course) < LEAST:
        return None
    sizes = [seen.one.bytes or 0 for seen in course]
    total = max((written or 0) - sum(sizes), 0)
    count, state, pressures = 0, 0, list[float]()
    for seen, size in zip(course, sizes, strict=True):
        total, count = total + size, count + 1
        state = size if seen.one.kind == "full" else state
        if count >= LEAST and state:
            pressures.append(min(total / state / AMPLIFIED, total / count / state / REWRITTEN))
    if not pressures:
        return None
    why = f"{bytes_text(total)} written for a state of {bytes_text(state)}, "
    why += f"{share_text(total / count / state)} of it again with each one"
    do = "keep long lists in a DeltaChannel, with a snapshot every 10 updates"
    return _Cause(pressures, why, do)
