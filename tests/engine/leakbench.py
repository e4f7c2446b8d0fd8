"""Recorded memory traces of the corpus `leakbench`, played to the engine: how often levels flap.

Counted as the corpus' own scorer does: a flap is a change back to a level that was left less than
ten minutes ago; `hard` counts as emergency, which is all that the scorer knows.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from memwatch.analytics.growth import Growth, time_to_limit
from memwatch.config.policy import Policy
from memwatch.domain.level import EngineMode, Level
from memwatch.engine.facts import Facts, Now, ResourceFacts
from memwatch.engine.state import EngineState
from memwatch.engine.tick import tick

CORPUS = Path(__file__).parents[3] / "shared" / "leakbench"
SETS = ("dev", "public")
MIB = float(1 << 20)
WINDOWS_S = (60.0, 600.0, 86400.0)
_FLAP_S = 600.0
_T0_US, _M0_US = 1_800_000_000_000_000, 1_000_000_000


class Usage(NamedTuple):
    """One sample of a trace."""

    at_s: float
    used: float
    limit: float
    pid: str


class Trace(NamedTuple):
    """A recorded run."""

    name: str
    period_s: float
    samples: list[Usage]

    @property
    def hours(self) -> float:
        """How long it was."""
        return self.samples[-1].at_s / 3600


class Changes(NamedTuple):
    """Changes of level on all traces, per 24 h."""

    levels: float
    flaps: float


def traces(kinds: tuple[str, ...] = SETS) -> Iterator[Trace]:
    """Read the corpus."""
    for kind in kinds:
        for label in json.loads((CORPUS / kind / "labels.json").read_text()):
            name = label["trace"]
            with gzip.open(CORPUS / kind / f"{name}.csv.gz", "rt") as text:
                rows = list(csv.DictReader(text))
            yield Trace(name, float(label["dt_s"]), [_usage(row) for row in rows])


def _usage(row: dict[str, Any]) -> Usage:
    """Return what counts against the limit: no pages of files."""
    rss, shared, swap, child = (
        float(row[name]) for name in ("rss_mb", "shared_mb", "swap_mb", "child_rss_mb")
    )
    used = max(0.0, rss - shared) + child + swap
    return Usage(float(row["t_s"]), used * MIB, float(row["limit_mb"]) * MIB, row["pid"])


def levels_of(
    trace: Trace, policy: Policy, mode: EngineMode = "observe", *, grows: bool = True
) -> list[tuple[float, Level]]:
    """Return the changes of level that the engine sees in a trace; `grows`: with growth told."""
    state, found = EngineState(), []
    growth = Growth(WINDOWS_S)
    began = trace.samples[0]
    for sample in trace.samples:
        now = Now(_T0_US + round(sample.at_s * 1e6), _M0_US + round(sample.at_s * 1e6))
        if sample.pid != began.pid:
            began = sample
        if grows:
            growth.add(now.m_us, sample.used)
        looks_ahead = sample.at_s - began.at_s >= WINDOWS_S[0]  # not over the way up of a start
        facts = Facts(
            mode=mode,
            allow=frozenset(),
            ops=frozenset(),
            start_id=sample.pid,
            resources=(_facts(sample, growth, now, looks_ahead=looks_ahead),),
            sample_period_s=trace.period_s,
        )
        before = state.level()
        state, _ = tick(state, facts, policy, now)
        if state.level() != before:
            found.append((sample.at_s, state.level()))
    return found


def _facts(sample: Usage, growth: Growth, now: Now, *, looks_ahead: bool) -> ResourceFacts:
    slopes = growth.slopes()
    arrival = None
    if looks_ahead:
        arrival = time_to_limit(sample.used, sample.limit, slopes, WINDOWS_S)
    recent, longer, _ = (slope.per_min if slope else None for slope in slopes)
    return ResourceFacts(
        name="memory",
        used=sample.used,
        limit=sample.limit,
        measured_m_us=now.m_us,
        growth_per_min=longer,
        growth_recent_per_min=recent,
        time_to_limit_s=arrival,
    )


def count(
    play: Callable[[Trace], list[tuple[float, Level]]], kinds: tuple[str, ...] = SETS
) -> Changes:
    """Count changes and flaps on all traces."""
    levels, flaps, hours = 0, 0, 0.0
    for trace in traces(kinds):
        more_levels, more_flaps = _count(play(trace))
        levels, flaps, hours = levels + more_levels, flaps + more_flaps, hours + trace.hours
    return Changes(levels / hours * 24, flaps / hours * 24)


def _count(changes: list[tuple[float, Level]]) -> tuple[int, int]:
    current: Level = "normal"
    levels = flaps = 0
    left: dict[Level, float] = {}
    for at_s, changed in changes:
        level: Level = "emergency" if changed == "hard" else changed
        if level == current:
            continue
        levels += 1
        flaps += level in left and at_s - left[level] < _FLAP_S
        left[current] = at_s
        current = level
    return levels, flaps
