"""Says when something may have changed in a few directories. A hint: sizes on disk are the truth.

An event for each write costs more than looking at a steady beat (0.8 % against 0.1 % of a core
at 100 writes a second), so a writer that never pauses is followed by the beat. Where the kernel
tells of no changes (network file systems, watch limit) the beat is slower and all there is.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Literal

import watchfiles

from memwatch.host.deadline import ask
from memwatch.host.filesystem import file_system, is_remote

_STEP_MS = 40
_DEBOUNCE_MS = 80
_LOOK_S = 1.0  # how often directories are looked at: one that was replaced sends no events
_BUSY_BATCHES = 25  # batches of events without a pause of _LOOK_S
_BEAT_S = 0.08
_BUSY_S = 20.0
_POLL_S = 0.5
_RETRY_S = 60.0
_DEADLINE_S = 2.0

_HOLD_FLAGS = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC

_Identity = tuple[int, int] | None


class Watcher:
    """Sets `wake` when something changed directly in one of `paths`, or may have.

    The paths are directories; they may be missing, come and go. The caller looks by itself as
    well, each second or so.
    """

    def __init__(self, paths: Iterable[Path], wake: threading.Event) -> None:
        self._paths = tuple(paths)
        self._wake = wake
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memwatch-watch", daemon=True)
        self.mode: Literal["events", "polling"] = "events"
        self.why = ""
        """Why it polls, for a person."""

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _run(self) -> None:
        while not self._stop.is_set():
            why = self._why_blind() or self._watch()
            if why:
                self._poll(why)

    def _why_blind(self) -> str:
        """Return why events would not come, or nothing."""
        for path in self._paths:
            kind = ask(f"type of {path}", partial(_file_system, path), _DEADLINE_S)
            if kind is None:
                return "the file system does not answer"
            if is_remote(kind):
                return f"{kind} tells nothing of changes made elsewhere"
        return ""

    def _watch(self) -> str:
        """Pass events on until the directories are others; return why to poll, or nothing."""
        with ExitStack() as held:
            there = self._look()
            existing = [path for path, known in zip(self._paths, there, strict=True) if known]
            if not existing:
                return "the directories are not there"
            try:
                for path in existing:
                    # While it is held its inode number is given to no other directory.
                    held.callback(os.close, os.open(path, _HOLD_FLAGS))
                busy = self._pass_on(existing, there)
            except (OSError, RuntimeError) as error:  # RuntimeError: of watchfiles' own core
                if self._look() != there:
                    return ""
                return f"no file events to be had ({error}); is the limit of inotify reached?"
        if busy:
            self._beat(_BEAT_S, _BUSY_S)
        return ""

    def _pass_on(self, paths: Sequence[Path], there: list[_Identity]) -> bool:
        """Return True when events never pause, False when the directories changed or to stop."""
        batches = 0
        look_due = time.monotonic() + _LOOK_S
        for changes in watchfiles.watch(
            *paths,
            watch_filter=None,
            debounce=_DEBOUNCE_MS,
            step=_STEP_MS,
            stop_event=self._stop,
            rust_timeout=round(_LOOK_S * 1000),
            yield_on_timeout=True,
            raise_interrupt=False,
            force_polling=False,
            recursive=False,
            ignore_permission_denied=True,
        ):
            self.mode, self.why = "events", ""
            if changes:
                self._wake.set()
            batches = batches + 1 if changes else 0
            if batches >= _BUSY_BATCHES:
                return True
            if time.monotonic() >= look_due:
                look_due = time.monotonic() + _LOOK_S
                if self._look() != there:
                    self._wake.set()
                    return False
        return False

    def _poll(self, why: str) -> None:
        self.mode, self.why = "polling", why
        there = self._look()
        until = time.monotonic() + _RETRY_S
        while self._look() == there and time.monotonic() < until and not self._stop.is_set():
            self._beat(_POLL_S, _POLL_S)

    def _beat(self, period_s: float, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._stop.wait(period_s):
            self._wake.set()
            if time.monotonic() >= until:
                return

    def _look(self) -> list[_Identity]:
        return [_identity(path) for path in self._paths]


def _identity(path: Path) -> _Identity:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _file_system(path: Path) -> str:
    return file_system(path) or "unknown"
