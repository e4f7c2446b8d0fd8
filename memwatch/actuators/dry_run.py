"""An actuator that touches nothing: what the engine would do is said and not done.

Source: R8; control, F41.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from memwatch.actuators.actuator import Actuator, Answer, Offer
from memwatch.domain.command import Command
from memwatch.domain.control import Hold

_REMEMBERED = 128


class DryRunActuator:
    """Offers what another one does, and does none of it: each request is `done` at once."""

    name = "dry run"

    def __init__(self, inner: Actuator) -> None:
        self._inner = inner
        self._lock = threading.Lock()
        self._asked: dict[str, Answer] = {}

    def offers(self) -> Mapping[str, Offer]:
        """Return what the other one offers."""
        return self._inner.offers()

    def begin(self, command: Command, now_us: int) -> None:
        """Take note; nothing is handed over."""
        del now_us
        with self._lock:
            self._asked.setdefault(
                command.id, Answer(state="done", detail="dry run: nothing was asked")
            )
            while len(self._asked) > _REMEMBERED:
                del self._asked[next(iter(self._asked))]

    def answer(self, command_id: str) -> Answer | None:
        """Return `done` for what was begun."""
        with self._lock:
            return self._asked.get(command_id)

    def withdraw(self, command_id: str) -> bool:
        """Return False: what was begun is done."""
        del command_id
        return False

    def holds(self) -> tuple[Hold, ...]:
        """Return what holds the agent."""
        return self._inner.holds()

    def keep(self, m_us: int) -> tuple[str, ...]:
        """Do nothing: what the other one keeps is kept by it."""
        del m_us
        return ()
