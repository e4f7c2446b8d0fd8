"""One look at a run directory: which checkpoints and records make its state, and what is wrong."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from memwatch.agent.memory.values import Types
from memwatch.agent.recovery.account import Account
from memwatch.agent.recovery.blobs import BlobReader
from memwatch.agent.recovery.chain import Commit, Log
from memwatch.agent.recovery.load import MANIFEST_BYTES, FullLoader, refuse_newer
from memwatch.agent.recovery.place import Place
from memwatch.agent.recovery.prove import prove_state, prove_values
from memwatch.agent.recovery.replay import Replayer
from memwatch.agent.recovery.report import FileState, Report, Resume
from memwatch.agent.recovery.state import State
from memwatch.agent.recovery.tail import Hole, Tail
from memwatch.domain.errors import DamagedError, RecoveryError
from memwatch.host.lock import RUN_LOCK, holder
from memwatch.wal.framing import Framer, Line
from memwatch.wal.manifest import parse_run
from memwatch.wal.segment import CHECKPOINT_DIR, MANIFEST_FILE, RUN_FILE, delta_range, full_lsn

_RUN_BYTES = 1_000_000
_END = 1 << 63


class Attempt:
    """Recovers once. `run` first, then the rest."""

    def __init__(self, place: Place, *, verify_blobs: bool) -> None:
        self._place = place
        self._verify_blobs = verify_blobs
        self._account = Account()
        self._blobs = BlobReader(place)
        self._checkpoints = place.names(CHECKPOINT_DIR)  # before the log, which reaches further
        self._log = Log(place, self._run_id())
        self._is_going_on = _is_held(place.path / RUN_LOCK)
        """Whether another process, alive, writes there."""
        self._replayer = Replayer(self._blobs)
        self._full: Commit | None = None
        self._deltas: list[Commit] = []
        self._passed: Commit | None = None
        """Newest checkpoint whose last lsn the state went through."""
        self._fell_back = False
        self._unusable: set[str] = set()
        self._matches: bool | None = None
        self._verified: dict[str, str] | None = None

    def run(self) -> None:
        """Find the state; raises RecoveryError."""
        if not self._log.segments and not self._checkpoints:
            raise RecoveryError(f"{self._place.path} holds no run: name a run directory")
        self._load_full()
        if not self._log.segments:
            self._say_log_gone()
        self._follow()
        with self._account.time("replay"):
            self._replayer.settle()
        self._account.spent("replay", 0, records=self._replayer.lines + self._replayer.records)
        self._say_unused()
        prove_values(self._replayer, self._blobs, self._account, whole=self._verify_blobs)
        proved = prove_state(self._replayer, self._passed, self._account)
        self._matches, self._verified = proved

    def overtaken(self) -> bool:
        """Whether something is wrong and files went meanwhile: a live agent prunes."""
        if not self._account.damaged and not self._account.lost:
            return False
        there = set(self._place.names(CHECKPOINT_DIR))
        known = {name for name in self._checkpoints if full_lsn(name) or delta_range(name)}
        return bool(known - there or set(self._log.segments) - set(self._log.listed()))

    def state(self, types: Types) -> State:
        """Return what was found."""
        replayer = self._replayer
        return State(
            path=self._place.path,
            run_id=self._log.run_id or "",
            last_lsn=replayer.last_lsn,
            tiers=replayer.tiers,
            changes={tier: changes.take() for tier, changes in replayer.changes.items()},
            journal=replayer.journal,
            unknown=replayer.unknown,
            types=types,
        )

    def report(self, total_s: float, files: tuple[FileState, ...]) -> Report:
        """Return how it was found."""
        replayer = self._replayer
        lost = self._account.lost.all()
        held = sum(e.bytes for entries in replayer.tiers.values() for e in entries.values())
        return Report(
            run_id=self._log.run_id or "",
            full=self._full.id if self._full else None,
            deltas=tuple(delta.id for delta in self._deltas),
            records=replayer.records,
            last_lsn=replayer.last_lsn,
            damaged=self._account.damaged.all(),
            lost=lost,
            lossy=bool(lost),
            matches=self._matches,
            verified=self._verified,
            verified_lsn=self._passed.last_lsn if self._passed and self._verified else None,
            terms=self._account.terms(),
            total_s=total_s,
            memory_bytes=held,
            resume=self._resume(lossy=bool(lost)),
            files=files,
        )

    def _run_id(self) -> str | None:
        try:
            text = self._place.small(RUN_FILE, most_bytes=_RUN_BYTES)
            refuse_newer(text, RUN_FILE)
            return parse_run(text).run_id
        except DamagedError as error:
            self._account.damaged.add(error)
        except ValueError as error:
            self._account.damaged.add(f"{RUN_FILE}: {error}")
        return None

    def _load_full(self) -> None:
        """Load the newest full checkpoint that is whole; the replayer is empty without one."""
        for commit in self._log.fulls() if self._log.segments else self._uncommitted():
            began = time.perf_counter()
            loader = FullLoader(self._place, self._log, commit)
            try:
                loader.load(self._replayer)
            except DamagedError as error:
                self._account.damaged.add(error)
                self._fell_back = True
                self._replayer = Replayer(self._blobs)
                continue
            finally:
                took_s = time.perf_counter() - began
                self._account.spent("load", took_s, loader.bytes, loader.entries)
            self._full = self._passed = commit
            return

    def _uncommitted(self) -> Iterator[Commit]:
        """Yield the full checkpoints that lie there, newest first, for want of a log.

        Each had its name when all of it was on the device; its manifest tells what it must hold.
        """
        for name in sorted(self._checkpoints, reverse=True):
            last_lsn = full_lsn(name)
            if last_lsn is not None:
                try:
                    parts = CHECKPOINT_DIR, name, MANIFEST_FILE
                    text = self._place.small(*parts, most_bytes=MANIFEST_BYTES)
                except DamagedError as error:
                    self._account.damaged.add(error)
                    continue
                sha256 = hashlib.sha256(text).hexdigest()
                yield Commit(lsn=_END, id=name, first_lsn=1, last_lsn=last_lsn, sha256=sha256)

    def _say_log_gone(self) -> None:
        what = "no full checkpoint can be read either: nothing is left"
        if self._full is not None:
            what = f"the state is that of {self._full.id}, and all that came after it is lost"
        self._account.lost.add(f"the log is gone; {what}")

    def _follow(self) -> None:
        """Go on from the full checkpoint: by increments where they are whole, else by the log."""
        while True:
            delta = self._log.delta_at(self._replayer.last_lsn + 1, self._unusable)
            if delta is not None:
                self._use(delta)
                continue
            after = self._log.next_delta(self._replayer.last_lsn + 1, self._unusable)
            tail = Tail(self._place, self._log, self._replayer, self._account)
            hole = tail.replay(_END if after is None else after.first_lsn - 1)
            self._passed = tail.passed or self._passed
            if hole is not None:
                self._say_lost(hole, tail)
            if hole is not None or after is None or self._replayer.last_lsn + 1 < after.first_lsn:
                return

    def _use(self, delta: Commit) -> None:
        """Apply an increment if its file is what was committed; else never look at it again."""
        self._unusable.add(delta.id)
        try:
            with self._place.open(*delta.parts) as file:
                self._place.expect(delta.bytes)
                self._prove(file, delta)
                file.seek(0)
                with self._account.time("replay"):
                    self._apply(file, delta)
        except DamagedError as error:
            self._account.damaged.add(error)
            self._fell_back = True
            return
        self._deltas.append(delta)
        self._passed = delta

    def _prove(self, file: BinaryIO, delta: Commit) -> None:
        began, written = time.perf_counter(), hashlib.sha256()
        for piece in self._place.pieces(file, *delta.parts):
            written.update(piece)
        self._account.spent("read", time.perf_counter() - began, file.tell())
        if written.hexdigest() != delta.sha256:
            name = "/".join(delta.parts)
            raise DamagedError(f"{name} is damaged: its hash is not what was committed")

    def _say_lost(self, hole: Hole, tail: Tail) -> None:
        """Word what a hole in the log takes away."""
        count, last = tail.left_out(hole.last_lsn or hole.first_lsn)
        first, end = hole.first_lsn, hole.last_lsn
        which = f"lsn {first}" if end in (first, None) else f"lsn {first} to {end}"
        also = f", nor are the {count} records behind it, up to lsn {last}" if count else ""
        self._account.lost.add(
            f"{which} cannot be had ({hole.where}): the state is that of lsn "
            f"{self._replayer.last_lsn}, and they are not in it{also}"
        )

    def _apply(self, file: BinaryIO, delta: Commit) -> None:
        framer, increment = Framer(), self._replayer.increment
        try:
            for piece in self._place.pieces(file, *delta.parts, told=False):
                for line in framer.feed(piece):
                    increment(line.text if isinstance(line, Line) else b"")
        except (ValueError, RecursionError) as error:
            raise DamagedError(
                f"{'/'.join(delta.parts)} holds a line that is none: {error}"
            ) from None
        self._replayer.commit(delta.last_lsn, used=True)

    def _say_unused(self) -> None:
        """Name what lies among the checkpoints and is none: half-written, or never committed.

        While the run's agent lives that is one in progress.
        """
        newest = self._full.last_lsn if self._full else 0
        for name in self._checkpoints:
            last_lsn = full_lsn(name) or (delta_range(name) or (0, 0))[1]
            why = ""
            if name.endswith(".draft"):
                why = "is not finished"
            elif last_lsn > newest and name.removesuffix(".wal") not in self._log.commits:
                why = "was never committed"
            if why and not self._is_going_on:
                self._account.damaged.add(f"{CHECKPOINT_DIR}/{name} {why}: not used")
            if last_lsn > self._replayer.last_lsn and not self._account.lost:
                self._account.lost.add(
                    f"the end of the log is gone: it stops at lsn {self._replayer.last_lsn}, and "
                    f"{CHECKPOINT_DIR}/{name} was written when it reached {last_lsn}"
                )

    def _resume(self, *, lossy: bool) -> Resume:
        replayer, newest = self._replayer, self._deltas[-1] if self._deltas else self._full
        return Resume(
            base=self._full.id if self._full else None,
            last_lsn=newest.last_lsn if newest else 0,
            chain_bytes=sum(delta.bytes for delta in self._deltas),
            experiments_since_any=replayer.ended_since_any,
            experiments_since_full=replayer.ended_since_full,
            full_due=lossy or self._fell_back,
        )


def _is_held(lock: Path) -> bool:
    try:
        return holder(lock) not in (None, os.getpid())
    except OSError:  # whatever lies there is no lock
        return False
