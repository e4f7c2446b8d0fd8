"""The checkpoints of a store that is not ours, as one look found them. Pure."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from memwatch.analytics.checkpoints.bloat import bloat_of
from memwatch.analytics.checkpoints.course import Seen
from memwatch.analytics.checkpoints.habit import habit_of
from memwatch.analytics.checkpoints.next_size import next_bytes
from memwatch.analytics.checkpoints.prune import prune_of
from memwatch.analytics.checkpoints.stats import stats_of
from memwatch.domain.checkpoints import (
    BROKEN,
    Bloat,
    Chain,
    Checkpoint,
    Checkpoints,
    CheckpointStats,
    Prune,
    StoreLook,
)

NEWEST = 4
"""Checkpoints that a snapshot shows one by one."""
NAMED = 8


class Base(NamedTuple):
    """What a recovery could start from: the newest complete full one, and what follows it."""

    full: Checkpoint | None
    deltas: list[Checkpoint]


class Judged(NamedTuple):
    """Figures and verdicts that hold until the next look."""

    course: list[Seen]
    stats: CheckpointStats
    bloat: Bloat
    prune: Prune


def course_of(look: StoreLook) -> list[Seen]:
    """Return the complete ones in order of their commit, with the wall time of each."""
    return [
        Seen(one.committed_us, one)
        for one in look.checkpoints
        if one.state == "committed" and one.committed_us is not None
    ]


def judge(look: StoreLook) -> Judged:
    """Work out what one look says of all checkpoints together."""
    course = course_of(look)
    odd = len(look.checkpoints) - len(course)
    failed = sum(one.state in BROKEN for one in look.checkpoints)
    # Chains of several threads lie between each other: only one alone has a course of its sizes.
    thread = [seen for seen in course if seen.one.thread == course[-1].one.thread]
    total = look.total_bytes
    stats = stats_of(course, complete=look.count - odd, failed=failed, total_bytes=total)
    own = stats_of(thread, complete=0, failed=0, total_bytes=None)
    stats = replace(stats, growth_bytes=own.growth_bytes)
    if look.source == "langgraph":  # a checkpoint ends a step: what is known is the step's time
        stats = replace(
            stats,
            duration_p50_s=None,
            duration_p95_s=None,
            write_bytes_per_s=None,
            time_share=None,
        )
    written = look.written_bytes if len(thread) == len(course) else None
    bloat = bloat_of(thread, look.source, written)
    by_name = look.source == "directory"
    prune = prune_of(look.checkpoints, look.best, look.named, by_name=by_name)
    return Judged(course, stats, bloat, prune)


def base_of(look: StoreLook) -> Base:
    """Return the newest complete full one and the increments of its thread behind it."""
    complete = [one for one in look.checkpoints if one.state == "committed"]
    full = next((one for one in reversed(complete) if one.kind == "full"), None)
    if full is None:
        return Base(None, [])
    behind = complete[complete.index(full) + 1 :]
    return Base(full, [one for one in behind if one.thread == full.thread])


def store_checkpoints(
    look: StoreLook, judged: Judged, now_us: int, *, over: bool, grace: float
) -> Checkpoints:
    """Say all of a look; nothing is due of a program whose run is `over`.

    `now_us` is wall time, as that is all that files and ids tell. `judged` is of the same look.
    """
    known = look.checkpoints
    course, base = judged.course, base_of(look)
    due = None if over else habit_of(course, now_us, grace)
    looked = habit_of(course, min(look.t_us, now_us), grace)  # later ones nobody has looked for
    newest = course[-1] if course else None
    return Checkpoints(
        source=look.source,
        last=known[-1] if known else None,
        last_recoverable_full=base.full,
        newest=tuple(reversed(known[-NEWEST:])),
        chain=Chain(
            deltas=len(base.deltas),
            bytes=sum(one.bytes or 0 for one in base.deltas),
            limit_bytes=0,
            entries=sum(one.entries or 0 for one in base.deltas),
        ),
        age_s=max(now_us - newest.at_us, 0) / 1e6 if newest else None,
        overdue=not over and looked is not None and looked.overdue,
        due_in_s=due.due_in_s if due else None,
        next_bytes=next_bytes(base.full.bytes if base.full else None, judged.stats.growth_bytes),
        incomplete=tuple(one.id for one in known if one.state == "incomplete")[-NAMED:],
        damaged=tuple(one.id for one in known if one.state == "damaged")[-NAMED:],
        writing=tuple(one.id for one in known if one.state == "begun")[-NAMED:],
        count=look.count,
        stats=judged.stats,
        bloat=judged.bloat,
        prune=judged.prune,
    )
