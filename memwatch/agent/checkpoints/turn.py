"""One at a time, begun by one thread and ended by another, whatever interrupts the first."""

from __future__ import annotations

import threading


class Turn:
    """Held by a token: who is interrupted while he waits can tell whether he got it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._holder: object = None

    @property
    def taken(self) -> bool:
        """Whether somebody has it."""
        return self._holder is not None

    def take(self, token: object, *, wait: bool) -> bool:
        """Take it as `token`; without `wait` only where nobody has it."""
        with self._changed:
            while self._holder is not None:
                if not wait:
                    return False
                self._changed.wait()
            self._holder = token
        return True

    def leave(self, token: object) -> None:
        """Let the next one have it, if `token` has it."""
        with self._changed:
            if self._holder is token:
                self._holder = None
                self._changed.notify_all()
