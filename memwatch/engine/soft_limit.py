"""The soft limit: an advisory one that carries the actions of warn and moves with growth (R9).

With an empty forecast and no share of growth it is R9 to the letter: growth over 50 MB/min over
the last 10 min lowers it by 10 points, stable memory lets it rise back. Kept as points off its
start, so that a phase with another start begins from its own. Source: R9; leaks, 7.2.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from memwatch.config.policy import Policy, SoftLimit
from memwatch.domain.units import duration_text
from memwatch.engine.explain import points_text, rate_text
from memwatch.engine.facts import ResourceFacts


class SoftState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where it stands. Times are of the boot clock."""

    points: float = 0.0
    """Off its start; below 0 while it is lowered."""
    stepped_m_us: int | None = None
    """When it moved last."""
    lowered_by_per_min: float | None = None
    """Growth that lowered it last."""
    calm_m_us: int | None = None
    """Since when growth is small beside that."""
    near_m_us: dict[str, int] = {}
    """Since when the limit is nearer than each time of the forecast: `900` -> boot clock."""
    why: str = ""


class Shift(NamedTuple):
    """A step of it."""

    before: float
    after: float
    why: str
    rule: str


class _Cause(NamedTuple):
    points: float
    text: str
    rule: str


def share(policy: Policy, state: SoftState) -> float:
    """Return the soft limit in force, as a share of the limit."""
    start = start_of(policy)
    low, high = _range(policy, start)
    return round(min(max(start + state.points, low), high), 6)


def start_of(policy: Policy) -> float:
    """Return the share at which it starts."""
    return policy.thresholds.warn if policy.soft.start is None else policy.soft.start


def step(
    state: SoftState, memory: ResourceFacts, policy: Policy, m_us: int
) -> tuple[SoftState, Shift | None]:
    """Move it by what memory does; at most one step in `step_s`."""
    state = _noting(state, memory, policy, m_us)
    soft = policy.soft
    rested = state.stepped_m_us is None or m_us - state.stepped_m_us >= soft.step_s * 1e6
    if not rested:
        return state, None
    causes = (_by_growth(state, memory, soft), _by_forecast(state, memory, policy, m_us))
    lowest = min((cause for cause in causes if cause), key=lambda c: c.points, default=None)
    if lowest is not None and lowest.points < state.points:
        return _shift(state, lowest, policy, m_us, _pace(memory, soft))
    if lowest is None and _is_calm(state, soft, m_us):
        return _shift(state, _risen(state, soft), policy, m_us, None)
    return state, None


def _range(policy: Policy, start: float) -> tuple[float, float]:
    """Return how far it moves: over its floor and, however stable memory is, under intervene."""
    highest = max(min(start + policy.soft.max_above, policy.thresholds.intervene), start)
    return min(policy.soft.floor, start), highest


def _limit_per_min(memory: ResourceFacts, soft: SoftLimit) -> float:
    if soft.growth_share_per_min is None or not memory.limit:
        return soft.growth_bytes_per_min
    return min(soft.growth_bytes_per_min, soft.growth_share_per_min * memory.limit)


def _by_growth(state: SoftState, memory: ResourceFacts, soft: SoftLimit) -> _Cause | None:
    growth, most = memory.growth_per_min, _limit_per_min(memory, soft)
    if growth is None or not growth > most:
        return None
    share_rule = most < soft.growth_bytes_per_min
    rule = "soft.growth_share_per_min" if share_rule else "soft.growth_bytes_per_min"
    window = duration_text(soft.window_s)
    text = f"growth {rate_text(growth)} over {window} is above {rate_text(most)}"
    return _Cause(state.points - soft.points, text, rule)


