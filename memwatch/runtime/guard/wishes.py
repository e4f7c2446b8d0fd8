"""What people said to the engine: which plans to let go, and that breakers may close again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from memwatch.domain.clock import Clock
from memwatch.domain.command import Command
from memwatch.domain.operations import ENGINE, RELEASES
from memwatch.domain.text import inert

_KEPT = 16


class Wishes:
    """Taken from viewers, read by the warden. Thread-safe: each is one append or one store."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._approved: deque[str] = deque(maxlen=_KEPT)
        self._declined: deque[str] = deque(maxlen=_KEPT)
        self.released_m_us: int | None = None
        """Boot clock, when a person last released a hold of the engine."""
        self.reset_m_us: int | None = None
        """Boot clock, when a person last closed the breakers."""
        self.waiting_plan: Callable[[], str] = lambda: ""
        """The plan that waits for a person, as the engine says; empty for none."""

    @property
    def approved(self) -> frozenset[str]:
        """Plans that a person let go."""
        return frozenset(self._approved)

    @property
    def declined(self) -> frozenset[str]:
        """Plans that a person does not want."""
        return frozenset(self._declined)

    def approve(self, command: Command) -> str:
        """Let a plan go; returns why not, or nothing."""
        return self._answer(command, self._approved)

    def decline(self, command: Command) -> str:
        """Let a plan be; returns why not, or nothing."""
        return self._answer(command, self._declined)

    def reset(self, _: Command) -> str:
        """Close the breakers."""
        self.reset_m_us = self._clock.boot_us()
        return ""

    def notice(self, command: Command, engine_holds: frozenset[str]) -> None:
        """Note a person's request that releases what the engine holds (their ids)."""
        if command.op not in RELEASES or command.origin == ENGINE or command.dry_run:
            return
        args, ids = command.args, command.args.get("holds")
        named = set(ids) if isinstance(ids, list | tuple) else set()
        if args.get("all") is True or args.get("owner") == ENGINE or named & engine_holds:
            self.released_m_us = self._clock.boot_us()

    def _answer(self, command: Command, said: deque[str]) -> str:
        waiting = self.waiting_plan()
        plan = str(command.args.get("plan") or waiting)
        if not waiting or plan != waiting:
            return f"no plan {inert(plan, 60)} waits for an answer".replace("  ", " ")
        said.append(plan)
        return ""
