"""Requests as rows of the interventions: what the agent's own log tells of in no other way.

A purge or checkpoint that was done has a row of its own; one that was refused, failed or lost has
none there and stands here, with pauses, aborts and all else that was asked.
"""

from __future__ import annotations

from collections.abc import Iterable

from memwatch.analytics.efficacy import Effect, measure
from memwatch.domain.command import FINAL_STATES, CommandInfo
from memwatch.domain.intervention import Intervention
from memwatch.runtime.views.ring import Ring

KEPT = 6
_TOLD_BY_LOG = frozenset({"purge", "checkpoint"})
_NOT_OF_AGENT = frozenset({"note", "leak", "compact"})
_FREEING = frozenset({"reclaim", "abort_experiment"})


def request_rows(ring: Ring, commands: Iterable[CommandInfo], now_at_us: int) -> list[Intervention]:
    """Return a row for each of the newest requests that has none by the log, oldest first."""
    shown = [info for info in commands if _is_shown(info)][-KEPT:]
    return [_row(ring, info, now_at_us) for info in shown]


def _is_shown(info: CommandInfo) -> bool:
    if info.dry_run or "." in info.op or info.op in _NOT_OF_AGENT:
        return False
    lost = info.state in FINAL_STATES and info.state != "done"
    return lost or info.op not in _TOLD_BY_LOG


def _row(ring: Ring, info: CommandInfo, now_at_us: int) -> Intervention:
    done_us = info.changed_us if info.state in FINAL_STATES else None
    effect = Effect(None, None, None)
    if info.state == "done" and info.op in _FREEING and done_us is not None:
        began, done = ring.to_axis(info.asked_us), ring.to_axis(done_us)
        series = ring.series_of("memory")
        effect = measure(series, began, done, now_at_us, ring.max_gap_us("memory"))
    freed = info.result.get("freed_bytes")
    return Intervention(
        id=info.id,
        action=info.op.replace("_", "-"),
        origin=info.origin,
        by=info.by,
        why=info.why or info.detail,
        state=info.state,
        asked_at_us=info.asked_us,
        done_at_us=done_us,
        duration_s=max(done_us - info.asked_us, 0) / 1e6 if done_us else None,
        before=effect.before,
        after_10s=effect.after_10s,
        after_10min=effect.after_10min,
        freed_bytes=effect.freed,
        freed_share=effect.freed_share,
        claimed=freed if isinstance(freed, int) else None,
    )
