"""The operator's side of a control spool: publish commands, read acknowledgements.

    <run>/control/tmp/   drafts, written whole and synced
    <run>/control/new/   published by link(): an existing name fails, nothing is ever replaced
    <run>/control/ack/   the agent's answers

Only these folders are written, and only below a run that is ours. Every step is taken from an
open folder to the next, so that nothing put in its place meanwhile leads us elsewhere.
Source: D6, R8.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from memwatch.domain.command import Command
from memwatch.domain.errors import MemwatchError
from memwatch.wal.segment import CONTROL_DIR

MAX_BYTES = 16 * 1024
_PRIORITY = {"abort_experiment": 0, "checkpoint": 1, "purge": 2}
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PUBLISH = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FORGOTTEN_US = 3600 * 1_000_000
"""A draft this old was left by a writer that was killed."""
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


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
            self._link(f"{_PRIORITY.get(command.op, 3)}-{name}.json", text, now_us)
        except OSError as error:
            why = error.strerror or str(error)
            raise MemwatchError(f"the command cannot be handed over: {why}") from None

    def ack(self, name: str) -> Ack | None:
        """Return the newest answer to a command, or None when there is no readable one."""
        try:
            with self._open("ack") as ack_dir:
                text = _read(ack_dir, f"{name}.json")
            answer = msgspec.json.decode(text, type=Ack)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return answer if answer.id == name and answer.run_id == self._run_id else None

    def _link(self, name: str, text: bytes, now_us: int) -> None:
        draft = f"{name}.{secrets.token_hex(4)}"
        with self._open("tmp") as tmp, self._open("new") as new:
            _sweep(tmp, now_us - _FORGOTTEN_US)
            try:
                _write(tmp, draft, text)
                os.link(draft, name, src_dir_fd=tmp, dst_dir_fd=new)
                os.fsync(new)
            finally:
                with suppress(OSError):
                    os.unlink(draft, dir_fd=tmp)

    @contextmanager
    def _open(self, name: str) -> Iterator[int]:
        """Open a folder of the spool; OSError unless only we may write there."""
        spool = os.open(self._dir, _FOLDER)
        try:
            _check(spool, CONTROL_DIR)
            folder = os.open(name, _FOLDER, dir_fd=spool)
        finally:
            os.close(spool)
        try:
            _check(folder, f"{CONTROL_DIR}/{name}")
            yield folder
        finally:
            os.close(folder)


def _check(folder: int, shown: str) -> None:
    found = os.fstat(folder)
    if found.st_uid != os.geteuid() or found.st_mode & _OTHERS_WRITE:
        raise PermissionError(errno.EPERM, f"{shown} is not a folder that only we may write")


def _sweep(tmp: int, before_us: int) -> None:
    for entry in os.scandir(tmp):
        with suppress(OSError):
            if entry.stat(follow_symlinks=False).st_mtime_ns // 1000 < before_us:
                os.unlink(entry.name, dir_fd=tmp)


def _write(folder: int, name: str, text: bytes) -> None:
    fd = os.open(name, _PUBLISH, 0o600, dir_fd=folder)
    try:
        while text:
            text = text[os.write(fd, text) :]
        os.fsync(fd)
    finally:
        os.close(fd)


def _read(folder: int, name: str) -> bytes:
    """Read a small file that nobody else could have written; OSError for anything else."""
    fd = os.open(name, _READ, dir_fd=folder)
    try:
        found = os.fstat(fd)
        ours = found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_WRITE
        if not stat.S_ISREG(found.st_mode) or not ours or found.st_size > MAX_BYTES:
            raise OSError(errno.EINVAL, "not an answer")
        return os.read(fd, MAX_BYTES)
    finally:
        os.close(fd)
