"""All tiers of a run: what they share, purges across them, and what checkpoints take of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from memwatch.agent.context import Context
from memwatch.agent.memory.blobs import BlobStore
from memwatch.agent.memory.entry import ABSENT, Cause, Change, Entry, How
from memwatch.agent.memory.keeping import Keeping, differences
from memwatch.agent.memory.logged import INLINE_BYTES, LoggedTable
from memwatch.agent.memory.places import Builders, Places
from memwatch.agent.memory.purge import Now, Victim, plan
from memwatch.agent.memory.purging import Purged, Purging
from memwatch.agent.memory.retention import in_excess
from memwatch.agent.memory.stated import check_keys, check_purge, check_tier
from memwatch.agent.memory.summary import SUMMARY_PREFIX, Summaries, Summarize
from memwatch.agent.memory.tier import Shared, Tier
from memwatch.agent.memory.values import Types
from memwatch.domain.errors import ReadOnlyError, UnkeepableError
from memwatch.domain.policy import Keep
from memwatch.host.forked import new_rlock

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
        phases: Mapping[str, Mapping[str, Keep]] | None = None,
        builders: Builders | None = None,
        summarize: Summarize | None = None,
        limit_bytes: int | None = None,
        share_cap: float = 0.30,
    ) -> None:
        """`limit_bytes`: binding limit of the memory; no tier holds more than `share_cap` of it.

        `phases` says of each phase what tiers keep then in place of `keep`.
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
        self._keeping = Keeping(keep, phases)
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
                self._follow_phase(tier)
                self._settle(tier)

    def phase_changed(self) -> None:
        """Keep what the phase wants, let go of what is beyond; `Context.phase` says which begins.

        That the former phase's intermediates are the next candidates needs no act: each purge
        compares the phase of an entry with that of the run (R3).
        """
        with self.lock:
            for tier in self._tiers.values():
                changed = self._follow_phase(tier)
                if self._may_delete():
                    tier.retain(ended=changed)

    def keep(
        self, tier: str, changes: Mapping[str, Any] | None, why: str, *, dry_run: bool = False
    ) -> dict[str, Any]:
        """Have a tier keep something else until the start ends, None: what it keeps by itself.

        `changes` are members of `Keep`; those left out are as usual. Returns `old` and `new` of
        what differs, and how many `entries` that leaves beyond the numbers: they go at once, or,
        while the run is read-only, later. Raises UsageError for what cannot be kept so, and
        LogError: where it could not be logged nothing has changed.
        """
        check_tier(tier, self._tiers)
        with self.lock:
            one, wish = self._tiers[tier], self._keeping.wish(tier, changes, self._context.phase)
            old, new = differences(one.keep, wish)
            entries = len(in_excess(one.table, wish, ended=True))
            if not dry_run:
                self._change(one, wish, "asked", why)
                self._keeping.ask(tier, None if changes is None else wish)
                self._settle(one)
        return {"old": old, "new": new, "entries": entries}

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
        check_purge(tier, how, target_bytes, cause, known=self._tiers)
        only = None if keys is None else check_keys(keys)
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
                tier.keep_so(self._keeping.of(name, self._context.phase))
                tier.adopt(tiers.get(name, {}).values(), changes.get(name, {}))

    def live_blobs(self) -> list[str]:
        """Return the hash of each entry's blob, as often as entries refer to it."""
        with self.lock:
            entries = [entry for tier in self._tiers.values() for entry in tier.entries()]
            return [entry.blob.sha256 for entry in entries if entry.blob is not None]

    def _follow_phase(self, tier: Tier) -> bool:
        """Let a tier keep what it is to keep in the phase of now; says whether that is new."""
        phase = self._context.phase
        return self._change(tier, self._keeping.of(tier.name, phase), "phase", f"phase {phase}")

    def _change(self, tier: Tier, keep: Keep, what: str, why: str) -> bool:
        """Log, then have a tier keep something else; says whether it differs."""
        old, new = differences(tier.keep, keep)
        if new:
            about = {"tier": tier.name, "what": what, "old": old, "new": new, "why": why}
            self._context.record("retention", about)
            tier.keep_so(keep)
        return bool(new)

    def _settle(self, tier: Tier) -> None:
        """Adapt the numbers of a tier to what it measures, let go of what is beyond them."""
        tier.adapt()
        if self._may_delete():
            tier.retain(ended=True)

    def _may_delete(self) -> bool:
        try:
            self._context.check_writable()
        except ReadOnlyError:
            return False
        return True

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
