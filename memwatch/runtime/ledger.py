"""Requests in flight: each has an id, a state that only evidence moves, and an end.

A request is written to `guard.wal` before it is handed to the agent; its state moves only when
the agent says so, in its spool or in its log, whichever comes first. Source: D6, contracts.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from memwatch.actuators.spool import Spool
from memwatch.domain.clock import Clock
from memwatch.domain.command import FINAL_STATES, Command, CommandInfo, CommandState
from memwatch.domain.errors import MemwatchError, SessionError
from memwatch.domain.text import inert
from memwatch.runtime.recorder import Recorder

TTL_US = 60_000_000
"""A command that the agent did not take by then is withdrawn by the agent as expired."""
_SHOWN = 8
_STATES: Mapping[str, CommandState] = {
    "accepted": "accepted",
    "running": "running",
    "done": "done",
    "refused": "refused",
    "failed": "failed",
    "expired": "expired",
}


class Ledger:
    """All requests of this guard, newest last. Thread-safe."""

    def __init__(self, spool: Spool, recorder: Recorder, clock: Clock) -> None:
        self._spool = spool
        self._recorder = recorder
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, CommandInfo] = {}
        self._asked_boot_us: dict[str, int] = {}
        self._own: dict[str, Callable[[Command], None]] = {}

    def serve(self, op: str, action: Callable[[Command], None]) -> None:
        """Let the guard itself carry out an operation."""
        self._own[op] = action

    def submit(self, command: Command, agent_ops: Mapping[str, object], alive: bool) -> str:
        """Take a request and return its id; raises SessionError when nobody can carry it out."""
        own = self._own.get(command.op)
        if own is None and command.op not in agent_ops:
            raise SessionError(f"this agent does not offer {inert(command.op, 40)!r}")
        if own is None and not alive:
            raise SessionError("the agent is not running, nothing was asked of it")
        now_us = self._clock.wall_us()
        name = f"{now_us:x}-{secrets.token_hex(4)}"
        info = CommandInfo(
            id=name,
            op=command.op,
            state="asked",
            asked_us=now_us,
            changed_us=now_us,
            origin=inert(command.origin, 20),
        )
        with self._lock:
            self._known[name] = info
            self._asked_boot_us[name] = self._clock.boot_us()
            while len(self._known) > 4 * _SHOWN:
                oldest = next(iter(self._known))
                del self._known[oldest], self._asked_boot_us[oldest]
        self._write(info, sync=True)
        if own is not None:
            own(command)
            self._move(name, "done", "")
            return name
        try:
            self._spool.publish(name, command, now_us, TTL_US)
        except MemwatchError as error:
            self._move(name, "failed", str(error))
        return name

    def follow(self, answers: Mapping[str, tuple[str, str, int]], alive: bool) -> bool:
        """Look for answers in the agent's log (`answers`) and spool; True when one moved."""
        with self._lock:
            waiting = [info for info in self._known.values() if info.state not in FINAL_STATES]
        moved = False
        for info in waiting:
            moved |= self._follow(info, answers.get(info.id), alive)
        return moved

    def newest(self) -> tuple[CommandInfo, ...]:
        """Return the newest requests, newest last."""
        with self._lock:
            return tuple(self._known.values())[-_SHOWN:]

    def _follow(self, info: CommandInfo, logged: tuple[str, str, int] | None, alive: bool) -> bool:
        ack = self._spool.ack(info.id)
        state, detail = (ack.state, ack.detail) if ack else ("", "")
        if logged is not None and logged[0] in FINAL_STATES:
            state, detail = logged[0], logged[1]
        known = _STATES.get(state)
        if known is None or known == info.state:
            known, detail = self._overdue(info, alive)
        return known is not None and self._move(info.id, known, inert(detail, 120))

    def _overdue(self, info: CommandInfo, alive: bool) -> tuple[CommandState | None, str]:
        if not alive:
            return "unknown", "the agent is gone; whether it acted is not known"
        waited_us = self._clock.boot_us() - self._asked_boot_us.get(info.id, 0)
        if info.state == "asked" and waited_us > TTL_US + 5_000_000:
            return "expired", "the agent did not answer"
        return None, ""

    def _move(self, name: str, state: CommandState, detail: str) -> bool:
        with self._lock:
            known = self._known.get(name)
            if known is None or known.state == state or known.state in FINAL_STATES:
                return False
            now_us = self._clock.wall_us()
            info = replace(known, state=state, detail=detail, changed_us=now_us)
            self._known[name] = info
        self._write(info)
        return True

    def _write(self, info: CommandInfo, *, sync: bool = False) -> None:
        members = {
            "id": info.id,
            "op": info.op,
            "state": info.state,
            "detail": info.detail,
            "origin": info.origin,
        }
        self._recorder.append("intervention", members, sync=sync)
