"""The spool of a run as its agent sees it: commands in, acknowledgements out.

    control/tmp/   drafts of the writers, never looked at
    control/new/   published commands, `<priority>-<id>.json`
    control/cur/   claimed by the agent
    control/ack/   the agent's answers, `<id>.json`, replaced whole
    control/bad/   refused before parsing

A command is a stranger's text: it is opened without following or waiting, judged by its inode,
and parsed strictly. Members that begin with `x_` are ignored, any other unknown one refuses it.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from memwatch.agent.files import Files

MAX_COMMAND_BYTES = 16_384

_NAME = re.compile(r"(\d)-([0-9A-Za-z][0-9A-Za-z._-]{0,99})\.json")
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

NEW, CUR, ACK, BAD = "new", "cur", "ack", "bad"
_FOLDERS = ("tmp", NEW, CUR, ACK, BAD)


class RefusedError(ValueError):
    """A command that is not obeyed; the text says why."""


class Sender(Struct, frozen=True):
    """Who asks."""

    uid: int = -1
    host: str = ""
    pid: int = 0
    origin: str = "operator"


class CommandFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command as published."""

    proto: int
    id: str
    run_id: str
    op: str
    issued_us: int
    ttl_us: int = 60_000_000
    """It must be running within this time from its issue."""
    deadline_us: int = 300_000_000
    """It must have ended within this time from its acceptance."""
    args: dict[str, Any] = {}
    by: Sender = Sender()


class Ack(Struct, frozen=True, kw_only=True):
    """An answer as published. A final state never changes."""

    proto: int = 1
    id: str
    run_id: str
    seq: int
    state: str
    wall_us: int
    boot_us: int
    pid: int
    detail: str = ""
    result: dict[str, Any] = {}


def parse_name(name: str) -> tuple[int, str] | None:
    """Return priority and id that a file name states, or None for another name."""
    match = _NAME.fullmatch(name)
    return (int(match[1]), match[2]) if match and name.isascii() else None


class Spool:
    """The folder `control/` of a run. Methods raise OSError unless they say otherwise."""

    def __init__(self, path: Path, files: Files) -> None:
        self.path = path
        self._files = files
        for folder in (path, *(path / name for name in _FOLDERS)):
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
            return sorted(e.name for e in os.scandir(fd) if not e.name.startswith("."))
        finally:
            os.close(fd)

    def read(self, folder: str, name: str) -> CommandFile:
        """Return a command; raises RefusedError, or FileNotFoundError when it is gone again."""
        parsed = parse_name(name)
        if parsed is None:
            raise RefusedError("its file name is not <priority>-<id>.json")
        command = _parse(_read(self.path / folder / name))
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
        """Publish an answer, whole and durable."""
        path = self.path / ACK / f"{ack.id}.json"
        self._files.replace(path, msgspec.json.encode(ack), mode=0o600)

    def ack(self, command_id: str) -> Ack | None:
        """Return the stored answer to an id; None when there is none that can be read."""
        try:
            text = _read(self.path / ACK / f"{command_id}.json")
            return msgspec.json.decode(text, type=Ack)
        except (OSError, ValueError, RecursionError):
            return None

    def sweep(self, older_than_us: int) -> None:
        """Remove answers and refused files that were written before an instant."""
        for folder in (ACK, BAD):
            for entry in os.scandir(self.path / folder):
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
        if found.st_size > MAX_COMMAND_BYTES:
            raise RefusedError(f"it is longer than {MAX_COMMAND_BYTES} bytes")
        return os.read(fd, MAX_COMMAND_BYTES + 1)[:MAX_COMMAND_BYTES]
    finally:
        os.close(fd)


def _parse(text: bytes) -> CommandFile:
    try:
        members = msgspec.json.decode(text, type=dict[str, Any])
        known = {name: value for name, value in members.items() if not name.startswith("x_")}
        command = msgspec.convert(known, CommandFile)
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"it is not a command: {error}") from None
    if command.proto != 1:
        raise RefusedError(f"protocol {command.proto} is not spoken here")
    return command
