"""A `Files` whose calls fail on demand, as a full disk or a dying device makes them fail."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

from memwatch.agent.files import Files

OPERATIONS = (
    "open",
    "write",
    "fsync",
    "sync_data",
    "truncate",
    "rename",
    "unlink",
    "link",
    "allocate",
)


class FailingFiles(Files):
    """Fails the calls that the test names, by number (over all operations) or by operation.

    `short` lets a failing write take half of its bytes first, as a filling disk does.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.fail: Callable[[int, str], bool] = _nothing_fails
        """Told number and name of a call: whether it fails."""
        self.error = errno.ENOSPC
        self.short = False
        for name in OPERATIONS:
            setattr(self, name, self._guarded(name, getattr(os, SYSTEM_NAMES.get(name, name))))

    def fail_all(self, *names: str) -> None:
        """Let every call of these operations fail from now on."""
        self.fail = lambda _, name: name in names

    def fail_from(self, wanted: set[int]) -> None:
        """Let the calls with these numbers fail, counted from now on."""
        began = len(self.calls)
        self.fail = lambda number, _: number - began in wanted

    def heal(self) -> None:
        """Let nothing fail any more."""
        self.fail = _nothing_fails

    def _guarded(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            number = len(self.calls)
            self.calls.append(name)
            if not self.fail(number, name):
                return real(*args)
            if name == "write" and self.short:
                return real(args[0], bytes(args[1])[: len(args[1]) // 2])
            raise OSError(self.error, os.strerror(self.error))

        return call


SYSTEM_NAMES = {
    "truncate": "ftruncate",
    "sync_data": "fdatasync",
    "rename": "replace",
    "allocate": "posix_fallocate",
}


def _nothing_fails(_number: int, _name: str) -> bool:
    return False
