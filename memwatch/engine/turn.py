"""One tick at work: what it is told, and what it decided so far."""

from __future__ import annotations

from math import isfinite
from typing import Any

from memwatch.config.policy import Policy
from memwatch.domain.level import ACTING, PLANNING, Level
from memwatch.domain.plan import Plan
from memwatch.domain.sample import HELD_S
from memwatch.domain.snapshot import PAST
from memwatch.domain.text import inert
from memwatch.engine.decision import Decision, Kind
from memwatch.engine.facts import Facts, Now, ResourceFacts

_STALE_PERIODS = 2
_LEAST_STALE_S = 2.0
_PROBED = ("memory", "unaccounted")
"""Measured each period; the others when the agent tells, at least each minute."""
_WHY = 300
"""Longest reason."""


class Turn:
    """Facts, policy and time of one tick, and its decisions in order."""

    def __init__(self, facts: Facts, policy: Policy, now: Now) -> None:
        self.facts = facts
        self.policy = policy
        self.now = now
        self.resources = {one.name: one for one in facts.resources}
        self.memory = self.resources.get("memory")
        self.decisions: list[Decision] = []

    def say(self, kind: Kind, why: str, rule: str, **more: Any) -> None:
        """Note a decision; `more` are further members of it. Names in it come from outside."""
        told = Decision(kind=kind, why=inert(why, _WHY), rule=inert(rule, _WHY), **more)
        self.decisions.append(told)

    def tell(self, plan: Plan, why: str) -> None:
        """Note that a plan was made, moved on or ended."""
        self.say(
            "plan",
            why,
            plan.rule,
            plan=plan,
            level=plan.level,
            resource=plan.resource,
            dry=plan.dry,
        )

    @property
    def plans(self) -> bool:
        """Whether plans are made at all."""
        return self.facts.mode in PLANNING

    @property
    def acts(self) -> bool:
        """Whether what is planned may be sent."""
        return self.facts.mode in ACTING

    @property
    def gone(self) -> bool:
        """Whether the agent's process is no more."""
        return self.facts.run_state in PAST

    def after_s(self, m_us: int) -> float:
        """Seconds since an instant of the boot clock; never negative."""
        return max(self.now.m_us - m_us, 0) / 1e6

    def fresh(self, resource: ResourceFacts | None) -> bool:
        """Whether a resource was measured recently enough to decide by."""
        if resource is None or known(resource.used) is None:
            return False
        age_s = (self.now.m_us - resource.measured_m_us) / 1e6
        return abs(age_s) <= self.stale_s(resource.name)  # nor one from the future

    def stale_s(self, name: str) -> float:
        """Seconds after which a measurement decides nothing any more."""
        if name in _PROBED:
            return max(_STALE_PERIODS * self.facts.sample_period_s, _LEAST_STALE_S)
        return HELD_S

    def usage(self, name: str) -> float | None:
        """Usage of a resource if it is fresh."""
        resource = self.resources.get(name)
        return known(resource.used) if resource is not None and self.fresh(resource) else None

    def may(self, op: str) -> str:
        """Return why an operation may not be used; empty when it may."""
        if op not in self.facts.ops:
            return "not offered by this agent"
        return "" if op in self.facts.allow else "not allowed"


def known(figure: float | None) -> float | None:
    """Return a figure that can be compared: neither missing nor NaN, infinite or negative."""
    if figure is None or not isfinite(figure) or figure < 0:
        return None
    return figure


def share_of(resource: ResourceFacts) -> float | None:
    """Return usage as a share of the limit; 0 where nothing limits it, None where it is unknown.

    >>> [share_of(ResourceFacts(name="memory", used=used, limit=limit))
    ...  for used, limit in ((3, 4), (3, None), (None, 4), (float("nan"), 4), (3, 0))]
    [0.75, 0.0, None, None, 0.0]
    """
    used, limit = known(resource.used), known(resource.limit)
    if used is None:
        return None
    return used / limit if limit else 0.0


def slot(resource: str, level: Level) -> str:
    """Return the key under which cool-downs and breakers of a level are kept.

    >>> slot("memory", "warn"), slot("tier:recent", "warn")
    ('warn', 'tier:recent warn')
    """
    return level if resource == "memory" else f"{resource} {level}"
