"""The operator's side of a control spool: publish commands, read acknowledgements.

A draft is written whole and synced in `tmp/`, then published by link() into `new/`: an existing
name fails, nothing is ever replaced. Only these folders are written, and only below a run that is
ours. Every step is taken from an open folder to the next, so that nothing put in its place
meanwhile leads us elsewhere. `memwatch.wal.spool_format` says what the files hold.
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

from memwatch.domain.command import Command
from memwatch.domain.errors import MemwatchError
from memwatch.wal.segment import CONTROL_DIR
from memwatch.wal.spool_format import (
    ACK,
    MAX_BYTES,
    NEW,
    PROTO,
    TMP,
    Ack,
    CommandFile,
    Sender,
    ack_name,
    command_name,
    encode,
    parse_ack,
)

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PUBLISH = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FORGOTTEN_US = 3600 * 1_000_000
"""A draft this old was left by a writer that was killed."""
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class Spool:
    """The control folder of one run."""

    def __init__(self, run_dir: Path, run_id: str) -> None:
        self._dir = run_dir / CONTROL_DIR
        self._run_id = run_id

    def publish(self, name: str, command: Command, now_us: int) -> None:
        """Put a command where the agent finds it; raises MemwatchError with the reason."""
        by = Sender(os.getuid(), os.uname().nodename, os.getpid(), command.origin)
        file = CommandFile(
            proto=PROTO,
            id=name,
            run_id=self._run_id,
            op=command.op,
            args=command.args,
            issued_us=now_us,
            by=by,
        )
        try:
            self._link(command_name(name, command.op), encode(file), now_us)
        except ValueError as error:
            raise MemwatchError(f"the command is too long: {error}") from None
        except OSError as error:
            why = error.strerror or str(error)
            raise MemwatchError(f"the command cannot be handed over: {why}") from None

    def ack(self, name: str) -> Ack | None:
        """Return the newest answer to a command, or None when there is no readable one."""
        try:
            with self._open(ACK) as ack_dir:
                answer = parse_ack(_read(ack_dir, ack_name(name)))
        except (OSError, ValueError):
            return None
        return answer if answer.id == name and answer.run_id == self._run_id else None

    def _link(self, name: str, text: bytes, now_us: int) -> None:
        draft = f"{name}.{secrets.token_hex(4)}"
        with self._open(TMP) as tmp, self._open(NEW) as new:
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
    with os.scandir(tmp) as entries:
        for entry in entries:
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
