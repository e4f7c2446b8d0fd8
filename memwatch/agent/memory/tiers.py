"""All tiers of a run: what they share, purges across them, and what checkpoints take of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

from msgspec import Struct, structs

from memwatch.agent.context import Context
from memwatch.agent.memory.blobs import BlobStore
from memwatch.agent.memory.entry import ABSENT, Cause, Change, Entry, How
from memwatch.agent.memory.logged import INLINE_BYTES, LoggedTable
from memwatch.agent.memory.places import Builders, Places
from memwatch.agent.memory.purge import Now, Victim, plan
from memwatch.agent.memory.purging import Purged, Purging
from memwatch.agent.memory.stated import check_count, check_keep
from memwatch.agent.memory.summary import SUMMARY_PREFIX, Summaries, Summarize
from memwatch.agent.memory.tier import Shared, Tier
from memwatch.agent.memory.values import Types
from memwatch.domain.errors import ReadOnlyError, UnkeepableError, UsageError
from memwatch.domain.policy import Keep
from memwatch.host.forked import new_rlock
from memwatch.wal.segment import tier_file

__all__ = ["INLINE_BYTES", "Capture", "Entry", "Keep", "Purged", "Recorder", "Tier", "Tiers"]

Recorder = Callable[[str, dict[str, Any]], int]
"""Appends a record to the run's log, returns its lsn."""


class Capture(Struct, frozen=True):
    """The state at one instant, by reference: entries are replaced, never changed."""

    last_lsn: int
    """Newest record; all up to it are applied, none behind it."""
    tiers: dict[str, Mapping[str, Entry]]
    """Entries by key, changed longest ago first."""


