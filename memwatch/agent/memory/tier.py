"""One tier: real values under keys, what stays of them in memory, and how the others come back.

Every change is logged before it is applied (R7). Retention follows each put (R1, R2); what it
takes from a tier that deletes is gone, all else only leaves memory (R4) and comes back when asked
for. Values may be changed in place as long as they are put again afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from memwatch.agent.context import Context
from memwatch.agent.memory.changes import Changes
from memwatch.agent.memory.entry import ABSENT, Cause, Change, Entry, How, Source
from memwatch.agent.memory.heat import Heat, Unlogged
from memwatch.agent.memory.logged import LoggedTable
from memwatch.agent.memory.places import Places
from memwatch.agent.memory.purge import Look, Victim, oldest, victim_of
from memwatch.agent.memory.purging import Purged, Purging
from memwatch.agent.memory.retention import RELIEF, Adaptation, in_excess, ttl_us
from memwatch.agent.memory.sizes import deep_bytes
from memwatch.agent.memory.stated import check_stated
from memwatch.agent.memory.table import resident_bytes
from memwatch.agent.memory.values import digest
from memwatch.agent.receipt import until_done
from memwatch.domain.errors import DamagedError, LogError
from memwatch.domain.policy import Keep


class Shared(Struct, frozen=True, eq=False):
    """What the tiers of a run have in common."""

    context: Context
    lock: threading.RLock
    places: Places
    purging: Purging
    cap_bytes: int | None
    """Most that one tier may hold where it has no cap of its own (R2)."""


class Tier:
    """One tier. Made by `Tiers`, which share one lock."""

    def __init__(self, name: str, keep: Keep, shared: Shared) -> None:
        self.name = name
        self._shared = shared
        self._context = shared.context
        self._lock = shared.lock
        self._places = shared.places
        self._logged = LoggedTable(name, shared.context, shared.places, shared.lock)
        self.table = self._logged.table  # used with the tiers' lock held
        self._unlogged = Unlogged()
        self._retaining = False
        self.keep_so(keep)

    def keep_so(self, keep: Keep) -> None:
        """Keep this from here on; `retain` lets go of what is beyond it."""
        self.keep = keep
        """As it is to be; `in_force` is what holds."""
        self.cap_bytes = self._shared.cap_bytes if keep.bytes is None else keep.bytes
        """Most that it holds in memory; None where nothing limits it."""
        self._adaptation = Adaptation(keep)
        self._full_at_bytes = self.cap_bytes
        """Over this the tier looks for values that can leave memory."""
        self.table.live(ttl_us(keep))

    def __len__(self) -> int:
        """Count of entries."""
        return len(self.table.entries)

    def __contains__(self, key: str) -> bool:
        """Whether the key has an entry."""
        return key in self.table.entries

    @property
    def bytes(self) -> int:
        """What the tier holds in memory."""
        return self.table.bytes

    @property
    def tokens(self) -> int | None:
        """Tokens of all entries that state theirs; None where none ever did."""
        return self.table.tokens

    @property
    def in_force(self) -> Keep:
        """What the tier keeps at present: fewer than configured while that would not fit (R1)."""
        return self._adaptation.in_force

    @property
    def changes(self) -> Changes:
        """The net changes since the last checkpoint."""
        return self._logged.changes

    def entry(self, key: str) -> Entry | None:
        """Return the entry of a key, or None; not counted as an access."""
        return self.table.entries.get(key)

    def entries(self) -> list[Entry]:
        """Return all entries, changed longest ago first."""
        with self._lock:
            return list(self.table.entries.values())

    def put(  # noqa: PLR0913  # what an entry is, by name
        self,
        key: str,
        value: Any,
        *,
        tokens: int | None = None,
        source: Source | None = None,
        importance: float | None = None,
        experiment: int | None = None,
        ttl_s: float | None = None,
    ) -> Entry:
        """Log, then store a value under a key; an entry that exists is replaced (`update`).

        With a `source` the value may be any object: it is made again instead of written (R4).
        `importance` is from 0 to 1 (0.5), `experiment` that in progress, `ttl_s` the tier's,
        unless given. Raises UnkeepableError for a value that a log cannot hold, ReadOnlyError,
        and LogError where it cannot be written: then nothing has changed, unless it says that
        retention was refused: then the value is stored and only what should go stays.
        """
        context = self._context
        context.check_writable()
        check_stated(tokens, importance, experiment, ttl_s, key=key)
        if source is None:
            kind, text = self._places.encode(self._logged.where(key), value)
        else:
            kind = ""
            text, source = self._places.encode_source(self._logged.where(key), source)
        entry = Entry(
            key=key,
            lsn=0,
            bytes=0,
            digest=digest(text),
            type=kind,
            value=value,
            source=source,
            tokens=tokens,
            importance=0.5 if importance is None else importance,
            experiment=context.experiment if experiment is None else experiment,
            phase=context.phase,
            born_us=context.clock.boot_us(),
            ttl_us=None if ttl_s is None else round(ttl_s * 1e6),
        )
        value_bytes = deep_bytes(value)
        with self._lock:
            self._logged.put(entry, text, value_bytes)
            self.retain(key)
        return entry

    def build(self, key: str, builder_name: str, /, **args: Any) -> Any:
        """Return the value that a builder makes of `args`: the one that is there, or a new one.

        A new one is put with its source. Raises what `get` and `put` raise.
        """
        text, source = self._places.encode_source(
            self._logged.where(key), Source(builder_name, args)
        )
        there = self.entry(key)
        if there is not None and there.source is not None and there.digest == digest(text):
            return self.get(key)
        self._context.check_writable()  # before the work, not after it
        value = self._places.build(key, source)
        self.put(key, value, source=source)
        return value

    def get(self, key: str) -> Any:
        """Return the value of a key and count the access; one that left memory comes back.

        Raises KeyError where there is none, DamagedError where its file is not what was written,
        LookupError where the run does not have its builder, and whatever its builder raises.
        """
        now_us = self._context.clock.boot_us()
        with self._lock:
            entry = self.table.entries[key]
            if entry.heat is None:
                entry.heat = Heat.first(now_us)
            else:
                entry.heat.touch(now_us)
            self._unlogged.count(key)
            if entry.value is not ABSENT:
                return entry.value
        return self._load(key, keep=True)

    def peek(self, key: str) -> Any:
        """Return the value of a key as `get` does, without counting or keeping it in memory."""
        return self._load(key, keep=False)

    def delete(self, key: str) -> None:
        """Log, then remove an entry; raises KeyError, ReadOnlyError, LogError."""
        with self._lock:
            if key not in self.table.entries:
                raise KeyError(key)
            self._context.check_writable()
            self._forget(key)

    def clear(self, prefix: str = "") -> int:
        """Delete all entries whose key begins with `prefix`; returns the bytes they held."""
        with self._lock:
            self._context.check_writable()
            before = self.bytes
            for key in [key for key in self.table.entries if key.startswith(prefix)]:
                self._forget(key)
            return before - self.bytes

    def log_accesses(self) -> None:
        """Write the counts of accesses since the last time (R3)."""
        with self._lock:
            self._unlogged.log(self._context.record, self.name)

    def log_mutation(self, key: str) -> bool:
        """Log the value of a key if it was changed in place and not put again; says whether.

        Raises KeyError, LogError, and UnkeepableError for a value that no log can hold now.
        """
        with self._lock:
            entry = self.table.entries[key]
            if entry.source is not None or entry.value is ABSENT:
                return False
            return self._logged.settle(key)[2]

    def retain(self, just_put: str | None = None, *, ended: bool = False) -> None:
        """Let go of what expired, is beyond the numbers in force, or over the cap (R1, R2).

        Never takes from memory what was just put. `ended`: an experiment ended. Raises LogError
        where something should go and cannot; the next time tries again.
        """
        if self._retaining:  # further up: a summary is being made, and puts something
            return
        self._retaining = True
        try:
            self._retain(just_put, ended)
        finally:
            self._retaining = False

    def _retain(self, just_put: str | None, ended: bool) -> None:
        keep, now_us = self.in_force, self._context.clock.boot_us()
        try:
            expired = self.table.pop_expired(now_us)
            self._let_go(expired, "expired", "retention", deletes=keep.delete)
        except BaseException:  # refused, or interrupted: what is still there is told again
            until_done(self.table.watch_all)
            raise
        excess = in_excess(self.table, keep, ended=ended)
        self._let_go(excess, "oldest", "retention", deletes=keep.delete)
        self._fit(just_put)

    def adapt(self) -> None:
        """Let the numbers in force follow what the tier measures; each change is logged (R1)."""
        with self._lock:
            for change in self._adaptation.adapt(self.table, self.cap_bytes):
                about = {"what": change.what, "old": change.old, "new": change.new}
                self._context.record("retention", {"tier": self.name, **about, "why": change.why})

    def look(self, only: frozenset[str] | None) -> Look:
        """Return the tier as a purge sees it."""
        return Look(self.name, self.table, self.in_force, self.cap_bytes, only)

    def carry_out(
        self, victims: list[Victim], how: How | None, cause: Cause, target_bytes: int | None = None
    ) -> Purged:
        """Carry out a purge that was planned."""
        done = self._shared.purging.carry_out(self._logged, victims, how, cause, target_bytes)
        if done.deleted:
            for victim in victims:
                if victim.key not in self.table.entries:
                    self._unlogged.forget(victim.key)
        return done

    def packing_frees(self, key: str) -> int:
        """Return what `compress` would free; raises UnkeepableError."""
        return self._logged.pack(key, really=False)

    def of_experiment(self, number: int) -> list[Entry]:
        """Return the entries that count under an experiment."""
        with self._lock:
            keys = self.table.experiments.get(number, {})
            return [self.table.entries[key] for key in keys]

    def adopt(self, entries: Iterable[Entry], changes: Mapping[str, Change]) -> None:
        """Take what a recovery found; raises ValueError where the tier holds something already."""
        if len(self):
            raise ValueError(f"tier {self.name} holds entries already")
        now_us = self._context.clock.boot_us()
        for entry in sorted(entries, key=lambda entry: entry.lsn):
            if not 0 < entry.born_us <= now_us:
                entry.born_us = now_us
            if isinstance(entry.heat, Sequence):
                entry.heat = Heat.restored(entry.heat, now_us)
            entry.full_bytes = entry.full_bytes or entry.bytes
            value_bytes = 0 if entry.value is ABSENT else deep_bytes(entry.value)
            entry.bytes = resident_bytes(entry, value_bytes)
            self.table.add(entry)
        self.changes.give_back(changes, self.table.entries)

    def _load(self, key: str, *, keep: bool) -> Any:
        """Return a value; what takes time (disk, builder) is done without the lock."""
        while True:
            with self._lock:
                entry = self.table.entries[key]
            try:
                value = self._places.load(entry)
            except DamagedError:
                if self.entry(key) is entry and entry.value is ABSENT:
                    raise
                continue  # another thread replaced it or brought it back
            if not keep or value is entry.value:
                return value
            value_bytes = deep_bytes(value)
            with self._lock:
                if self.entry(key) is entry:
                    if entry.value is ABSENT:
                        self._logged.bring_back(entry, value, value_bytes)
                        with suppress(LogError):  # who reads need not know that the tier is full
                            self._fit(key)
                    return entry.value

    def _forget(self, key: str) -> None:
        self._logged.delete(key)
        self._unlogged.forget(key)

    def _fit(self, spare: str | None) -> None:
        """Let the oldest values leave memory while the tier is over its cap (R2)."""
        cap_bytes = self.cap_bytes
        if cap_bytes is None or self.bytes <= cap_bytes:
            self._full_at_bytes = cap_bytes
        elif self._full_at_bytes is None or self.bytes > self._full_at_bytes:
            keys = oldest(self.table, self.bytes - int(RELIEF * cap_bytes), spare)
            self._let_go(keys, "oldest", "share_cap", deletes=False)
            # Where nothing more can leave, looking again waits until there is more.
            self._full_at_bytes = max(cap_bytes, self.bytes + cap_bytes // 100)

    def _let_go(self, keys: list[str], how: How, cause: Cause, *, deletes: bool) -> None:
        entries = [self.table.entries[key] for key in keys]
        victims = [victim_of(self.name, entry, deletes=deletes) for entry in entries]
        if not deletes:
            victims = [victim for victim in victims if victim.may_leave]
        if victims:
            done = self.carry_out(victims, how, cause)
            if done.refused:
                raise LogError(f"retention of tier {self.name} was refused: {done.refused}")
