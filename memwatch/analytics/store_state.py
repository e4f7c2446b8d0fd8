"""What a checkpoint store tells of the program that writes it: a guess, and said to be one.

Such a program says neither that it begins nor that it ends. A living writer is certain; all else is
told by how long nothing was written, against how often it usually is. Pure.
"""

from __future__ import annotations

from typing import NamedTuple

from memwatch.analytics.checkpoints.habit import habit_of
from memwatch.analytics.checkpoints.store import course_of
from memwatch.analytics.store_changes import changed_us
from memwatch.domain.checkpoints import BROKEN, Checkpoint, StoreLook
from memwatch.domain.snapshot import RunState
from memwatch.domain.units import duration_text

_LEAST_PATIENCE_S = 120.0
_STRANGE_PATIENCE_S = 900.0
"""Before it has a habit."""
_SILENT_TIMES = 10
_SILENT_S = 3600.0
"""After so many times its patience, an hour at least, it is taken for ended."""


class Inferred(NamedTuple):
    """State of the run, why, and when it ended if it did (wall clock)."""

    state: RunState
    why: str = ""
    ended_us: int | None = None


def began_us(look: StoreLook) -> int:
    """Return the wall clock of the first that the store tells; 0 while it tells nothing."""
    times = (one.began_us or one.committed_us or 0 for one in look.checkpoints)
    return min(filter(None, times), default=0)


def inferred_state(
    look: StoreLook, writer_lives: bool | None, now_us: int, grace: float
) -> Inferred:
    """Return what the run is doing, at a wall clock; `grace` is a multiple of its habit.

    `writer_lives` is None while no process is known that writes there.
    """
    newest = max(look.checkpoints, key=changed_us, default=None)
    if look.gone:
        return Inferred("ended", "inferred: the store was removed", look.t_us)
    if writer_lives or any(one.state == "begun" for one in look.checkpoints):
        return Inferred("running")
    last_us = changed_us(newest) if newest else look.t_us
    quiet_s = max(now_us - last_us, 0) / 1e6
    quiet = f"nothing was written for {duration_text(quiet_s)}"
    if writer_lives is False:
        return _ended(newest, last_us, "the process that wrote it is gone")
    habit = habit_of(course_of(look), now_us, grace)
    patience_s = max(habit.patience_s, _LEAST_PATIENCE_S) if habit else _STRANGE_PATIENCE_S
    if quiet_s <= patience_s:
        return Inferred("running")
    if quiet_s <= max(_SILENT_S, _SILENT_TIMES * patience_s):
        return Inferred("silent", f"inferred: {quiet}, and no process is known that writes it")
    return _ended(newest, last_us, quiet)


def _ended(newest: Checkpoint | None, last_us: int, why: str) -> Inferred:
    if newest is not None and newest.state in BROKEN:
        return Inferred("crashed", f"inferred: {why}, its newest is half-written", last_us)
    return Inferred("ended", f"inferred: {why}", last_us)
