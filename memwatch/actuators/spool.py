"""The operator's side of a control spool: publish commands, read acknowledgements.

    <run>/control/tmp/   drafts, written whole and synced
    <run>/control/new/   published by link(): an existing name fails, nothing is ever replaced
    <run>/control/ack/   the agent's answers

Only these folders are written, and only below a run that is ours. Source: D6, R8.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from memwatch.domain.command import Command
from memwatch.domain.errors import MemwatchError
from memwatch.wal.segment import CONTROL_DIR

MAX_BYTES = 16 * 1024
_PRIORITY = {"abort_experiment": 0, "checkpoint": 1, "purge": 2}
_PUBLISH = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Ack(Struct, frozen=True, kw_only=True):
    """What the agent says about a command; unknown members are ignored."""

    proto: int
    id: str
    run_id: str
    seq: int
    state: str
    detail: str = ""
    result: Any = None


class Spool:
    """The control folder of one run."""

    def __init__(self, run_dir: Path, run_id: str) -> None:
        self._dir = run_dir / CONTROL_DIR
        self._run_id = run_id

    def publish(self, name: str, command: Command, now_us: int, ttl_us: int) -> None:
        """Put a command where the agent finds it; raises MemwatchError with the reason."""
        text = msgspec.json.encode(
            {
                "proto": 1,
                "id": name,
                "run_id": self._run_id,
                "op": command.op,
                "args": command.args,
                "issued_us": now_us,
                "ttl_us": ttl_us,
                "deadline_us": 5 * ttl_us,
                "by": {
                    "uid": os.getuid(),
                    "host": os.uname().nodename,
                    "pid": os.getpid(),
                    "origin": command.origin,
                },
            }
        )
        if len(text) > MAX_BYTES:
            raise MemwatchError(f"a command of {len(text)} bytes is over the {MAX_BYTES} allowed")
        try:
            self._link(f"{_PRIORITY.get(command.op, 3)}-{name}.json", text)
        except OSError as error:
            why = error.strerror or str(error)
            raise MemwatchError(f"the command cannot be handed over: {why}") from None

    def ack(self, name: str) -> Ack | None:
        """Return the newest answer to a command, or None when there is no readable one."""
        try:
            fd = os.open(self._dir / "ack" / f"{name}.json", _READ)
        except OSError:
            return None
        try:
            state = os.fstat(fd)
            if not stat.S_ISREG(state.st_mode) or state.st_size > MAX_BYTES:
                return None
            answer = msgspec.json.decode(os.read(fd, MAX_BYTES + 1), type=Ack)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        finally:
            os.close(fd)
        return answer if answer.id == name and answer.run_id == self._run_id else None

    def _link(self, name: str, text: bytes) -> None:
        for folder in (self._dir, self._dir / "tmp", self._dir / "new"):
            self._check(folder)
        draft = self._dir / "tmp" / f"{name}.{secrets.token_hex(4)}"
        fd = os.open(draft, _PUBLISH, 0o600)
        try:
            os.write(fd, text)
            os.fsync(fd)
        finally:
            os.close(fd)
        try:
            os.link(draft, self._dir / "new" / name)
        finally:
            draft.unlink()

    def _check(self, folder: Path) -> None:
        """Refuse a spool that is not a plain folder of ours: a link could lead anywhere."""
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise NotADirectoryError(20, f"{folder.name} of the spool is not a folder of ours")
