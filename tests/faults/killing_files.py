"""A `Files` that kills its own process at the k-th call: before it, after it, or half-way."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any, Literal

from memwatch.agent.files import Files
from tests.faults.failing_files import OPERATIONS, SYSTEM_NAMES

Moment = Literal["before", "half", "after"]
MOMENTS: tuple[Moment, ...] = ("before", "half", "after")


class KillingFiles(Files):
    """Counts every call that changes something; the one with number `at` is the last."""

    def __init__(self, at: int, moment: Moment) -> None:
        self._left = at
        self._moment = moment
        for name in OPERATIONS:
            setattr(self, name, self._counted(name, getattr(os, SYSTEM_NAMES.get(name, name))))

    def _counted(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left:
                return real(*args, **named)
            if self._moment == "half" and name == "write":
                real(args[0], bytes(args[1])[: len(args[1]) // 2])
            elif self._moment == "after":
                real(*args, **named)
            os.kill(os.getpid(), signal.SIGKILL)
            return signal.pause()

        return call
