"""A `Files` that kills its own process at the k-th call: before it, after it, or half-way."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Callable
from typing import Any, Literal

from memwatch.agent.files import Files
from tests.faults.failing_files import OPERATIONS, SYSTEM_NAMES
from tests.faults.forgetful_disk import ForgetfulDisk

Moment = Literal["before", "half", "after"]
MOMENTS: tuple[Moment, ...] = ("before", "half", "after")


class KillingFiles(Files):
    """Counts every call that changes something; the one with number `at` is the last.

    `disk` is told of each; `last_words` is called before the end, while no other thread calls;
    `fails` is asked before each, with its file, whether the disk is full then.
    """

    def __init__(
        self,
        at: int,
        moment: Moment,
        *,
        disk: ForgetfulDisk | None = None,
        last_words: Callable[[], None] = lambda: None,
        fails: Callable[[object], bool] = lambda _: False,
    ) -> None:
        self._left = at
        self._moment = moment
        self._disk, self._last_words, self._fails = disk, last_words, fails
        self.lock = threading.Lock()
        for name in OPERATIONS:
            setattr(self, name, self._counted(name, getattr(os, SYSTEM_NAMES.get(name, name))))

    def _counted(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            with self.lock:
                self._left -= 1
                if not self._left:
                    self._end(name, real, args, named)
                if self._fails(args[0]):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                result = real(*args, **named)
                if self._disk is not None:
                    self._disk.done(name, args, result)
                return result

        return call

    def _end(self, name: str, real: Callable[..., Any], args: Any, named: Any) -> None:
        if self._moment == "half" and name == "write":
            real(args[0], bytes(args[1])[: len(args[1]) // 2])
        elif self._moment == "after":
            result = real(*args, **named)
            if self._disk is not None:
                self._disk.done(name, args, result)
        self._last_words()
        os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()
