"""The spool of a run as its agent sees it: commands and holds in, acknowledgements out.

Both are a stranger's text: opened without following or waiting, judged by its inode, and parsed
strictly. `memwatch.wal.spool_format` says what the files are called and hold.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from memwatch.agent.control.operation import RefusedError
from memwatch.agent.files import Files
from memwatch.wal.spool_format import (
    ACK,
    BAD,
    CUR,
    FOLDERS,
    HOLD,
    MAX_BYTES,
    NEW,
    STATE_FILE,
    Ack,
    AgentState,
    CommandFile,
    HoldFile,
    ack_name,
    encode,
    parse_ack,
    parse_command,
    parse_hold,
    parse_hold_name,
    parse_name,
    parse_state,
)

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class Stamp(NamedTuple):
    """What changes when a file is replaced."""

    inode: int
    mtime_ns: int
    bytes: int


class Spool:
    """The folder `control/` of a run. Methods raise OSError unless they say otherwise."""

    def __init__(self, path: Path, files: Files) -> None:
        self.path = path
        self._files = files
        self.prepare()

    def prepare(self) -> None:
        """Make the folders that are missing; PermissionError for one that is not ours."""
        for folder in (self.path, *(self.path / name for name in FOLDERS)):
            folder.mkdir(mode=0o700, exist_ok=True)
            _check(folder, os.lstat(folder))

    def marker(self) -> tuple[int, int]:
        """Return what changes when a command or a hold is published."""
        return _mtime_ns(self.path / NEW), _mtime_ns(self.path / HOLD)

    def names(self, folder: str) -> list[str]:
        """Return what lies in a folder, in order; hidden names are drafts."""
        with self._listed(folder) as entries:
            return sorted(entry.name for entry in entries if not entry.name.startswith("."))

    def stamps(self, folder: str) -> dict[str, Stamp]:
        """Return names as `names` does, each with what tells a replaced file."""
        found = {}
        with self._listed(folder) as entries:
            for entry in entries:
                if not entry.name.startswith("."):
                    with suppress(FileNotFoundError):
                        seen = entry.stat(follow_symlinks=False)
                        found[entry.name] = Stamp(seen.st_ino, seen.st_mtime_ns, seen.st_size)
        return found

    def read(self, folder: str, name: str) -> tuple[CommandFile, int]:
        """Return a command and when its file was written (wall clock, us).

        Raises RefusedError, or FileNotFoundError when it is gone again.
        """
        parsed = parse_name(name)
        if parsed is None:
            raise RefusedError("its file name is not <priority>-<id>.json")
        text, written_us = _read(self.path / folder / name)
        try:
            command = parse_command(text)
        except ValueError as error:
            raise RefusedError(str(error)) from None
        if command.id != parsed[1]:
            raise RefusedError("the id inside is not the one of its name")
        return command, written_us

    def read_hold(self, name: str) -> tuple[str, HoldFile]:
        """Return owner and text of a hold; raises as `read` does."""
        named = parse_hold_name(name)
        if named is None:
            raise RefusedError("its file name is not <owner>-<pause|read_only>.json")
        text, _ = _read(self.path / HOLD / name)
        try:
            hold = parse_hold(text)
        except ValueError as error:
            raise RefusedError(str(error)) from None
        if hold.op != named[1]:
            raise RefusedError("the kind inside is not the one of its name")
        return named[0], hold

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
            return parse_ack(_read(self.path / ACK / ack_name(command_id))[0])
        except (OSError, ValueError):
            return None

    def state(self) -> AgentState | None:
        """Return what `state.json` says; None when it says nothing that can be read."""
        try:
            return parse_state(_read(self.path / STATE_FILE)[0])
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

    @contextmanager
    def _listed(self, folder: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        """Open a folder for listing; PermissionError unless only we may write there."""
        _check(self.path, os.lstat(self.path))
        fd = os.open(self.path / folder, _FOLDER)
        try:
            _check(self.path / folder, os.fstat(fd))
            with os.scandir(fd) as entries:
                yield entries
        finally:
            os.close(fd)


def _mtime_ns(path: Path) -> int:
    return path.stat(follow_symlinks=False).st_mtime_ns


def _check(path: Path, found: os.stat_result) -> None:
    """Raise PermissionError unless it is a folder that nobody but us may write."""
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    if not ours or found.st_mode & _OTHERS_WRITE:
        raise PermissionError(errno.EPERM, f"{path} is not a folder that only we may write")


def _read(path: Path) -> tuple[bytes, int]:
    """Read a small file that nobody else could have written; refuse before reading.

    Returns its text and when it was written (wall clock, us).
    """
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
        return os.read(fd, MAX_BYTES), found.st_mtime_ns // 1000
    finally:
        os.close(fd)