class Tiers(Mapping[str, Tier]):
    """All tiers of a run, by name, in their order."""

    def __init__(  # noqa: PLR0913  # what a run is made of, by name
        self,
        keep: Mapping[str, Keep],
        context: Context,
        *,
        types: Types,
        blobs: BlobStore,
        builders: Builders | None = None,
        summarize: Summarize | None = None,
        limit_bytes: int | None = None,
        share_cap: float = 0.30,
    ) -> None:
        """`limit_bytes`: binding limit of the memory; no tier holds more than `share_cap` of it.

        Raises UsageError for a tier that no file can be named by, that keeps what means nothing,
        or that is demoted to one that does not exist.
        """
        self.lock = new_rlock()
        """Held while a state is read that must fit together."""
        self._context = context
        self._summaries = Summaries(summarize)
        cap_bytes = None if limit_bytes is None else int(limit_bytes * share_cap)
        places = Places(types, blobs, builders or {})
        purging = Purging(context, self._demote)
        self._shared = Shared(context, self.lock, places, purging, cap_bytes)
        for name, what in keep.items():
            _check_tier(name, what, keep)
        self._tiers = {name: Tier(name, what, self._shared) for name, what in keep.items()}

    def __getitem__(self, name: str) -> Tier:
        """Return a tier by name."""
        return self._tiers[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate the names."""
        return iter(self._tiers)

    def __len__(self) -> int:
        """Count of tiers."""
        return len(self._tiers)

    def totals(self) -> dict[str, dict[str, int]]:
        """Return entries and bytes (tokens and limit where known) of each tier."""
        with self.lock:
            return {name: _totals(tier) for name, tier in self._tiers.items()}

    def experiment_ended(
        self, number: int | None = None, outcome: Mapping[str, Any] | None = None
    ) -> None:
        """Adapt the numbers to what the tiers measure, then let go of what is beyond them (R1).

        `outcome`: title, status and metrics of experiment `number` (that in progress), for the
        summary that stays of it. Raises LogError.
        """
        number = self._context.experiment if number is None else number
        with self.lock:
            if number is not None and outcome is not None:
                self._summaries.ended(number, outcome)
            for tier in self._tiers.values():
                tier.adapt()
                if self._may_delete():
                    tier.retain(ended=True)

    def phase_changed(self) -> None:
        """Let go of what expired; `Context.phase` says which phase begins.

        That the former phase's intermediates are the next candidates needs no act: each purge
        compares the phase of an entry with that of the run (R3).
        """
        with self.lock:
            if self._may_delete():
                for tier in self._tiers.values():
                    tier.retain()

    def purge(
        self,
        *,
        tier: str | None = None,
        keys: Sequence[str] | None = None,
        how: How | None = None,
        target_bytes: int | None = None,
        cause: Cause = "agent",
        dry_run: bool = False,
    ) -> Purged:
        """Free memory in the order of R3, or `how` it is told, until `target_bytes` are free.

        Without a target all that may go goes. Only expired entries are deleted, where their tier
        deletes, and while the run is not read-only; of all others the value leaves memory and
        comes back when asked for. `compress` keeps it there as compressed text. A `dry_run` tells
        what would be done. Raises UsageError for what cannot be meant: then nothing goes.
        """
        self._check_purge(tier, how, target_bytes, cause)
        only = None if keys is None else _keys(keys)
        names = list(self._tiers) if tier is None else [tier]
        with self.lock:
            now_us = self._context.clock.boot_us()
            now = Now(now_us, self._context.phase, self._may_delete())
            looks = [self._tiers[name].look(only) for name in names]
            victims = plan(looks, how, target_bytes, now)
        done = Purged()
        for name in dict.fromkeys(victim.tier for victim in victims):
            rest = None if target_bytes is None else target_bytes - done.freed_bytes
            group = [victim for victim in victims if victim.tier == name]
            if dry_run:
                done.add(self._rehearse(group, how, rest))
            elif rest is None or rest > 0:
                done.add(self._tiers[name].carry_out(group, how, cause, rest))
        return done

    def capture(self) -> Capture:
        """Return the state of now without copying or stopping anything; to be released.

        A capture that was not released ends with the next one.
        """
        with self.lock:
            tiers = {name: tier.table.freeze() for name, tier in self._tiers.items()}
            return Capture(self._context.log.last_lsn, tiers)

    def release(self, most: int) -> bool:
        """Let go of a capture, `most` of the changes since at a time; returns whether it is done.

        The entries captured are not to be looked at any more.
        """
        with self.lock:
            return all(tier.table.thaw(most) for tier in self._tiers.values())

    def take_changes(self) -> dict[str, dict[str, Change]]:
        """Return what changed since the last time, net, by tier and key, and begin anew."""
        with self.lock:
            return {name: tier.changes.take() for name, tier in self._tiers.items()}

    def give_back(self, changes: Mapping[str, Mapping[str, Change]]) -> None:
        """Put back what was taken for a checkpoint that failed, under what changed since."""
        with self.lock:
            for name, older in changes.items():
                tier = self._tiers[name]
                tier.changes.give_back(older, tier.table.entries)

    def adopt(
        self,
        tiers: Mapping[str, Mapping[str, Entry]],
        changes: Mapping[str, Mapping[str, Change]],
    ) -> None:
        """Take the state that a recovery found, and what changed since its newest checkpoint.

        A tier that this start does not name keeps its entries, without limit. Whoever adopts the
        blobs counts a live reference for each of `live_blobs`.
        """
        with self.lock:
            for name in (*tiers, *changes):
                if name not in self._tiers:
                    self._tiers[name] = Tier(name, Keep(), self._shared)
            for name, tier in self._tiers.items():
                tier.adopt(tiers.get(name, {}).values(), changes.get(name, {}))

    def live_blobs(self) -> list[str]:
        """Return the hash of each entry's blob, as often as entries refer to it."""
        with self.lock:
            entries = [entry for tier in self._tiers.values() for entry in tier.entries()]
            return [entry.blob.sha256 for entry in entries if entry.blob is not None]

    def _may_delete(self) -> bool:
        try:
            self._context.check_writable()
        except ReadOnlyError:
            return False
        return True

    def _check_purge(self, tier: Any, how: Any, target_bytes: Any, cause: Any) -> None:
        if tier is not None and (type(tier) is not str or tier not in self._tiers):
            raise UsageError(f"there is no tier {tier!r:.40}: there are {', '.join(self._tiers)}")
        for name, value, known in (("how", how, get_args(How)), ("cause", cause, get_args(Cause))):
            if value not in known and not (value is None and name == "how"):
                raise UsageError(f"{name} is one of {', '.join(known)}, not {value!r:.40}")
        if target_bytes is not None:
            try:
                check_count("target_bytes", target_bytes)
            except UnkeepableError as error:
                raise UsageError(str(error)) from None

    def _rehearse(self, victims: list[Victim], how: How | None, target: int | None) -> Purged:
        done = Purged()
        for victim in victims:
            if target is not None and done.freed_bytes >= target:
                break
            freed_bytes = victim.frees_bytes
            if how == "compress":
                freed_bytes = self._would_pack(victim)
            if freed_bytes:
                done.count(victim, freed_bytes, how)
        return done

    def _would_pack(self, victim: Victim) -> int:
        tier = self._tiers[victim.tier]
        with self.lock:
            if victim.rebuildable or victim.key not in tier:
                return 0
            try:
                return tier.packing_frees(victim.key)
            except UnkeepableError:
                return 0

    def _demote(self, logged: LoggedTable, keys: list[str]) -> None:
        """Put a summary of each experiment that begins to leave a tier into the tier below."""
        tier = self._tiers[logged.name]
        below = tier.keep.demote_to
        if not keys or below is None:
            return
        numbers = {entry.experiment for entry in map(tier.entry, keys) if entry is not None}
        for number in sorted(number for number in numbers if number is not None):
            key = f"{SUMMARY_PREFIX}{number}"
            if key not in self._tiers[below]:
                self._put_summary(self._tiers[below], key, number, tier)

    def _put_summary(self, below: Tier, key: str, number: int, tier: Tier) -> None:
        entries = tier.of_experiment(number)
        # What matters there matters here; the agent's summarize may have taken all away by now.
        importance = max((entry.importance for entry in entries), default=0.5)
        value = self._own_summary(tier, number, entries)
        if value is not None:
            try:
                below.put(key, value, experiment=number, importance=importance)
            except UnkeepableError as error:
                self._no_summary(tier, number, error)
            else:
                return
        plain = self._summaries.plain(number, entries)
        below.put(key, plain, experiment=number, importance=importance)

    def _own_summary(self, tier: Tier, number: int, entries: list[Entry]) -> Any:
        summarize = self._summaries.summarize
        if summarize is None:
            return None
        try:
            return summarize([_whole(tier, entry) for entry in entries])
        except Exception as error:  # noqa: BLE001  # the agent's code, while something must go
            self._no_summary(tier, number, error)
            return None

    def _no_summary(self, tier: Tier, number: int, error: Exception) -> None:
        message = f"experiment {number} is summed up without summarize: {error}"
        self._context.record(
            "error", {"kind": "summarize", "message": message[:500], "tier": tier.name}
        )


def _keys(keys: Any) -> frozenset[str]:
    if isinstance(keys, Iterable) and not isinstance(keys, str):  # no list of its letters
        only = tuple(keys)
        if all(isinstance(key, str) for key in only):
            return frozenset(only)
    raise UsageError(f"keys is a list of keys, not {keys!r:.60}")


def _check_tier(name: str, what: Keep, keep: Mapping[str, Keep]) -> None:
    try:
        tier_file(name)
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from None
    check_keep(name, what)
    if what.demote_to is not None and (what.demote_to not in keep or what.demote_to == name):
        raise UsageError(f"tier {name} is demoted to {what.demote_to}: no other tier")


def _whole(tier: Tier, entry: Entry) -> Entry:
    """Return an entry with its value, for whoever sums it up; one to be made again is left out."""
    if entry.value is not ABSENT or entry.source is not None:
        return entry
    return structs.replace(entry, value=tier.peek(entry.key))


def _totals(tier: Tier) -> dict[str, int]:
    known = {"entries": len(tier), "bytes": tier.bytes}
    if tier.tokens is not None:
        known["tokens"] = tier.tokens
    if tier.cap_bytes is not None:
        known["limit"] = tier.cap_bytes
    return known
