"""What a policy says where no file does: it follows what was said, and what the agent can."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from msgspec import structs

from memwatch.config.policy import Action, LevelRule, Levels, Policy
from memwatch.config.policy_check import Said

LEADS: Final = {
    "warn": "thresholds.warn",
    "intervene": "thresholds.intervene",
    "emergency": "thresholds.warn",
}
"""Thresholds that exit shares follow where they are not said."""


def settled(
    policy: Policy, seen: Said, ops: Collection[str] | None, missing: dict[str, str]
) -> Policy:
    """Return a policy without what nobody said and what cannot be.

    That is operations that the agent lacks, and what would be tried after no steps at all.
    """

    def kept(named: Iterable[str], key: str) -> set[str]:
        lacking = set() if ops is None or seen.said(key) else set(named).difference(ops)
        missing.update({op: f"this agent has no {op}" for op in sorted(lacking)})
        return set(named) - lacking

    def kept_steps(key: str, steps: tuple[Action, ...]) -> tuple[Action, ...]:
        left = kept([step.op for step in steps], key)
        return tuple(step for step in steps if step.op in left)

    rules = {}
    for level in Levels.__struct_fields__:
        rule: LevelRule = getattr(policy.levels, level)
        key = f"levels.{level}.escalate"
        steps = kept_steps(f"levels.{level}.steps", rule.steps)
        escalate = kept_steps(key, rule.escalate) if steps or seen.said(key) else ()
        rules[level] = structs.replace(rule, steps=steps, escalate=escalate)
    early = kept_steps("outlook.steps", policy.outlook.steps)
    relief = kept_steps("pause.relief", policy.pause.relief)
    left = kept(policy.allow, "allow")
    allow = tuple(op for op in policy.allow if op in left)
    leave = structs.replace(policy.exit, **followed(policy, seen))
    return structs.replace(
        policy,
        levels=Levels(**rules),
        outlook=structs.replace(policy.outlook, steps=early),
        pause=structs.replace(policy.pause, relief=relief),
        allow=allow,
        exit=leave,
    )


def followed(policy: Policy, seen: Said) -> dict[str, float]:
    """Return exit shares that nobody said: they go where the thresholds that were said go.

    An emergency is over under warn (R8), the others end as far below as built in.
    """
    at, usual = policy.thresholds, Policy()
    gap = usual.thresholds.warn - usual.exit.warn
    ends = {
        "warn": max(round(at.warn - gap, 6), at.warn / 2),
        "intervene": max(round(at.intervene - gap, 6), at.intervene / 2),
        "emergency": at.warn,
    }
    return {
        level: end
        for level, end in ends.items()
        if not seen.said(f"exit.{level}") and seen.said(LEADS[level])
    }
