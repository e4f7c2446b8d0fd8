"""Requests in flight: each has an id, a state that only evidence moves, and an end.

A request is written to `guard.wal` before it is handed to the agent; its state moves only when
the agent says so, in its spool or in its log, whichever comes first, or when the time is over in
which it could still do so. Source: D6, contracts.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import get_args

from msgspec.structs import replace

from memwatch.actuators.spool import Spool
from memwatch.domain.clock import Clock
from memwatch.domain.command import FINAL_STATES, Command, CommandInfo, CommandState
from memwatch.domain.errors import MemwatchError, SessionError
from memwatch.domain.record import Record
from memwatch.domain.text import inert
from memwatch.runtime.guard.recorder import Recorder
from memwatch.wal.spool_format import DEADLINE_US, TTL_US

GRACE_US = 5_000_000
"""How much later we give an agent up that said nothing."""
MOST_IN_FLIGHT = 32
SHOWN = 8
_SAID: Mapping[str, CommandState] = {
    "accepted": "accepted",
    "running": "running",
    "done": "done",
    "refused": "refused",
    "failed": "failed",
    "expired": "expired",
}
"""What an agent may say."""
_STATES: dict[str, CommandState] = {name: name for name in get_args(CommandState)}
_ORDER = ("asked", "accepted", "running")
"""A request moves on through these, never back; any other state is an end."""

Logged = tuple[str, str, int]
"""State, detail and time of an answer in the agent's log."""
OwnOperation = Callable[[Command], str]
"""What the guard itself does; returns why it failed, or nothing."""


class Ledger:
    """All requests of this guard, newest last. Thread-safe."""

    def __init__(
        self,
        spool: Spool,
        recorder: Recorder,
        clock: Clock,
        tell: Callable[[Record], None] = lambda _: None,
    ) -> None:
        """`tell` is given each record that was written."""
        self._spool = spool
        self._recorder = recorder
        self._clock = clock
        self._tell = tell
        self._lock = threading.Lock()
        self._known: dict[str, CommandInfo] = {}
        self._since_boot_us: dict[str, int] = {}
        self._own: dict[str, OwnOperation] = {}

    def serve(self, op: str, action: OwnOperation) -> None:
        """Let the guard itself carry out an operation."""
        self._own[op] = action

    def restore(self, records: Iterable[Record]) -> None:
        """Go on with the requests of the guard before: `intervention` records, in their order.

        Their end is looked for as if they were our own. What that guard itself was to do and did
        not is not done any more.
        """
        boot_us, wall_us = self._clock.boot_us(), self._clock.wall_us()
        with self._lock:
            for record in records:
                info = _restored(record, self._known.get(inert(record.text("id"), 60)))
                if info is not None:
                    age_us = max(wall_us - info.asked_us, 0)
                    self._known[info.id] = info
                    self._since_boot_us[info.id] = boot_us - age_us
        for info in self._in_flight():
            if info.op in self._own:
                self._move(info.id, "unknown", "the guard ended meanwhile")

    def submit(self, command: Command, agent_ops: Mapping[str, object], alive: bool) -> str:
        """Take a request and return its id; raises SessionError when nobody can carry it out."""
        own = self._own.get(command.op)
        if own is None:
            self._refuse_what_nobody_can_do(command, agent_ops, alive)
        now_us = self._clock.wall_us()
        info = CommandInfo(
            id=f"{now_us:x}-{secrets.token_hex(4)}",
            op=inert(command.op, 40),
            state="asked" if own is None else "accepted",
            asked_us=now_us,
            changed_us=now_us,
            origin=inert(command.origin, 20),
        )
        self._enter(info)
        self._write(info, sync=True)
        if own is not None:
            trouble = own(command)
            self._move(info.id, "failed" if trouble else "done", trouble)
            return info.id
        try:
            self._spool.publish(info.id, command, now_us)
        except MemwatchError as error:
            self._move(info.id, "failed", inert(str(error), 120))
        return info.id

    def follow(self, answers: Mapping[str, Logged], alive: bool) -> bool:
        """Look for answers in the agent's log (`answers`) and spool; True when one moved."""
        moved = False
        for info in self._in_flight():
            moved |= self._follow(info, answers.get(info.id), alive)
        return moved

    @property
    def waiting(self) -> bool:
        """Whether a request has not come to its end yet."""
        return bool(self._in_flight())

    def newest(self) -> tuple[CommandInfo, ...]:
        """Return the newest requests, newest last."""
        with self._lock:
            return tuple(self._known.values())[-SHOWN:]

    def _refuse_what_nobody_can_do(
        self, command: Command, agent_ops: Mapping[str, object], alive: bool
    ) -> None:
        if command.op not in agent_ops:
            raise SessionError(f"this agent does not offer {inert(command.op, 40)!r}")
        if not alive:
            raise SessionError("the agent is not running, nothing was asked of it")
        if len(self._in_flight()) >= MOST_IN_FLIGHT:
            raise SessionError(f"{MOST_IN_FLIGHT} requests wait for the agent, wait for it too")

    def _in_flight(self) -> list[CommandInfo]:
        with self._lock:
            return [info for info in self._known.values() if info.state not in FINAL_STATES]

    def _enter(self, info: CommandInfo) -> None:
        with self._lock:
            ended = [name for name, one in self._known.items() if one.state in FINAL_STATES]
            for name in ended[: max(len(ended) - MOST_IN_FLIGHT, 0)]:
                del self._known[name], self._since_boot_us[name]
            self._known[info.id] = info
            self._since_boot_us[info.id] = self._clock.boot_us()

    def _follow(self, info: CommandInfo, logged: Logged | None, alive: bool) -> bool:
        ack = self._spool.ack(info.id)
        state, detail = (ack.state, ack.detail) if ack else ("", "")
        if logged is not None and (logged[0] in FINAL_STATES or ack is None):
            state, detail = logged[0], logged[1]
        said = _SAID.get(state)
        if said is None or not _is_news(info.state, said):
            said, detail = self._overdue(info, alive)
        return said is not None and self._move(info.id, said, inert(detail, 120))

    def _overdue(self, info: CommandInfo, alive: bool) -> tuple[CommandState | None, str]:
        if not alive:
            return "unknown", "the agent is gone; whether it acted is not known"
        now_us = self._clock.boot_us()
        waited_us = now_us - self._since_boot_us.get(info.id, now_us) - GRACE_US
        if info.state == "asked" and waited_us > TTL_US:
            return "expired", "the agent did not answer"
        if info.state != "asked" and waited_us > TTL_US + DEADLINE_US:
            return "unknown", "the agent began and did not say how it ended"
        return None, ""

    def _move(self, name: str, state: CommandState, detail: str) -> bool:
        with self._lock:
            known = self._known.get(name)
            if known is None or not _is_news(known.state, state):
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
        self._tell(self._recorder.append("intervention", members, sync=sync))


def _restored(record: Record, before: CommandInfo | None) -> CommandInfo | None:
    state = _STATES.get(record.text("state"))
    name = inert(record.text("id"), 60)
    if state is None or not name or (before is not None and not _is_news(before.state, state)):
        return before
    return CommandInfo(
        id=name,
        op=inert(record.text("op"), 40),
        state=state,
        asked_us=before.asked_us if before else record.t_us,
        changed_us=record.t_us,
        origin=inert(record.text("origin"), 20),
        detail=inert(record.text("detail"), 120),
    )


def _is_news(known: CommandState, said: CommandState) -> bool:
    if known in FINAL_STATES:
        return False
    return said in FINAL_STATES or _ORDER.index(said) > _ORDER.index(known)
