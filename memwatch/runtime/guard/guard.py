"""The guard: one process that watches one run, records it, holds it and serves its viewers.

    ingest thread   tailer, watcher      log → ring, history; of a foreign store: looks → ring
    probe thread    processes, limits    samples → guard.wal → ring
    survey thread   disk, checkpoints    looks that may take their time → ring
    warden thread   threshold engine     facts → decisions → guard.wal → ledger
    clerk thread    requests, upkeep     spool, log → ledger; leases, policy, reserve, meta.json
    notifier        alerts               snapshot → guard.wal → people who do not look
    main thread     tick, 1 Hz           ring → snapshot → viewers; life cycle
    server thread   socket               viewers; they can never hold up the others
    history thread  DuckDB               the only thread that writes there

The tick never waits for a disk, a process or a database. Source: architecture, decisions 1 to 3.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from msgspec.structs import replace

from memwatch import __version__
from memwatch.config.locations import run_home, socket_path
from memwatch.domain.clock import Clock, SystemClock
from memwatch.domain.command import Command
from memwatch.domain.errors import TargetError
from memwatch.domain.operations import ENGINE
from memwatch.domain.snapshot import PAST, GuardInfo, Limit, Snapshot
from memwatch.domain.text import inert
from memwatch.host.lock import FileLock
from memwatch.host.process import Identity
from memwatch.ingest.open_run import open_run
from memwatch.runtime.guard.assembly import Parts
from memwatch.runtime.guard.hub import GuardHub
from memwatch.runtime.guard.recollection import recollect
from memwatch.runtime.protocol.server import SessionServer
from memwatch.runtime.runs.target import GUARD_LOCK, run_key
from memwatch.runtime.runs.writer import was_seen_to_go, writer_of
from memwatch.runtime.views.facts import GuardFacts

TICK_S = 1.0
WOKEN_S = 0.1
"""Least time between two snapshots when a viewer waits and news came in."""
LINGER_S = 60.0
"""A guard ends this long after its run ended and its last viewer left."""


class Guard:
    """Watches one run until it is told to stop, or nobody needs it any more."""

    def __init__(
        self,
        path: Path,
        clock: Clock | None = None,
        *,
        linger_s: float = LINGER_S,
        policy: Path | None = None,
    ) -> None:
        """Take the run over; raises TargetError or LockHeldError, and then wrote nothing.

        `policy` is a file that goes before all other layers of the policy.
        """
        self._clock = clock = clock or SystemClock()
        self._linger_s = linger_s
        opened = open_run(path)
        self.run_key = run_key(opened.path, opened.manifest.run_id)
        self._home = home = run_home(self.run_key, create=True)
        self._lock = FileLock.acquire(home / GUARD_LOCK)
        self._start_id = secrets.token_hex(8)
        self._started_us = clock.wall_us()
        self._seq = 0
        self._built_changes = -1
        self._build_lock = threading.Lock()
        self._stop = threading.Event()
        self._alone_since = time.monotonic()
        self._parts = parts = Parts(opened, self.run_key, home, clock, self._news, policy)
        parts.ingest.on_writer = self._watch_foreign
        parts.warden.send = self._send
        parts.clerk.on_start = self._follow_start
        parts.ledger.serve("note", self._note)
        parts.ledger.serve("guard.stop", self._stop_asked)
        self.hub = GuardHub(
            parts.ring, parts.history, self._build, self._submit, parts.ledger.command
        )
        shown = parts.builder
        self.hub.lists = {
            "checkpoints": shown.checkpoints.rows,
            "interventions": shown.interventions.rows,
        }
        self.hub.on_came = parts.leaving.viewer_came
        self.hub.on_left = parts.leaving.viewer_left
        self.socket = socket_path(self.run_key, create=True)
        self._server = SessionServer(self.socket, self.run_key, self._start_id, self.hub)
        for part in (*parts.loops, self._server):
            part.on_failure = self._failed

    # -- life --------------------------------------------------------------------------------

    def run(self) -> None:
        """Watch until `stop` is called or nobody needs this guard any more."""
        try:
            self._begin()
            self._loop()
        finally:
            self._end()

    def stop(self) -> None:
        """Ask the guard to end; from any thread, more than once does no harm."""
        self._stop.set()
        self.hub.wake.set()

    def _begin(self) -> None:
        parts = self._parts
        history, ingest = parts.history, parts.ingest
        history.start()
        self._remember()
        ingest.open()
        ingest.read_own_log()
        history.prefill(parts.ring)
        ingest.read_present()
        if history.known_until_us is not None:
            ingest.read_missed(history.known_until_us)
        history.prefill_events(parts.ring)
        history.count_older(ingest.first_lsn)
        self._watch_writer()
        parts.probe.look()
        if parts.probe.alive is False and history.limit_bytes:
            parts.probe.limits = (_recorded(history.limit_bytes),)
        parts.warden.look()
        parts.clerk.newest = self._publish()
        parts.meta.keep(parts.clerk.newest)  # who finds the socket finds the run listed
        self._server.start()
        for part in parts.loops:
            part.start()

    def _remember(self) -> None:
        """Go on where the guard before this one ended."""
        parts = self._parts
        known = recollect(self._home / "wal", self._clock.wall_us())
        trouble = parts.restore(known)
        parts.estimates.begin()
        parts.leaving.start()
        parts.upkeep.begin(__version__)
        for text in trouble:
            self._tell(text, "notice")

    def _end(self) -> None:
        """End all parts, last begun first; one that fails does not keep the others."""
        parts = self._parts
        with ExitStack() as steps:
            for step in (
                self._lock.release,
                parts.actuator.let_go,
                self._write_meta,
                parts.history.close,
                parts.ingest.read_own_log,
                parts.recorder.close,
                parts.leaving.stop,
                *(part.stop for part in parts.loops),
                self._server.stop,
            ):
                steps.callback(step)

    def _write_meta(self) -> None:
        self._parts.meta.write(self._build(), final=True)

    def _loop(self) -> None:
        due = last = time.monotonic()
        while not self._stop.is_set():
            now = time.monotonic()
            if now >= due:
                self._tick()
                due = max(due + TICK_S, now)
                last = now
            elif self._news_wanted() and now - last >= WOKEN_S:
                self._publish()
                last = now
            until = due
            if self._news_wanted():
                until = min(due, last + WOKEN_S)
            self.hub.wake.wait(max(until - time.monotonic(), 0))
            self.hub.wake.clear()

    def _news_wanted(self) -> bool:
        return self.hub.wanted and self._parts.ring.changed != self._built_changes

    def _news(self) -> None:
        self._parts.clerk.hear()
        if self.hub.wanted:
            self.hub.wake.set()

    def _tick(self) -> None:
        parts = self._parts
        parts.ring.feed_growth()
        snapshot = self._publish()
        parts.clerk.newest = snapshot
        parts.probe.limit = snapshot.limits.binding
        parts.leaving.take(snapshot)
        parts.notifier.take(snapshot)
        if parts.heartbeat:
            parts.heartbeat.take(snapshot)
        self._leave_when_alone(snapshot)

    # -- what is shown -----------------------------------------------------------------------

    def _publish(self) -> Snapshot:
        self._built_changes = self._parts.ring.changed
        snapshot = self._build()
        self.hub.put(snapshot)
        self._server.publish()
        return snapshot

    def _build(self) -> Snapshot:
        with self._build_lock:
            self._seq += 1
            return self._parts.builder.build(self._seq, self._facts())

    def _facts(self) -> GuardFacts:
        parts, since = self._parts, self._trouble()
        at = parts.warden.standing
        known = parts.estimates.known(parts.portrait.policy.budget)
        return GuardFacts(
            guard=GuardInfo(
                engine=parts.authority.mode,
                pid=os.getpid(),
                start_id=self._start_id,
                recording=since is None,
                not_recording_since_us=since[0] if since else None,
                not_recording_why=inert(since[1], 160) if since else "",
                started_us=self._started_us,
                own=parts.probe.own,
                backfill_share=parts.ingest.backfill_share,
            ),
            limits=parts.probe.limits,
            watch=parts.ingest.watcher.mode,
            watch_why=parts.ingest.error or parts.ingest.watcher.why,
            position=parts.ingest.position,
            commands=tuple(parts.ledger.commands().values()),
            older_experiments=parts.history.older_experiments,
            past=known.past,
            costs=known.costs,
            disk_rate=known.disk,
            alive=parts.probe.alive,
            declared=parts.portrait.seen.declared,
            policy=parts.portrait.policy,
            policy_source=parts.policy.book.origin,
            engine=parts.portrait.engine(parts.warden),
            levels=at.levels if at else None,
            soft_share=at.soft_share if at else None,
            holds=parts.portrait.seen.holds,
            alerts=parts.notifier.alerts,
            notify=parts.notify,
            since=parts.leaving.since(),
        )

    def _trouble(self) -> tuple[int, str] | None:
        """Return since when something is not recorded, and why; None when all is."""
        recorder, historian = self._parts.recorder, self._parts.history.historian
        if recorder.since_us is not None:
            return recorder.since_us, recorder.why
        if historian.recording or historian.paused:
            return None
        return historian.since_us or 0, historian.error or ""

    # -- what happens ------------------------------------------------------------------------

    def _submit(self, command: Command) -> str:
        parts = self._parts
        ours = frozenset(hold.id for hold in parts.actuator.holds() if hold.owner == ENGINE)
        name = self._send(command)
        parts.wishes.notice(command, ours)
        return name

    def _send(self, command: Command) -> str:
        parts = self._parts
        if parts.probe.alive is False:
            self._follow_start()  # it may have begun again since the last look
        name = parts.ledger.submit(command, parts.probe.alive is not False)
        parts.ring.touch()
        self._news()
        return name

    def _stop_asked(self, _: Command) -> str:
        self.stop()
        return ""

    def _note(self, command: Command) -> str:
        recorder = self._parts.recorder
        text = inert(str(command.args.get("text", "")), 160)
        record = recorder.append("note", {"text": text}, sync=True)
        self._parts.told(record)
        return "" if record.lsn else recorder.why

    def _tell(self, text: str, severity: str) -> None:
        members = {"text": text, "severity": severity}
        self._parts.told(self._parts.recorder.append("process", members))

    def _failed(self, what: str) -> None:
        """Say that a loop failed and goes on: in guard.wal and to every viewer."""
        self._tell(inert(what, 160), "error")

    def _follow_start(self) -> None:
        """Follow an agent that began again in the same directory, under a new process."""
        if self._parts.opened.foreign is not None:
            return  # nothing but the writing itself tells of a new process
        try:
            opened = open_run(Path(self._parts.run.path))
        except TargetError:
            return  # it is being moved or removed: what was known of it stays
        self._parts.follow(opened)
        self._watch_writer()

    def _watch_foreign(self, writer: Identity) -> None:
        """Measure a process that was seen to write in a foreign source."""
        parts = self._parts
        named = replace(
            parts.opened.manifest,
            pid=writer.pid,
            start_ticks=writer.start_ticks,
            boot_id=writer.boot_id,
        )
        parts.follow(replace(parts.opened, manifest=named))
        parts.probe.watch(writer)

    def _watch_writer(self) -> None:
        run = self._parts.run
        if self._parts.opened.foreign is not None:
            if not self._parts.opened.manifest.pid and was_seen_to_go(self._home):
                self._parts.probe.watch(None)
            return  # known once it is seen to write
        self._parts.ring.run_boot_id = run.manifest.boot_id
        self._parts.probe.watch(writer_of(Path(run.path), run.manifest))

    def _leave_when_alone(self, snapshot: Snapshot) -> None:
        now = time.monotonic()
        if self._server.viewers or snapshot.run.state not in PAST:
            self._alone_since = now
        elif now - self._alone_since > self._linger_s:
            self.stop()


def _recorded(limit_bytes: int) -> Limit:
    return Limit(name="limit of then", bytes=limit_bytes, why="as the guard recorded it last")
