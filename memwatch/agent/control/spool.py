"""The spool of a run as its agent sees it: commands in, acknowledgements out.

A command is a stranger's text: it is opened without following or waiting, judged by its inode,
and parsed strictly. `memwatch.wal.spool_format` says what the files are called and hold.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from memwatch.agent.files import Files
from memwatch.wal.spool_format import (
    ACK,
    BAD,
    CUR,
    FOLDERS,
    MAX_BYTES,
    NEW,
    Ack,
    CommandFile,
    ack_name,
    encode,
    parse_ack,
    parse_command,
    parse_name,
)

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class RefusedError(ValueError):
    """A command that is not obeyed; the text says why."""


class Spool:
    """The folder `control/` of a run. Methods raise OSError unless they say otherwise."""

    def __init__(self, path: Path, files: Files) -> None:
        self.path = path
        self._files = files
        for folder in (path, *(path / name for name in FOLDERS)):
            folder.mkdir(mode=0o700, exist_ok=True)
            _check(folder, os.lstat(folder))

    def marker(self) -> int:
        """Return a number that changes when a command is published."""
        return (self.path / NEW).stat(follow_symlinks=False).st_mtime_ns

    def names(self, folder: str) -> list[str]:
        """Return what lies in `new` or `cur`, in order; hidden names are no commands."""
        _check(self.path, os.lstat(self.path))
        fd = os.open(self.path / folder, _FOLDER)
        try:
            _check(self.path / folder, os.fstat(fd))
            with os.scandir(fd) as entries:
                return sorted(entry.name for entry in entries if not entry.name.startswith("."))
        finally:
            os.close(fd)

    def read(self, folder: str, name: str) -> CommandFile:
        """Return a command; raises RefusedError, or FileNotFoundError when it is gone again."""
        parsed = parse_name(name)
        if parsed is None:
            raise RefusedError("its file name is not <priority>-<id>.json")
        text = _read(self.path / folder / name)
        try:
            command = parse_command(text)
        except ValueError as error:
            raise RefusedError(str(error)) from None
        if command.id != parsed[1]:
            raise RefusedError("the id inside is not the one of its name")
        return command

    def claim(self, name: str) -> None:
        """Take a published command for us."""
        self._files.rename(self.path / NEW / name, self.path / CUR / name)

    def drop(self, folder: str, name: str) -> None:
        """Remove a command that is answered."""
        self._files.discard(self.path / folder / name)

    def set_aside(self, folder: str, name: str) -> None:
        """Move what is no command out of the way, unread."""
        self._files.rename(self.path / folder / name, self.path / BAD / name)

    def write_ack(self, ack: Ack) -> None:
        """Publish an answer, whole and durable; a result too long for it is left out."""
        try:
            text = encode(ack)
        except ValueError as error:
            text = encode(replace(ack, result={"left_out": str(error)}))
        self._files.replace(self.path / ACK / ack_name(ack.id), text, mode=0o600)

    def ack(self, command_id: str) -> Ack | None:
        """Return the stored answer to an id; None when there is none that can be read."""
        try:
            return parse_ack(_read(self.path / ACK / ack_name(command_id)))
        except (OSError, ValueError):
            return None

    def sweep(self, older_than_us: int) -> None:
        """Remove answers and refused files that were written before an instant."""
        for folder in (ACK, BAD):
            with os.scandir(self.path / folder) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):  # somebody else was faster
                        if entry.stat(follow_symlinks=False).st_mtime_ns // 1000 < older_than_us:
                            self._files.discard(Path(entry.path))


def _check(path: Path, found: os.stat_result) -> None:
    """Raise PermissionError unless it is a folder that nobody but us may write."""
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    if not ours or found.st_mode & _OTHERS_WRITE:
        raise PermissionError(errno.EPERM, f"{path} is not a folder that only we may write")


def _read(path: Path) -> bytes:
    """Read a small file that nobody else could have written; refuse before reading."""
    try:
        fd = os.open(path, _READ)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RefusedError(f"it cannot be opened: {error.strerror}") from None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise RefusedError("it is not a regular file")
        if found.st_uid not in (os.geteuid(), 0) or found.st_mode & _OTHERS_WRITE:
            raise RefusedError("others than its owner and we could have written it")
        if found.st_nlink > 2:  # publishing by link makes two for a moment
            raise RefusedError("it has other names")
        if found.st_size > MAX_BYTES:
            raise RefusedError(f"it is longer than {MAX_BYTES} bytes")
        return os.read(fd, MAX_BYTES + 1)[:MAX_BYTES]
    finally:
        os.close(fd)
