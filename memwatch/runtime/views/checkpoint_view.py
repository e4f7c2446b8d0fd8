"""Checkpoints: as the log tells them and the disk holds them; what a recovery would start from."""

from __future__ import annotations

from msgspec.structs import replace

from memwatch.analytics.checkpoints.bloat import bloat_of
from memwatch.analytics.checkpoints.cadence import Due, Since, next_due
from memwatch.analytics.checkpoints.course import Seen
from memwatch.analytics.checkpoints.fold import Saved
from memwatch.analytics.checkpoints.next_size import has_room, next_bytes
from memwatch.analytics.checkpoints.prune import BY_THE_AGENT
from memwatch.analytics.checkpoints.stats import stats_of
from memwatch.analytics.checkpoints.store import (
    NAMED,
    NEWEST,
    Judged,
    base_of,
    judge,
    store_checkpoints,
)
from memwatch.analytics.recovery.work import Work
from memwatch.analytics.told import Instant
from memwatch.config.schema import Lights
from memwatch.domain.checkpoints import (
    Bloat,
    Chain,
    Checkpoint,
    Checkpoints,
    CheckpointStats,
    StoreLook,
)
from memwatch.domain.policy import Cadence
from memwatch.domain.record import figure
from memwatch.domain.snapshot import PAST, RunInfo
from memwatch.ingest.blob_scan import Blobs
from memwatch.ingest.checkpoint_scan import FullOnDisk
from memwatch.runtime.views.chain import Chained, chain_of
from memwatch.runtime.views.ring import Ring
from memwatch.wal.manifest import RunManifest

_BROKEN = ("incomplete", "damaged")


def cadence_of(manifest: RunManifest, usual: Cadence) -> Cadence:
    """Return the cadence that the agent acts by: what it states, else what its profile says."""
    stated = {
        name: type(getattr(usual, name))(value)
        for name, value in manifest.cadence.items()
        if name in usual.__struct_fields__ and _is_span(value)
    }
    return replace(usual, **stated)


def _is_span(value: object) -> bool:
    span = figure(value)
    return span is not None and span >= 1


