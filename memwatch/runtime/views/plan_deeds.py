"""Plans of the engine as deeds: steps that run back to back are measured as one.

What a step did to the process cannot be told from what the next one did; what all of them did can.
Beside it, as stages, stands what the agent itself says that each of them freed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memwatch.analytics.efficacy.effect import When
from memwatch.domain.command import CommandInfo
from memwatch.domain.intervention import Intervention, Stage
from memwatch.domain.record import figure, whole
from memwatch.domain.text import inert
from memwatch.domain.wording import op_text
from memwatch.runtime.views.deed import WHOLE, Deed

_FREES = frozenset({"purge", "reclaim", "compact", "retain", "abort_experiment", "end_run"})
_STAGES = 12


def plan_deed(plan: str, done: Sequence[tuple[CommandInfo, When]]) -> Deed | None:
    """Return a plan as one deed, once a step of it did something that frees memory."""
    if not any(step.op in _FREES for step, _ in done):
        return None
    when = When(min(at.began_us for _, at in done), max(at.done_us for _, at in done))
    first = min((step for step, _ in done), key=lambda step: step.asked_us)
    freeing = dict.fromkeys(op_text(step.op) for step, _ in done if step.op in _FREES)
    row = Intervention(
        id=plan,
        action=f"plan {plan.rpartition('-')[2]}",
        how=", ".join(freeing),
        origin=first.origin,
        by=first.by,
        why=first.why,
        plan=plan,
        asked_at_us=first.asked_us,
        done_at_us=max(step.changed_us for step, _ in done),
        duration_s=(when.done_us - when.began_us) / 1e6,
        stages=tuple(stage for step, _ in done for stage in _told(step))[:_STAGES],
    )
    return Deed(kind="plan", row=row, when=when, resources=WHOLE)


def stages_of(result: Mapping[str, Any]) -> tuple[Stage, ...]:
    """Return the parts that the agent measured apart; members of a wrong type are left out."""
    steps = result.get("steps")
    return tuple(
        Stage(
            name=inert(str(step.get("name", "?")), 40),
            freed_bytes=whole(step.get("freed_bytes")),
            duration_s=_seconds(step),
            error=inert(str(step.get("error", "")), 80),
        )
        for step in (steps[:_STAGES] if isinstance(steps, list) else [])
        if isinstance(step, dict)
    )


def _told(step: CommandInfo) -> Iterator[Stage]:
    """Return what the agent says of one step: in parts where it told them apart."""
    parts = stages_of(step.result)
    if parts:
        yield from parts
    elif step.op in _FREES:
        name = inert(step.what, 40) or op_text(step.op)
        yield Stage(
            name=name,
            freed_bytes=whole(step.result.get("freed_bytes")),
            duration_s=_seconds(step.result),
        )


def _seconds(told: Mapping[str, Any]) -> float | None:
    took_us = figure(told.get("duration_us"))
    return None if took_us is None else took_us / 1e6