def _by_forecast(
    state: SoftState, memory: ResourceFacts, policy: Policy, m_us: int
) -> _Cause | None:
    """Return the step of the nearest time that the forecast stood under for as long as warn must.

    One that comes and goes with each filling of a cache moves nothing.
    """
    if memory.time_to_limit_s is None:
        return None
    stands_since = m_us - round(policy.enter.warn_s * 1e6)
    stood = [
        one
        for one in policy.soft.forecast
        if state.near_m_us.get(f"{one.under_s:g}", m_us + 1) <= stands_since
    ]
    if not stood:
        return None
    nearest = max(stood, key=lambda one: one.points)
    arrival = duration_text(memory.time_to_limit_s[0])
    text = f"limit in {arrival}, under {duration_text(nearest.under_s)}"
    return _Cause(-nearest.points, text, "soft.forecast")


def _pace(memory: ResourceFacts, soft: SoftLimit) -> float:
    """Growth to compare with later: what lowered it, whichever window saw it."""
    seen = (memory.growth_per_min, memory.growth_recent_per_min)
    rises = (growth for growth in seen if growth is not None and 0 < growth < inf)
    return max(rises, default=_limit_per_min(memory, soft))


def _calm_per_min(state: SoftState, memory: ResourceFacts, soft: SoftLimit) -> float:
    lowered_by = state.lowered_by_per_min
    return soft.relax_share * (_limit_per_min(memory, soft) if lowered_by is None else lowered_by)


def _noting(state: SoftState, memory: ResourceFacts, policy: Policy, m_us: int) -> SoftState:
    """Note since when it is calm, and since when the limit is near; unknown growth is not calm."""
    growth = memory.growth_per_min
    calm = growth is not None and growth < _calm_per_min(state, memory, policy.soft)
    since = (m_us if state.calm_m_us is None else state.calm_m_us) if calm else None
    near = _near(state, memory, policy.soft, m_us)
    if since == state.calm_m_us and near == state.near_m_us:
        return state
    return replace(state, calm_m_us=since, near_m_us=near)


def _near(state: SoftState, memory: ResourceFacts, soft: SoftLimit, m_us: int) -> dict[str, int]:
    if memory.time_to_limit_s is None:
        return {}
    names = (f"{one.under_s:g}" for one in soft.forecast if memory.time_to_limit_s[0] < one.under_s)
    return {name: state.near_m_us.get(name, m_us) for name in names}


def _is_calm(state: SoftState, soft: SoftLimit, m_us: int) -> bool:
    since = state.calm_m_us
    return since is not None and m_us - since >= soft.relax_windows * soft.window_s * 1e6


def _risen(state: SoftState, soft: SoftLimit) -> _Cause:
    higher = state.points + soft.points
    crosses = state.points < 0 < higher  # its start is a place to stop at
    text = f"growth small for {duration_text(soft.relax_windows * soft.window_s)}"
    return _Cause(0.0 if crosses else higher, text, "soft.relax_share")


def _shift(
    state: SoftState, cause: _Cause, policy: Policy, m_us: int, pace: float | None
) -> tuple[SoftState, Shift | None]:
    """Make the step, as far as floor and top let it."""
    before, start = share(policy, state), start_of(policy)
    low, high = _range(policy, start)
    after = round(min(max(start + cause.points, low), high), 6)
    if after == before:
        return state, None
    lowered_by = pace if pace is not None else state.lowered_by_per_min
    back = ""
    if after < start and lowered_by is not None:
        calm = rate_text(policy.soft.relax_share * lowered_by)
        span = duration_text(policy.soft.relax_windows * policy.soft.window_s)
        back = f"; rises once growth stays under {calm} for {span}"
    why = f"{cause.text}: soft limit {points_text(before)} to {points_text(after)}{back}"
    moved = replace(
        state,
        points=round(after - start, 6),
        stepped_m_us=m_us,
        lowered_by_per_min=None if after >= start else lowered_by,
        calm_m_us=state.calm_m_us if pace is None else None,
        why=f"{why} ({cause.rule})",
    )
    return moved, Shift(before, after, moved.why, cause.rule)
