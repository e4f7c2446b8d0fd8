"""A run directory -> a session with its guard, which is started when none is there.

The guard lives in a session of its own: it outlives the terminal that started it. A keeper beside
it starts it again when it was killed.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import BinaryIO

from memwatch.config.locations import lasting_environment, run_home
from memwatch.domain.errors import SessionError
from memwatch.domain.text import inert
from memwatch.host.lock import holder
from memwatch.ingest.open_run import open_run
from memwatch.runtime.protocol.client import GuardSession
from memwatch.runtime.protocol.numbers import GuardSilentError
from memwatch.runtime.runs.keeper import kept
from memwatch.runtime.runs.target import GUARD_LOCK, run_key, socket_of

START_TIMEOUT_S = 20.0
_POLL_S = 0.02
LOG_FILE = "guard.log"
_LOG_BYTES = 1_000_000
"""It begins anew when it is longer at a guard's start; what a keeper said is there until then."""


class Attachment:
    """Where the guard of one run is found; connects as often as it is asked to."""

    def __init__(self, path: Path) -> None:
        """Look at the run; raises TargetError when it is none that we may open."""
        opened = open_run(path)
        self.path = opened.path
        self.run_id = opened.manifest.run_id
        self.key = run_key(opened.path, self.run_id)
        self.no_commands = opened.foreign.no_commands if opened.foreign else ""
        """Why nothing can be asked of what writes it; empty where it can."""
        self._log_from = 0
        self._viewer, self._view_only = "", False

    def introduce(self, viewer: str, *, view_only: bool = False) -> None:
        """Say who connects from here on; with `view_only` the guard refuses whatever is asked."""
        self._viewer, self._view_only = viewer, view_only

    @property
    def socket(self) -> Path:
        """Where the guard of this run listens, or would."""
        return socket_of(self.key)

    @property
    def shown(self) -> str:
        """The run as a person types it: its id, or its path where the id is no plain word."""
        plain = self.key == self.run_id and shlex.quote(self.run_id) == self.run_id
        return self.run_id if plain else inert(shlex.quote(str(self.path)))

    @property
    def guard_pid(self) -> int | None:
        """Process of the guard that holds the run's lock; None when there is none."""
        return holder(run_home(self.key) / GUARD_LOCK)

    def connect(self) -> GuardSession:
        """Open a session with the guard that is there; raises SessionError when there is none."""
        return GuardSession(self.socket, viewer=self._viewer, view_only=self._view_only)

    def ensure(self, *options: str) -> GuardSession:
        """Open a session, starting the guard when there is none; raises SessionError.

        `options` are words of `memwatch guard` for one that is started.
        """
        try:
            return self.connect()
        except GuardSilentError as error:
            pid = self.guard_pid
            raise SessionError(f"{error}; to replace it: kill -KILL {pid}, then again") from None
        except SessionError:
            return self._wait_for(self.start(*options))

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        """Start a guard and its keeper, which live on without us; returns the keeper."""
        command = [sys.executable, "-m", "memwatch", "guard", str(self.path), *options]
        home = run_home(self.key, create=True)
        with _log_of(home) as log:
            self._log_from = log.tell()
            return subprocess.Popen(
                kept(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=os.sep,
                env=lasting_environment(),
            )

    def _wait_for(self, guard: subprocess.Popen[bytes]) -> GuardSession:
        until = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < until:
            try:
                return self.connect()
            except SessionError:
                # It may have ended because another one was faster: that one will answer.
                if guard.poll() is not None and self.guard_pid is None:
                    break
            time.sleep(_POLL_S)
        raise SessionError(f"the guard did not start: {inert(self._last_words())}")

    def _last_words(self) -> str:
        try:
            with (run_home(self.key) / LOG_FILE).open("rb") as log:
                log.seek(self._log_from)
                lines = log.read(_LOG_BYTES).decode(errors="replace").split("\n")
        except OSError:
            return "it left no message"
        said = [line.strip() for line in lines if line.strip()]
        return said[-1][:200].removeprefix("memwatch: ") if said else "it left no message"


def _log_of(home: Path) -> BinaryIO:
    """Open what guards and keepers say; each line goes to its end, whoever else writes there."""
    log = (home / LOG_FILE).open("ab")
    if log.tell() > _LOG_BYTES:
        log.truncate(0)
        log.seek(0)
    return log
