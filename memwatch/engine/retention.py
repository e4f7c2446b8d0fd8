"""Retention follows the phase (R10): what a policy says of tiers is asked of the agent (`retain`).

One request at a time, apart from plans, and none in an emergency. Where the policy is silent again
the agent is asked to keep what it keeps by itself.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from memwatch.domain.command import FINAL_STATES
from memwatch.domain.policy import Keep
from memwatch.engine.levels import is_gentle
from memwatch.engine.state import EngineState, RetentionState
from memwatch.engine.turn import Turn

_PATIENCE_S = 60.0


def mind(state: EngineState, turn: Turn) -> EngineState:
    """Ask for the next difference between what the policy says and what was asked for."""
    retention = _answered(state.retention, turn)
    if retention is not state.retention:
        state = replace(state, retention=retention)
    idle = not retention.command_id and turn.facts.mode in ("act", "shadow") and not turn.gone
    if not idle or turn.may("retain") or not is_gentle(state.level()):
        return state
    wanted = _next(retention, _wanted(turn))
    return state if wanted is None else _ask(state, turn, *wanted)


def forget(state: EngineState) -> EngineState:
    """Start over: the agent began anew, or what was asked was a dry run."""
    return replace(state, retention=RetentionState())


def _wanted(turn: Turn) -> dict[str, dict[str, Any]]:
    return {tier: _told(keep) for tier, keep in turn.policy.retention.items()}


def _told(keep: Keep) -> dict[str, Any]:
    """Return what a policy says of a tier, without what it leaves to the agent."""
    plain: dict[str, Any] = msgspec.to_builtins(keep)
    silent: dict[str, Any] = msgspec.to_builtins(Keep())
    return {name: value for name, value in plain.items() if value != silent[name]}


def _next(
    retention: RetentionState, wanted: dict[str, dict[str, Any]]
) -> tuple[str, dict[str, Any] | None] | None:
    for tier in sorted(wanted.keys() | retention.asked.keys()):
        keep = wanted.get(tier)
        refused = tier in retention.refused and retention.refused[tier] == keep
        if keep != retention.asked.get(tier) and not refused:
            return tier, keep
    return None


def _ask(state: EngineState, turn: Turn, tier: str, keep: dict[str, Any] | None) -> EngineState:
    dry = turn.facts.mode == "shadow"
    command_id = f"{turn.now.t_us:x}-retain"
    phase = f"phase {turn.facts.phase}" if turn.facts.phase else "the policy"
    says = "keeps it otherwise" if keep is not None else "says nothing of it"
    why = f"{phase} {says}: {tier} (retention.{tier})"
    turn.say(
        "ask",
        why,
        f"retention.{tier}",
        resource=f"tier:{tier}",
        op="retain",
        args={"tier": tier, "keep": keep},
        command_id=command_id,
        dry=dry,
    )
    before = state.retention
    asked = {name: kept for name, kept in before.asked.items() if name != tier}
    if keep is not None:
        asked[tier] = keep
    after = RetentionState(
        asked=asked,
        command_id="" if dry else command_id,
        tier=tier,
        before=before.asked.get(tier),
        asked_m_us=turn.now.m_us,
        refused={name: kept for name, kept in before.refused.items() if name != tier},
    )
    return replace(state, retention=after)


def _answered(retention: RetentionState, turn: Turn) -> RetentionState:
    """Take in the answer; what was refused is not asked again, what was lost is."""
    if not retention.command_id:
        return retention
    told = turn.facts.commands.get(retention.command_id)
    if told is not None and told.state == "done":
        return replace(retention, command_id="", before=None)
    final = told is not None and told.state in FINAL_STATES
    if not final and turn.after_s(retention.asked_m_us) < _PATIENCE_S:
        return retention
    tier = retention.tier
    asked = {name: kept for name, kept in retention.asked.items() if name != tier}
    if retention.before is not None:
        asked[tier] = retention.before
    refused = dict(retention.refused)
    if told is not None and told.state in ("refused", "failed"):
        refused[tier] = retention.asked.get(tier)
    return replace(retention, command_id="", before=None, asked=asked, refused=refused)
