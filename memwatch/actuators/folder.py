"""The control folder of a run, reached anew for each act and checked on the way.

Every step goes from an open folder to the next, so that nothing put in its place meanwhile leads
us elsewhere: the run directory is the one that was opened first, `control/` and what lies in it
are folders that only we may write. Files that others could have written are refused unread.
Source: control, 2.4, 2.5; D6.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memwatch.domain.errors import MemwatchError
from memwatch.wal.manifest import parse_run
from memwatch.wal.segment import CONTROL_DIR, RUN_FILE
from memwatch.wal.spool_format import MAX_BYTES, TMP

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDER = _DIRECTORY | os.O_NOFOLLOW
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FORGOTTEN_US = 3600 * 1_000_000
"""A draft this old was left by a writer that was killed."""
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MAX_RUN_FILE_BYTES = 1_000_000


class ControlFolder:
    """`<run>/control`. Methods raise OSError unless they say otherwise."""

    def __init__(self, run_dir: Path, run_id: str) -> None:
        self._run_dir = run_dir
        self.run_id = run_id
        try:
            self._is: tuple[int, int] | None = _which(run_dir.stat())
        except OSError:  # told by whatever is tried first
            self._is = None
        self._claimed: int | None = None

    def claim(self) -> bool:
        """Be the one guard that acts on this run, until `let_go`; False while another one is.

        The lock lies on the folder itself, so it holds between guards of different homes, and goes
        with its process. True where nobody can tell: no folder, a file system without locks.
        """
        try:
            with self.open() as folder:
                if self._claimed is not None and os.path.sameopenfile(self._claimed, folder):
                    return True
                self.let_go()
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._claimed = os.dup(folder)
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True

    def let_go(self) -> None:
        """Let another guard act."""
        if self._claimed is not None:
            os.close(self._claimed)
            self._claimed = None

    @contextmanager
    def open(self, name: str = "") -> Iterator[int]:
        """Open a folder of the spool, by default the spool itself."""
        with self._run() as run:
            spool = os.open(CONTROL_DIR, _FOLDER, dir_fd=run)
        try:
            _check(spool, CONTROL_DIR)
            folder = os.open(name, _FOLDER, dir_fd=spool) if name else os.dup(spool)
        finally:
            os.close(spool)
        try:
            _check(folder, f"{CONTROL_DIR}/{name}")
            yield folder
        finally:
            os.close(folder)

    @property
    def is_there(self) -> bool:
        """Whether the run has a control folder that we may use."""
        try:
            with self.open():
                return True
        except OSError:
            return False

    def check_run(self) -> None:
        """Raise MemwatchError unless the directory still is that of the run we were made for."""
        try:
            with self._run() as run:
                text = read_file(run, RUN_FILE, _MAX_RUN_FILE_BYTES)
            found = parse_run(text).run_id
        except FileNotFoundError:
            raise MemwatchError("the run directory is gone; nothing was asked") from None
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise MemwatchError(f"the run cannot be told for certain: {why}") from None
        if found != self.run_id:
            raise MemwatchError("another run lies in this directory by now; nothing was asked")

    def publish(self, folder: str, name: str, text: bytes, now_us: int, *, replace: bool) -> None:
        """Put a whole file under a name; an existing one fails unless `replace`.

        It is not on the device then: see `sync`.
        """
        draft = f"{name}.{secrets.token_hex(4)}"
        with self.open(TMP) as tmp, self.open(folder) as target:
            _sweep(tmp, now_us - _FORGOTTEN_US)
            put = os.replace if replace else os.link
            try:
                _write(tmp, draft, text)
                put(draft, name, src_dir_fd=tmp, dst_dir_fd=target)
            finally:
                with suppress(OSError):
                    os.unlink(draft, dir_fd=tmp)

    def sync(self, folder: str, name: str) -> None:
        """Have a name, or that it is no more, outlive a power loss, if the disk lets us."""
        with suppress(OSError), self.open(folder) as opened:
            with suppress(FileNotFoundError):
                fd = os.open(name, _READ, dir_fd=opened)
                try:
                    os.fsync(fd)
                finally:
                    os.close(fd)
            os.fsync(opened)

    def read(self, folder: str, name: str) -> bytes:
        """Read a small file that nobody else could have written."""
        with self.open(folder) as opened:
            return read_file(opened, name)

    def remove(self, folder: str, name: str) -> None:
        """Remove a name; what it links to stays."""
        with self.open(folder) as opened:
            os.unlink(name, dir_fd=opened)

    def names(self, folder: str) -> list[str]:
        """Return what lies in a folder, in order; hidden names are drafts."""
        with self.open(folder) as opened, os.scandir(opened) as entries:
            return sorted(entry.name for entry in entries if not entry.name.startswith("."))

    @contextmanager
    def _run(self) -> Iterator[int]:
        run = os.open(self._run_dir, _DIRECTORY)
        try:
            found = os.fstat(run)
            if _which(found) != self._is:
                raise FileNotFoundError(errno.ENOENT, "the run directory was replaced")
            if found.st_uid != os.geteuid():
                raise PermissionError(errno.EPERM, "the run directory is not ours")
            yield run
        finally:
            os.close(run)


def read_file(folder: int, name: str, most: int = MAX_BYTES) -> bytes:
    """Read a small file that nobody else could have written; OSError for anything else."""
    fd = os.open(name, _READ, dir_fd=folder)
    try:
        found = os.fstat(fd)
        ours = found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_WRITE
        if not stat.S_ISREG(found.st_mode) or not ours or found.st_size > most:
            raise OSError(errno.EINVAL, "not a small file of our own")
        if found.st_nlink > 2:  # publishing by link makes two for a moment
            raise OSError(errno.EMLINK, "a file with other names")
        return os.read(fd, most)
    finally:
        os.close(fd)


@contextmanager
def handing_over(what: str) -> Iterator[None]:
    """Word what can go wrong while something is written for the agent, as MemwatchError."""
    try:
        yield
    except ValueError as error:
        raise MemwatchError(f"{what} is too long: {error}") from None
    except (TypeError, RecursionError) as error:  # what no JSON holds
        raise MemwatchError(f"{what} cannot be written down: {error}") from None
    except OSError as error:
        why = error.strerror or str(error)
        raise MemwatchError(f"{what} cannot be handed over: {why}") from None


def _which(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


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
    fd = os.open(name, _CREATE, 0o600, dir_fd=folder)
    try:
        while text:
            text = text[os.write(fd, text) :]
    finally:
        os.close(fd)
