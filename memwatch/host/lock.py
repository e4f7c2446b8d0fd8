"""An advisory lock that says who holds it. It lives as long as its process, and no longer."""

from __future__ import annotations

import fcntl
import os
import time
import weakref
from pathlib import Path
from types import TracebackType

from memwatch.domain.errors import UsageError

RUN_LOCK = "run.lock"
"""Name of the lock in a run directory that its agent holds."""

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_PID_BYTES = 20
_TRIES = 25
_RETRY_S = 0.02
"""Somebody who only looks (`holder`) has the lock for an instant: that is no reason to give up."""


class LockHeldError(UsageError):
    """Somebody else holds the lock."""

    def __init__(self, path: Path, pid: int | None) -> None:
        super().__init__(f"{path} is held by process {pid or '(unknown)'}; stop that one first")
        self.path = path
        self.pid = pid
        """Process that holds it; None when it has not said so yet."""


class FileLock:
    """A held lock. The file stays when it is released: removing it would let two hold one name."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd
        _held.add(self)

    @classmethod
    def acquire(cls, path: Path) -> FileLock:
        """Take the lock; raises LockHeldError, or OSError where the file cannot be."""
        tries = 0
        while True:
            fd = os.open(path, _FLAGS, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_still(path, fd):
                    os.ftruncate(fd, 0)
                    os.pwrite(fd, b"%d\n" % os.getpid(), 0)
                    return cls(path, fd)
            except BlockingIOError:
                pid = _pid_in(fd)
                os.close(fd)
                tries += 1
                if tries == _TRIES:
                    raise LockHeldError(path, pid) from None
                time.sleep(_RETRY_S)
                continue
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)

    @property
    def mine(self) -> bool:
        """Whether this process still holds it: not after `release`, not in a forked child."""
        return self._fd >= 0

    def release(self) -> None:
        """Let go; more than once does no harm."""
        if self._fd >= 0:
            fcntl.flock(self._fd, fcntl.LOCK_UN)  # frees copies in forked children, too
            self._close()

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        os.close(fd)

    def __enter__(self) -> FileLock:
        """Return the lock itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release."""
        self.release()


def holder(path: Path) -> int | None:
    """Return the process that holds the lock at `path`, 0 when it did not say; None when free.

    Looks without creating anything; raises OSError other than "not found".
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _pid_in(fd) or 0
    finally:
        os.close(fd)
    return None


def _is_still(path: Path, fd: int) -> bool:
    """Whether the name still means the file that we locked."""
    try:
        return os.path.samestat(path.stat(follow_symlinks=False), os.fstat(fd))
    except FileNotFoundError:
        return False


def _pid_in(fd: int) -> int | None:
    text = os.pread(fd, _PID_BYTES, 0).strip()
    return int(text) if text.isdigit() else None


_held: weakref.WeakSet[FileLock] = weakref.WeakSet()


def _let_go_in_child() -> None:
    # A forked child would keep the lock alive after its parent died; closing its copy frees
    # nothing that the parent holds.
    for lock in list(_held):
        if lock.mine:
            lock._close()


os.register_at_fork(after_in_child=_let_go_in_child)
