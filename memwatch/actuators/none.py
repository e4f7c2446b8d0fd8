"""No way to reach an agent: what only other programs write is watched, and asked for nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from memwatch.actuators.actuator import Answer, Offer
from memwatch.domain.control import Hold
from memwatch.domain.errors import MemwatchError
from memwatch.domain.operations import HOLDS, JOBS, RELEASES
from memwatch.wal.spool_format import LEASE_US, AgentState


class NoActuator:
    """See `memwatch.actuators.actuator.Reach`: every operation is refused, with one reason."""

    name = "none"

    def __init__(self, why: str) -> None:
        self.no_commands = why
        self.ops: Mapping[str, Any] = {}
        self.epoch = 0
        self.engine_lease_us = LEASE_US
        self.alone = True

    def claim(self) -> None:
        """There is nothing to claim."""

    def let_go(self) -> None:
        """There is nothing to let go."""

    def claim_epoch(self, known: int = 0) -> int:
        """Return the next epoch: guards are told apart by it in their own log."""
        self.epoch = known + 1
        return self.epoch

    def renew_engine_while(self, _: object) -> None:
        """There are no holds to renew."""

    def state(self) -> AgentState | None:
        """Nobody speaks for the other program."""
        return None

    def offers(self) -> Mapping[str, Offer]:
        """Return all operations, none of which can be asked for."""
        refused = Offer(guarantee="–", why_not=self.no_commands)
        return dict.fromkeys((*JOBS, *HOLDS, *RELEASES), refused)

    def begin(self, *_: object) -> NoReturn:
        """Refuse."""
        raise MemwatchError(self.no_commands)

    def answer(self, _: str) -> Answer | None:
        """Nothing was begun."""
        return None

    def has(self, _: str) -> bool:
        """Nothing was handed over."""
        return False

    def withdraw(self, _: str) -> bool:
        """Nothing can be taken back."""
        return False

    def holds(self) -> tuple[Hold, ...]:
        """Nothing is held."""
        return ()

    def keep(self, _: int) -> tuple[str, ...]:
        """Nothing is due."""
        return ()
