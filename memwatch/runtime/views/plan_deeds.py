"""Plans of the engine as deeds: steps that run back to back are measured as one.

What a step did to the process cannot be told from what the next one did; what all of them did can.
"""

from __future__ import annotations

from collections.abc import Sequence

from memwatch.analytics.efficacy.effect import When
from memwatch.domain.command import CommandInfo
from memwatch.domain.intervention import Intervention
from memwatch.runtime.views.deed import WHOLE, Deed

_FREES = frozenset({"purge", "reclaim", "compact", "retain", "abort_experiment", "end_run"})


def plan_deed(plan: str, done: Sequence[tuple[CommandInfo, When]]) -> Deed | None:
    """Return a plan as one deed, once a step of it did something that frees memory."""
    if not any(step.op in _FREES for step, _ in done):
        return None
    when = When(min(at.began_us for _, at in done), max(at.done_us for _, at in done))
    first = min((step for step, _ in done), key=lambda step: step.asked_us)
    row = Intervention(
        id=plan,
        action=f"plan {plan.rpartition('-')[2]}",
        origin=first.origin,
        by=first.by,
        why=first.why,
        plan=plan,
        asked_at_us=first.asked_us,
        done_at_us=max(step.changed_us for step, _ in done),
        duration_s=(when.done_us - when.began_us) / 1e6,
    )
    return Deed(kind="plan", row=row, when=when, resources=WHOLE)
