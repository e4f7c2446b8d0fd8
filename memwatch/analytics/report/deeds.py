"""Plans and interventions in rows: what helped, what did not, what nobody measured (R13)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median

from msgspec.structs import replace

from memwatch.analytics.advice import steps_text
from memwatch.analytics.deeds import effect_on, kinds_of
from memwatch.analytics.report.model import DeedRow, PlanRow
from memwatch.config.policy import LevelRule, Policy
from memwatch.domain.intervention import MEASURED, Advice, Intervention
from memwatch.domain.record import Record, figure
from memwatch.domain.text import inert

_SAVING = frozenset({"checkpoint", "pause", "read_only"})
_ENOUGH = 3
"""Plans that must have failed before one speaks of it."""
_BEGUN = frozenset({"accepted", "running", "done", "failed", "unknown", "asked"})


def plan_rows(plans: Iterable[Record]) -> tuple[PlanRow, ...]:
    """Return the newest words of plans by rule, most plans first; without those never begun."""
    rows: dict[tuple[str, str], PlanRow] = {}
    for plan in plans:
        dry = plan.members.get("dry") is True
        if plan.text("state") not in _BEGUN and not dry:
            continue
        key = inert(plan.text("rule"), 60), inert(plan.text("level"), 12)
        row = rows.get(key) or PlanRow(rule=key[0], level=key[1])
        rows[key] = _with_plan(row, plan, dry=dry)
    return tuple(sorted(rows.values(), key=lambda row: -row.plans))


def _with_plan(row: PlanRow, plan: Record, *, dry: bool) -> PlanRow:
    effect = plan.text("effect")
    before, after = (figure(plan.members.get(name)) for name in ("before_bytes", "after_bytes"))
    freed = row.freed_bytes
    if effect in MEASURED and before is not None and after is not None:
        freed = (freed or 0.0) + before - after
    steps = plan.members.get("steps")
    known = [one for one in steps if isinstance(one, dict)] if isinstance(steps, list) else []
    saves = bool(known) and all(one.get("op") in _SAVING for one in known)
    measured = effect in MEASURED
    return replace(
        row,
        plans=row.plans + 1,
        dry=row.dry + dry,
        effective=row.effective + (effect == "effective"),
        without_effect=row.without_effect + (effect == "none"),
        worse=row.worse + (effect == "worse"),
        not_measured=row.not_measured + (not measured and not saves),
        only_saved=row.only_saved + (not measured and saves),
        freed_bytes=freed,
        failed_steps=row.failed_steps
        + sum(one.get("state") in ("failed", "refused") for one in known),
    )


def plan_advice(rows: Iterable[PlanRow], policy: Policy) -> tuple[Advice, ...]:
    """Name levels whose first steps never helped while what is tried after them did."""
    known = {row.rule: row for row in rows}
    found = []
    for level in ("warn", "intervene"):
        first, then = known.get(f"levels.{level}"), known.get(f"levels.{level}.escalate")
        rule: LevelRule = getattr(policy.levels, level)
        if first is None or then is None or first.effective or not rule.escalate:
            continue
        vain = first.without_effect + first.worse
        tried = then.effective + then.without_effect + then.worse
        if vain < _ENOUGH or 2 * then.effective <= tried:
            continue
        steps = [one for one in rule.steps if one.op not in {it.op for it in rule.escalate}]
        written = steps_text((*steps, *rule.escalate))
        text = (
            f"plans of levels.{level} helped in none of {vain} times, their escalation in "
            f"{then.effective} of {tried}: let the level begin with it"
        )
        found.append(Advice(text=text, kind="policy", set=f"levels.{level}.steps={written}"))
    return tuple(found)


def deed_rows(deeds: Sequence[Intervention]) -> tuple[DeedRow, ...]:
    """Return interventions by kind and by whom, most bytes really freed first; tokens are none."""
    rows = [
        _deed_row(kind.text, [one for one in of if one.origin == by])
        for kind, of in kinds_of(deeds).items()
        for by in sorted({one.origin for one in of})
    ]
    return tuple(sorted(rows, key=lambda row: (-(row.freed_bytes or 0.0), -row.times)))


def _deed_row(what: str, of: Sequence[Intervention]) -> DeedRow:
    measured = [one for one in of if one.verdict in MEASURED]
    memory = _memory(measured, always=of[0].is_checkpoint)
    if of[0].is_checkpoint:  # it is not there to free anything
        measured = []
    verdicts = Counter(one.verdict for one in measured)
    freed = [
        one.freed_bytes for one in measured if one.freed_bytes is not None and one.unit == "bytes"
    ]
    shares = [one.freed_share for one in measured if one.freed_share is not None]
    back = [one.rebound_s for one in measured if one.rebound_s is not None]
    took = [one.duration_s for one in of if one.duration_s is not None]
    claimed = [one.claimed for one in of if one.claimed is not None]
    around = [
        (it.before_s, it.after_s)
        for one in of
        if (it := one.experiments) is not None and it.before_s is not None
        if it.after_s is not None
    ]
    resources = {one.effects[0].resource for one in of if one.effects}
    return DeedRow(
        what=inert(what, 80),
        by=inert(of[0].origin, 20),
        times=sum(one.count for one in of),
        effective=verdicts["effective"],
        without_effect=verdicts["none"],
        worse=verdicts["worse"],
        not_measured=0 if of[0].is_checkpoint else len(of) - len(measured),
        resource=inert(resources.pop(), 40) if len(resources) == 1 else "",
        freed_bytes=sum(freed) if freed else None,
        freed_median=median(freed) if freed else None,
        freed_share=median(shares) if shares else None,
        memory_median=memory,
        took_s=median(took) if took else None,
        pause_s=sum(one.pause_s or 0.0 for one in of),
        back_s=median(back) if back else None,
        came_back=len(back),
        held=sum(one.held_s is not None and one.rebound_s is None for one in measured),
        claimed_bytes=sum(claimed) if claimed else None,
        differs=sum(one.differs for one in of),
        experiments_before_s=median(before for before, _ in around) if around else None,
        experiments_after_s=median(after for _, after in around) if around else None,
    )


def _memory(of: Sequence[Intervention], *, always: bool) -> float | None:
    """Return what they freed of the tree's memory; unless `always`, where they are about others."""
    freed = [
        effect.freed
        for one in of
        if one.effects and (always or one.effects[0].resource != "memory")
        if (effect := effect_on(one, "memory")) is not None and effect.freed is not None
    ]
    return median(freed) if freed else None
