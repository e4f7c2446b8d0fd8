"""What happened in a checkpoint store between two looks at it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal

from memwatch.domain.checkpoints import BROKEN, Checkpoint, StoreLook

Event = Literal["committed", "incomplete", "deleted"]
"""States of a checkpoint that is not what it should be, and that nobody is writing."""

NOTHING_TOLD: Mapping[tuple[str, str], int] = MappingProxyType({})
MOST_TOLD = 20
"""Of one kind between two looks: a store that writes many a second is told in sums."""


def store_changes(
    before: StoreLook | None,
    after: StoreLook,
    since_us: int,
    told_us: Mapping[tuple[str, str], int] = NOTHING_TOLD,
) -> list[dict[str, Any]]:
    """Return the members of a `store` record for each change, in order of time.

    Without a look before, what was done since `since_us` (wall clock) is a change, unless it was
    told since it was done: `told_us` has when an event of an id was told last.
    """
    known = {} if before is None else {one.id: one for one in before.checkpoints}
    fresh = [
        one
        for one in after.checkpoints
        if _event(one) != _event(known.get(one.id))
        and (before is not None or since_us <= changed_us(one) > _told_us(one, told_us))
    ]
    told: list[dict[str, Any]] = []
    for event in ("committed", "incomplete"):
        told += _told(event, [one for one in fresh if _event(one) == event])
    return told + _told("deleted", list(_deleted(before, after)))


def _told_us(one: Checkpoint, told_us: Mapping[tuple[str, str], int]) -> int:
    return told_us.get((_event(one) or "", one.id), -1)


def changed_us(checkpoint: Checkpoint) -> int:
    """Return the wall clock of the last that is known to have happened to a checkpoint."""
    return max(checkpoint.committed_us or 0, checkpoint.began_us)


def _event(checkpoint: Checkpoint | None) -> Event | None:
    if checkpoint is None:
        return None
    if checkpoint.state == "committed":
        return "committed"
    return "incomplete" if checkpoint.state in BROKEN else None


def _deleted(before: StoreLook | None, after: StoreLook) -> Iterator[Checkpoint]:
    """Give those that are gone; nothing is said where a look did not see all that it should.

    A look tells the newest few: what lies before them is out of sight, not deleted.
    """
    if before is None or after.why:
        return
    there = {one.id for one in after.checkpoints}
    in_sight = after.count <= len(after.checkpoints)
    first_us = min(map(changed_us, after.checkpoints), default=0)
    for one in before.checkpoints:
        if one.id not in there and (in_sight or changed_us(one) > first_us):
            yield one


def _told(event: Event, those: list[Checkpoint]) -> list[dict[str, Any]]:
    """Tell the newest one by one, and those before them as one."""
    those.sort(key=changed_us)
    split = max(len(those) - MOST_TOLD, 0)
    told = [_members(event, one) for one in those[split:]]
    if split:
        summed = {
            "event": event,
            "id": f"{split} more",
            "kind": those[0].kind,
            "bytes": sum(one.bytes or 0 for one in those[:split]),
            "count": split,
        }
        told.insert(0, summed)
    return told


def _members(event: Event, one: Checkpoint) -> dict[str, Any]:
    took_s = one.duration_s if event == "committed" else None
    members = {
        "event": event,
        "id": one.id,
        "kind": one.kind,
        "bytes": one.bytes,
        "duration_us": None if took_s is None else round(took_s * 1e6),
        "step": one.step,
        "thread": one.thread or None,
    }
    return {name: value for name, value in members.items() if value is not None}
