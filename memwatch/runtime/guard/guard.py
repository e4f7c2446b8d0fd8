"""The guard: one process that watches one run, records it and serves its viewers.

    ingest thread   tailer, watcher      log → ring, history
    probe thread    processes, disk      samples → guard.wal → ring
    clerk thread    requests, levels     spool, log → ledger; guard.wal, meta.json
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

from memwatch.actuators.native import NativeActuator
from memwatch.config.load import named_profile
from memwatch.config.locations import run_home, socket_path
from memwatch.config.schema import Profile
from memwatch.domain.clock import Clock, SystemClock
from memwatch.domain.command import Command
from memwatch.domain.errors import ConfigError, TargetError
from memwatch.domain.snapshot import PAST, GuardInfo, Limit, Snapshot
from memwatch.domain.text import inert
from memwatch.host.lock import FileLock
from memwatch.host.process import boot_id
from memwatch.ingest.open_run import open_run
from memwatch.runtime.guard.clerk import Clerk
from memwatch.runtime.guard.history import History
from memwatch.runtime.guard.hub import GuardHub
from memwatch.runtime.guard.ingest_loop import IngestLoop
from memwatch.runtime.guard.ledger import Ledger
from memwatch.runtime.guard.probe_loop import ProbeLoop
from memwatch.runtime.guard.recollection import recollect
from memwatch.runtime.guard.recorder import Recorder
from memwatch.runtime.protocol.server import SessionServer
from memwatch.runtime.runs.meta_file import MetaFile
from memwatch.runtime.runs.target import GUARD_LOCK, run_key
from memwatch.runtime.runs.writer import writer_of
from memwatch.runtime.views.facts import GuardFacts, RunFacts
from memwatch.runtime.views.ring import Ring
from memwatch.runtime.views.snapshot_builder import SnapshotBuilder

TICK_S = 1.0
WOKEN_S = 0.1
"""Least time between two snapshots when a viewer waits and news came in."""
LINGER_S = 60.0
"""A guard ends this long after its run ended and its last viewer left."""


class Guard:
    """Watches one run until it is told to stop, or nobody needs it any more."""

    def __init__(
        self, path: Path, clock: Clock | None = None, *, linger_s: float = LINGER_S
    ) -> None:
        """Take the run over; raises TargetError or LockHeldError, and then wrote nothing."""
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
        self._run = RunFacts(path=str(opened.path), manifest=opened.manifest)
        self.profile, profile_trouble = _profile(opened.manifest.profile)

        self.ring = Ring(self.profile, clock, boot_id())
        own_wal = home / "wal"
        self.recorder = Recorder(own_wal, clock)
        self.recorder.on_gap = self.ring.take_guard
        self._history = History(home / "history.duckdb", clock)
        self._ingest = IngestLoop(
            opened.path, own_wal, self.ring, self._history.historian, self._news
        )
        self._ingest.on_caught_up = lambda: self._history.refill_growth(self.ring)
        self._probe = ProbeLoop(opened.path, home, self.profile, self.ring, self.recorder, clock)
        self._builder = SnapshotBuilder(self._run, self.profile, self.ring, clock)
        self._actuator = NativeActuator(
            opened.path, opened.manifest.run_id, opened.manifest.ops, clock
        )
        self._ledger = Ledger(
            self._actuator,
            self.recorder,
            clock,
            self.ring.take_guard,
            names=(opened.manifest.run_id, opened.path.name),
        )
        self._ledger.serve("note", self._note)
        self._ledger.serve("guard.stop", self._stop_asked)
        self._meta = MetaFile(home, self.run_key, clock)
        self._clerk = Clerk(self.ring, self.recorder, self._ledger, self._meta, clock)
        self._clerk.alive = lambda: self._probe.alive is not False
        self._clerk.on_start = self._follow_start
        self._clerk.on_news = self._probe.on_news = self._news
        self.hub = GuardHub(
            self.ring, self._history, self._build, self._submit, self._ledger.command
        )
        self.socket = socket_path(self.run_key, create=True)
        self._server = SessionServer(self.socket, self.run_key, self._start_id, self.hub)
        for part in (self._clerk, self._ingest, self._probe, self._server):
            part.on_failure = self._failed
        if profile_trouble:
            self._tell(profile_trouble, "notice")

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
        self._history.start()
        self._remember()
        self._ingest.open()
        self._ingest.read_own_log()
        self._history.prefill(self.ring)
        self._ingest.read_present()
        if self._history.known_until_us is not None:
            self._ingest.read_missed(self._history.known_until_us)
        self._history.prefill_events(self.ring)
        self._history.count_older(self._ingest.first_lsn)
        self._watch_writer()
        self._probe.look()
        if self._probe.alive is False and self._history.limit_bytes:
            self._probe.limits = (_recorded(self._history.limit_bytes),)
        self._clerk.newest = self._publish()
        self._meta.keep(self._clerk.newest)  # who finds the socket finds the run listed
        self._server.start()
        self._ingest.start()
        self._probe.start()
        self._clerk.start()

    def _remember(self) -> None:
        """Go on where the guard before this one ended."""
        known = recollect(self._home / "wal", self._clock.wall_us())
        self._clerk.level = known.level
        self._ledger.restore(known.requests)

    def _end(self) -> None:
        """End all parts, last begun first; one that fails does not keep the others."""
        with ExitStack() as steps:
            for step in (
                self._lock.release,
                self._write_meta,
                self._history.close,
                self._ingest.read_own_log,
                self.recorder.close,
                self._ingest.stop,
                self._probe.stop,
                self._clerk.stop,
                self._server.stop,
            ):
                steps.callback(step)

    def _write_meta(self) -> None:
        self._meta.write(self._build(), final=True)

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
        return self.hub.wanted and self.ring.changed != self._built_changes

    def _news(self) -> None:
        self._clerk.hear()
        if self.hub.wanted:
            self.hub.wake.set()

    def _tick(self) -> None:
        self.ring.feed_growth()
        snapshot = self._publish()
        self._clerk.newest = snapshot
        self._probe.limit = snapshot.limits.binding
        self._leave_when_alone(snapshot)

    def _publish(self) -> Snapshot:
        self._built_changes = self.ring.changed
        snapshot = self._build()
        self.hub.put(snapshot)
        self._server.publish()
        return snapshot

    def _build(self) -> Snapshot:
        with self._build_lock:
            self._seq += 1
            return self._builder.build(self._seq, self._facts())

    def _facts(self) -> GuardFacts:
        since_us, why = self._trouble()
        return GuardFacts(
            guard=GuardInfo(
                pid=os.getpid(),
                start_id=self._start_id,
                recording=since_us is None,
                not_recording_since_us=since_us,
                not_recording_why=inert(why, 160),
                started_us=self._started_us,
                own=self._probe.own,
                backfill_share=self._ingest.backfill_share,
            ),
            limits=self._probe.limits,
            watch=self._ingest.watcher.mode,
            watch_why=self._ingest.error or self._ingest.watcher.why,
            position=self._ingest.position,
            commands=self._ledger.newest(),
            older_experiments=self._history.older_experiments,
            drill=self._probe.drill,
            alive=self._probe.alive,
        )

    def _trouble(self) -> tuple[int | None, str]:
        """Return since when something is not recorded, and why."""
        if self.recorder.since_us is not None:
            return self.recorder.since_us, self.recorder.why
        historian = self._history.historian
        return (None, "") if historian.recording else (historian.since_us, historian.error or "")

    # -- what happens ------------------------------------------------------------------------

    def _submit(self, command: Command) -> str:
        alive = self._probe.alive is not False
        name = self._ledger.submit(command, alive)
        self.ring.touch()
        self._news()
        return name

    def _stop_asked(self, _: Command) -> str:
        self.stop()
        return ""

    def _note(self, command: Command) -> str:
        text = inert(str(command.args.get("text", "")), 160)
        record = self.recorder.append("note", {"text": text}, sync=True)
        self.ring.take_guard(record)
        return "" if record.lsn else self.recorder.why

    def _tell(self, text: str, severity: str) -> None:
        record = self.recorder.append("process", {"text": text, "severity": severity})
        self.ring.take_guard(record)

    def _failed(self, what: str) -> None:
        """Say that a loop failed and goes on: in guard.wal and to every viewer."""
        self._tell(inert(what, 160), "error")

    def _follow_start(self) -> None:
        """Follow an agent that began again in the same directory, under a new process."""
        try:
            opened = open_run(Path(self._run.path))
        except TargetError:
            return  # it is being moved or removed: what was known of it stays
        self._run = RunFacts(path=self._run.path, manifest=opened.manifest)
        self._actuator.ops = opened.manifest.ops
        self._builder.run = self._run
        self._watch_writer()

    def _watch_writer(self) -> None:
        self.ring.run_boot_id = self._run.manifest.boot_id
        self._probe.watch(writer_of(Path(self._run.path), self._run.manifest))

    def _leave_when_alone(self, snapshot: Snapshot) -> None:
        now = time.monotonic()
        if self._server.viewers or snapshot.run.state not in PAST:
            self._alone_since = now
        elif now - self._alone_since > self._linger_s:
            self.stop()


def _profile(name: str) -> tuple[Profile, str]:
    """Return the profile that a run names, or the native one and what was wrong."""
    try:
        return named_profile(name), ""
    except ConfigError as error:
        return named_profile("native"), f"{error}; the native profile is used"


def _recorded(limit_bytes: int) -> Limit:
    return Limit(name="limit of then", bytes=limit_bytes, why="as the guard recorded it last")
