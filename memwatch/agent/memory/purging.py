"""Carries out a purge of one tier, victim by victim, and logs what it did (R2, R3, R4).

Nothing irreplaceable is lost: what cannot be persisted stays, what cannot be logged is not
deleted, and the purge goes on with the rest. A disk that is full is a bad reason to keep in memory
what can be made again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import Struct

from memwatch.agent.context import Context
from memwatch.agent.memory.entry import Cause, How
from memwatch.agent.memory.logged import LoggedTable
from memwatch.agent.memory.purge import Victim
from memwatch.domain.errors import LogError, ReadOnlyError, UnkeepableError


class Purged(Struct, kw_only=True):
    """What a purge did; entries that changed meanwhile or could not go are not counted."""

    entries: int = 0
    freed_bytes: int = 0
    persisted: int = 0
    """Irreplaceable values that are on disk, and no longer in memory."""
    dropped: int = 0
    """Values that are made again when asked for."""
    deleted: int = 0
    duration_us: int = 0
    refused: str = ""
    """Why something could not go, the first reason; empty where all went."""

    def count(self, victim: Victim, freed_bytes: int, how: How | None) -> None:
        """Add an entry that was taken."""
        self.entries += 1
        self.freed_bytes += freed_bytes
        if victim.deletes:
            self.deleted += 1
        elif victim.rebuildable:
            self.dropped += 1
        elif how != "compress":
            self.persisted += 1

    def refuse(self, error: Exception) -> None:
        """Note why something did not go."""
        self.refused = self.refused or str(error)

    def add(self, other: Purged) -> None:
        """Add what a purge of another tier did."""
        for name in ("entries", "freed_bytes", "persisted", "dropped", "deleted", "duration_us"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.refused = self.refused or other.refused


class Purging:
    """How tiers carry out purges: log, leave summaries, take the victims."""

    def __init__(self, context: Context, demote: Callable[[LoggedTable, list[str]], None]) -> None:
        """`demote` is told the keys about to be deleted, and puts summaries; raises LogError."""
        self._context = context
        self._demote = demote

    def carry_out(
        self,
        logged: LoggedTable,
        victims: Iterable[Victim],
        how: How | None,
        cause: Cause,
        target_bytes: int | None = None,
    ) -> Purged:
        """Take the victims of one tier in order, until `target_bytes` are free (None: all).

        What is in the way of it is told in `Purged.refused`, not raised.
        """
        began_ns = time.monotonic_ns()
        done, victims = Purged(), list(victims)
        what: dict[str, Any] = {"tier": logged.name, "how": how, "cause": cause}
        if how is None:
            del what["how"]
        may_delete = True
        try:
            self._context.record("purge.begin", what)
            self._demote(logged, [victim.key for victim in victims if victim.deletes])
        except (LogError, ReadOnlyError) as error:
            done.refuse(error)
            may_delete = False
        for victim in victims:
            if target_bytes is not None and done.freed_bytes >= target_bytes:
                break
            if may_delete or not victim.deletes:
                _take(logged, victim, how, done)
        done.duration_us = (time.monotonic_ns() - began_ns) // 1000
        figures = msgspec.to_builtins(done)
        if not done.refused:
            del figures["refused"]
        try:
            self._context.record("purge.end", what | figures)
        except LogError as error:
            done.refuse(error)
        return done


def _take(logged: LoggedTable, victim: Victim, how: How | None, done: Purged) -> None:
    """Take one victim, unless it changed since it was chosen."""
    with logged.lock:  # one at a time, so that others are not held up for the whole purge
        entry = logged.table.entries.get(victim.key)
        if entry is None or entry.lsn != victim.lsn or not (entry.resident or victim.deletes):
            return
        try:
            if victim.deletes:
                freed_bytes = entry.bytes
                logged.delete(victim.key)
            elif how != "compress":
                freed_bytes = logged.evict(victim.key)
            elif (freed_bytes := 0 if victim.rebuildable else logged.pack(victim.key)) == 0:
                return
        except (LogError, UnkeepableError) as error:
            done.refuse(error)
        else:
            done.count(victim, freed_bytes, how)
