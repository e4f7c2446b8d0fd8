"""Decisions in one line: value, limit, window, rule, and what would have changed it."""

from __future__ import annotations

from memwatch.analytics.budget import Crossing, over_text, span_texts
from memwatch.domain.level import Level, rank
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text, duration_text
from memwatch.engine.facts import ResourceFacts
from memwatch.engine.hysteresis import Move
from memwatch.engine.levels import Bounds

_NAME_WIDTH = 60


def percent_text(share: float) -> str:
    """Return a measured share with a tenth of a percent: thresholds are compared by it.

    >>> percent_text(0.7624)
    '76.2%'
    """
    return f"{share * 100:.1f}%"


def points_text(share: float) -> str:
    """Return a threshold as it was written.

    >>> points_text(0.6), points_text(0.625)
    ('60%', '62.5%')
    """
    return f"{round(share * 100, 2):g}%"


def rate_text(per_min: float) -> str:
    """Return growth in bytes a minute.

    >>> rate_text(50e6)
    '50M/min'
    """
    return f"{bytes_text(per_min)}/min"


def usage_text(resource: ResourceFacts, share: float) -> str:
    """Return what was measured.

    >>> usage_text(ResourceFacts(name="memory", used=6.1e9, limit=8e9, limit_name="policy"), 0.7625)
    'memory 76.2% of 8.0G (policy)'
    """
    name = inert(resource.name, _NAME_WIDTH)
    if not resource.limit:
        return f"{name} {bytes_text(resource.used)}, nothing limits it"
    whose = f" ({inert(resource.limit_name, _NAME_WIDTH)})" if resource.limit_name else ""
    return f"{name} {percent_text(share)} of {bytes_text(resource.limit)}{whose}"


def rule_of(resource: str, level: Level) -> str:
    """Return the path of the rule that gives a level.

    >>> rule_of("memory", "warn"), rule_of("memory", "hard"), rule_of("disk", "warn")
    ('soft', 'thresholds.hard', 'resources.disk.warn')
    """
    if resource != "memory":
        return f"resources.{inert(resource, _NAME_WIDTH)}.{level}"
    return "soft" if level == "warn" else f"thresholds.{level}"


def entered(resource: ResourceFacts, share: float, move: Move, bounds: Bounds) -> str:
    """Say why a level was entered."""
    place = rank(move.after) - 1
    at, end = bounds.enter[place], bounds.leave[place]
    rule = rule_of(resource.name, move.after)
    left = f"; under {points_text(end)} it would not" if end is not None else ""
    if at is None or share < at:
        return f"{usage_text(resource, share)}, and its group stalls (pressure){left}"
    return f"{usage_text(resource, share)}, over {points_text(at)} {move.how} ({rule}){left}"


def left(resource: ResourceFacts, share: float, move: Move, bounds: Bounds) -> str:
    """Say why a level was left."""
    end = bounds.leave[rank(move.before) - 1]
    under = f", under {points_text(end)}" if end is not None and resource.limit else ""
    return f"{usage_text(resource, share)}{under} {move.how} (exit.{move.before}): {move.after}"


def pressing(
    resource: ResourceFacts, share: float, level: Level, bounds: Bounds, over_s: float
) -> str:
    """Say why a level that lasts still calls for a plan; `over_s`: for how long it is reached."""
    place = rank(level) - 1
    at, end = bounds.enter[place], bounds.leave[place]
    over = ", and its group stalls (pressure)"
    if at is not None and share >= at:
        over = f", over {points_text(at)}" + (
            f" for {duration_text(over_s)}" if over_s >= 1 else ""
        )
    left_at = f"; under {points_text(end)} it would not" if end is not None else ""
    return f"{usage_text(resource, share)}{over} ({rule_of(resource.name, level)}){left_at}"


def soon(resource: ResourceFacts, arrival_s: float, needed_s: float, basis: str) -> str:
    """Say why a checkpoint is taken before it is too late."""
    return (
        f"{inert(resource.name, _NAME_WIDTH)} reaches its limit in {duration_text(arrival_s)}, "
        f"a checkpoint wants {duration_text(needed_s)} ({basis}); slower growth would not"
    )


def tight(resource: ResourceFacts, room: float, needed: float, basis: str) -> str:
    """Say why a checkpoint is taken while it still fits."""
    return (
        f"{inert(resource.name, _NAME_WIDTH)} has {bytes_text(room)} left and grows, a checkpoint "
        f"wants {bytes_text(needed)} ({basis}); with more room it would not"
    )


def over_budget(crossing: Crossing) -> str:
    """Say why a checkpoint is taken for what a crash would cost, or why none helps.

    >>> over_budget(Crossing("budget.recover_s", 74, 60, "full", 21))
    'recovery 74s is over your 60s (budget.recover_s), 21s after a full checkpoint; under 60s it \
would not'
    >>> over_budget(Crossing("budget.recover_s", 74, 60, None, 72))
    'recovery 74s is over your 60s (budget.recover_s), 72s after any checkpoint'
    """
    over = f"{over_text(crossing)} ({crossing.rule})"
    if crossing.rule == "budget.work_s":
        return f"{over}; with less it would not"
    after = ""
    if crossing.after_s is not None:
        which = f"a {crossing.kind}" if crossing.kind else "any"
        article = which.replace("a incremental", "an incremental")
        after = f", {span_texts(crossing.after_s, crossing.limit_s)[0]} after {article} checkpoint"
    _, limit = span_texts(crossing.figure_s, crossing.limit_s)
    return f"{over}{after}" + (f"; under {limit} it would not" if crossing.kind else "")