class CheckpointView:
    """Reads the ring's checkpoints against the cadence of R5, a foreign store's by its habit.

    Ask under the ring's lock.
    """

    def __init__(self, ring: Ring, cadence: Cadence, lights: Lights) -> None:
        self._ring = ring
        self._grace = lights.checkpoint_grace
        self._reserve_bytes = lights.disk_critical_bytes
        self._over = False
        self._chain: tuple[int, int, Chained] | None = None
        self._judged: tuple[tuple[object, ...], CheckpointStats, Bloat] | None = None
        self._store: tuple[StoreLook, Judged] | None = None
        self.cadence = cadence
        """That of the agent's present start."""

    def checkpoints(self, run: RunInfo, now_at_us: int) -> Checkpoints:
        """Return the last, the recoverable chain, what is due, how they do and what is broken.

        `now_at_us` is the instant that is shown, on the axis of the ring.
        """
        self._over = run.state in PAST
        store = self._ring.store
        if store is None:
            found = self._native(run, now_at_us)
        else:
            now_us = self._ring.to_wall(now_at_us)
            found = store_checkpoints(
                store, self._judged_store(store), now_us, over=self._over, grace=self._grace
            )
        disk = self._ring.disk
        free = disk.free_bytes if disk else None
        return replace(found, next_fits=has_room(found.next_bytes, free, self._reserve_bytes))

    def rows(self, limit: int) -> tuple[Checkpoint, ...]:
        """Return the newest checkpoints that are known, newest first."""
        store = self._ring.store
        if store is not None:
            return tuple(reversed(store.checkpoints[-limit:]))
        known = list(self._ring.state.saved.known.values())[-limit:]
        chain = self.chain()
        return tuple(self._shown(one, chain) for one in reversed(known))

    def chain(self) -> Chained:
        """Return what a recovery of a native run could start from now."""
        saved, disk = self._ring.state.saved, self._ring.on_disk
        if self._chain is None or self._chain[:2] != (saved.changed, id(disk)):
            self._chain = saved.changed, id(disk), chain_of(saved, disk)
        return self._chain[2]

    def work(self) -> Work:
        """Return what a recovery would have to do now."""
        ring, store = self._ring, self._ring.store
        if store is not None:
            full, deltas = base_of(store)
            return Work(
                full_bytes=(full.bytes or 0) if full else 0,
                full_entries=(full.entries or 0) if full else 0,
                delta_bytes=sum(one.bytes or 0 for one in deltas),
                delta_count=len(deltas),
            )
        chain = self.chain()
        covered = chain.end.covers_lsn if chain.end else 0
        files, blobs = self._files(chain), self._blobs(chain)
        return Work(
            full_bytes=files.bytes,
            full_entries=files.entries,
            blob_bytes=blobs.bytes,
            blob_count=blobs.count,
            delta_bytes=chain.file_bytes,
            delta_entries=chain.deltas.entries,
            delta_count=chain.deltas.count,
            log_bytes=ring.segments.behind(covered),
            chain_log_bytes=ring.segments.behind(chain.full.covers_lsn if chain.full else 0),
            segment_bytes=ring.segments.newest_bytes,
            tail_bytes=ring.tail_bytes(covered),
            tail_records=max(ring.state.last_lsn - covered, 0),
        )

    def _blobs(self, chain: Chained) -> Blobs:
        """Return the persisted values that the state needs: what the chain refers to.

        Those that nothing needs any more lie there until the next full checkpoint, too. Which of
        the chain's were let go since is not told: it may be less.
        """
        there = self._ring.on_disk.blobs if self._ring.on_disk else Blobs()
        full = chain.full.checkpoint if chain.full else None
        if full is None or full.bytes is None or full.file_bytes is None or not there.bytes:
            return there
        needed = full.bytes - full.file_bytes + chain.deltas.bytes - chain.deltas.own_bytes
        share = min(max(needed, 0) / there.bytes, 1.0)
        return Blobs(count=round(there.count * share), bytes=round(there.bytes * share))

    # -- a native run --------------------------------------------------------------------------

    def _native(self, run: RunInfo, now_at_us: int) -> Checkpoints:
        saved, chain = self._ring.state.saved, self.chain()
        known = [self._shown(one, chain) for one in saved.known.values()]
        newest = saved.newest
        due = None if self._over else self._due(run, now_at_us)
        stats, bloat = self._figures(known)
        return Checkpoints(
            last=known[-1] if known else None,
            last_recoverable_full=chain.full.checkpoint if chain.full else None,
            newest=tuple(reversed(known[-NEWEST:])),
            chain=Chain(
                deltas=chain.deltas.count,
                bytes=chain.deltas.bytes,
                limit_bytes=self.cadence.chain_bytes,
                entries=chain.deltas.entries,
            ),
            age_s=self._age_s(newest.at, now_at_us) if newest else None,
            overdue=due is not None and due.overdue is not None,
            overdue_kind=due.overdue if due else None,
            next_kind=due.kind if due else None,
            due_in_s=due.in_s if due else None,
            due_experiments=due.of_experiments if due else None,
            due_experiments_done=due.experiments if due else None,
            experiments_since=saved.experiments_since(newest.at.lsn if newest else 0),
            next_bytes=next_bytes(self._whole_bytes(chain), stats.growth_bytes),
            incomplete=_named(known, "incomplete"),
            missing=chain.missing,
            damaged=tuple(chain.damaged)[:NAMED],
            writing=_named(known, "begun"),
            count=saved.counts["committed"],
            stats=stats,
            bloat=bloat,
            prune=BY_THE_AGENT,
        )

    def _figures(self, known: list[Checkpoint]) -> tuple[CheckpointStats, Bloat]:
        """Return figures and verdict; worked out anew when a checkpoint or the disk changed."""
        saved, disk = self._ring.state.saved, self._ring.on_disk
        failed = saved.counts["aborted"] + sum(one.state in _BROKEN for one in known)
        total = disk.bytes + disk.blobs.bytes if disk else None
        key = (saved.changed, failed, total)
        if self._judged is None or self._judged[0] != key:
            course = [Seen(self._ring.axis_of(at), one) for at, one in saved.committed()]
            stats = stats_of(
                course,
                complete=saved.counts["committed"],
                failed=failed,
                total_bytes=total,
            )
            self._judged = key, stats, bloat_of(course, "native")
        return self._judged[1:]

    def _whole_bytes(self, chain: Chained) -> int | None:
        """Return what the newest full one holds with the persisted values that it refers to.

        The next one writes no more than that: which of its values lie there already is not known.
        """
        logged = (chain.full.checkpoint.bytes or 0) if chain.full else 0
        return max(logged, self._files(chain).bytes) or None

    def _files(self, chain: Chained) -> FullOnDisk:
        """Return the own files of the newest full one that is there, as seen or as logged."""
        if chain.full is None:
            return FullOnDisk()
        one, disk = chain.full.checkpoint, self._ring.on_disk
        found = disk.fulls.get(one.last_lsn or 0) if disk else None
        size = one.bytes if one.file_bytes is None else one.file_bytes
        return found or FullOnDisk(size or 0, one.entries or 0, one.state_bytes or 0)

    def _shown(self, one: Checkpoint, chain: Chained) -> Checkpoint:
        """Return a checkpoint in the state that it is in, whatever the log said of it last."""
        if self._incomplete(one):
            return replace(one, state="incomplete", reason="nobody writes it any more")
        if one.id in chain.damaged:
            return replace(one, state="damaged", reason=chain.damaged[one.id])
        return one

    def _incomplete(self, one: Checkpoint) -> bool:
        """Whether nobody is writing it any more: another followed, or its process is gone."""
        if one.state != "begun":
            return False
        state = self._ring.state
        of_former_start = state.start is not None and (
            state.checkpoint_at[one.id].lsn < state.start.lsn
        )
        is_last = one.id == next(reversed(state.saved.known))
        return not is_last or self._over or of_former_start

    def _age_s(self, instant: Instant, now_at_us: int) -> float:
        return max(now_at_us - self._ring.axis_of(instant), 0) / 1e6

    def _due(self, run: RunInfo, now_at_us: int) -> Due:
        """Judge the present start: the agent counts from there on (R5)."""
        state = self._ring.state
        saved, began = state.saved, state.start.at.lsn if state.start else 0
        full = saved.fulls[-1] if saved.fulls and saved.fulls[-1].at.lsn > began else None
        newest = saved.newest if saved.newest and saved.newest.at.lsn > began else None
        chain = saved.deltas.between(full.at.lsn).bytes if full else 0
        return next_due(
            self.cadence,
            self._grace,
            self._since(newest, began, run, now_at_us),
            self._since(full, began, run, now_at_us) if full else None,
            chain,
        )

    def _since(self, saved: Saved | None, began: int, run: RunInfo, now_at_us: int) -> Since:
        experiments = self._ring.state.saved.experiments_since(saved.at.lsn if saved else began)
        return Since(self._age_s(saved.at, now_at_us) if saved else run.uptime_s, experiments)

    def _judged_store(self, look: StoreLook) -> Judged:
        if self._store is None or self._store[0] is not look:
            self._store = look, judge(look)
        return self._store[1]


def _named(known: list[Checkpoint], state: str) -> tuple[str, ...]:
    return tuple(one.id for one in known if one.state == state)[-NAMED:]
