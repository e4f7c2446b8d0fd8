"""Requests in flight: each has an id, a state that only evidence moves, and an end.

A request is written to `guard.wal` before it is handed to the agent; its state moves only when
the agent says so, in its spool or in its log, whichever comes first, or when the time is over in
which it could still do so. What the engine asks is not done when it cannot be written down; what
a person asks is, and says so. Source: D6, R8, contracts; control, F46.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from memwatch.actuators.actuator import Actuator, Answer
from memwatch.actuators.inert_result import inert_result
from memwatch.domain.clock import Clock
from memwatch.domain.command import AGENT_STATES, FINAL_STATES, Command, CommandInfo, CommandState
from memwatch.domain.errors import MemwatchError, SessionError
from memwatch.domain.operations import ENGINE, RELEASES
from memwatch.domain.record import Record
from memwatch.domain.text import inert
from memwatch.domain.wording import request_text
from memwatch.runtime.guard.recorder import Recorder
from memwatch.runtime.guard.requests import (
    DETAIL,
    Request,
    is_news,
    members,
    restored,
    time_to_live_us,
    why_not_confirmed,
    why_not_offered,
)
from memwatch.wal.spool_format import DEADLINE_US, is_id

GRACE_US = 5_000_000
"""How much later we give an agent up that said nothing."""
MOST_IN_FLIGHT = 32
"""Requests of people that may wait for the agent; the engine's are not among them."""
_REMEMBERED = 64

Logged = tuple[str, str, int]
"""State, detail and time of an answer in the agent's log."""
OwnOperation = Callable[[Command], str]
"""What the guard itself does; returns why it failed, or nothing."""


class Ledger:
    """All requests of this guard, newest last. Thread-safe."""

    def __init__(
        self,
        actuator: Actuator,
        recorder: Recorder,
        clock: Clock,
        tell: Callable[[Record], None] = lambda _: None,
        *,
        names: Collection[str] = (),
    ) -> None:
        """`tell` is given each record that was written; a person confirms by one of `names`."""
        self._actuator = actuator
        self._recorder = recorder
        self._clock = clock
        self._tell = tell
        self._names = tuple(names)
        self._lock = threading.RLock()
        self._known: dict[str, Request] = {}
        self._own: dict[str, OwnOperation] = {}

    def serve(self, op: str, action: OwnOperation) -> None:
        """Let the guard itself carry out an operation."""
        self._own[op] = action

    def restore(self, records: Iterable[Record]) -> None:
        """Go on with the requests of the guard before: `intervention` records, in their order.

        Their end is looked for as if they were our own. What that guard itself was to do and did
        not is not done any more, and of a release it alone could tell the end. What it had no time
        to hand over the engine may ask once more.
        """
        boot_us, wall_us = self._clock.boot_us(), self._clock.wall_us()
        with self._lock:
            for record in records:
                before = self._known.get(inert(record.text("id"), 100))
                request = restored(record, before, boot_us, wall_us)
                if request is not None:
                    self._known[request.info.id] = request
        for request in self._in_flight():
            if request.info.op in self._own or request.info.op in RELEASES:
                self._move(request.info.id, "unknown", "the guard ended meanwhile")
            elif request.info.state == "asked":
                request.never_sent = not self._actuator.has(request.info.id)

    def submit(self, command: Command, alive: bool = True) -> str:
        """Take a request and return its id, the one that it brings or a new one.

        An id that is known is the same request. What cannot be done raises SessionError for a
        person, and is entered as `refused` for the engine, which goes on with its plan.
        """
        own = self._own.get(command.op)
        by_engine = command.origin == ENGINE
        with self._lock:
            known = self._known.get(command.id)
            if known is not None and not known.lost:
                return command.id
            refusal = self._refusal(command, alive, own=own is not None)
            if refusal and not by_engine:
                raise SessionError(refusal)
            request = self._enter(command, own=own is not None, refusal=refusal)
            name, said = request.info.id, members(request)
        written = (
            self._write(said, sync=not by_engine).lsn > 0
        )  # its decision was synced, or urgent
        if refusal:
            return name
        if not written and by_engine:
            self._move(name, "refused", "guard.wal cannot be written, so nothing is done by itself")
        elif own is not None:
            self._do(name, own, command)
        else:
            if not written:
                self._note(name, f"not recorded ({self._recorder.why})")
            self._begin(replace(command, id=name))
        return name

    def withdraw(self, command_id: str, why: str) -> bool:
        """Take back what the agent has not begun; True when it will not be carried out.

        Either way it keeps no other plan waiting any more.
        """
        with self._lock:
            request = self._known.get(command_id)
            if request is None or not request.in_flight or request.info.op in self._own:
                return False
            request.given_up = True
        if not (self._actuator.withdraw(command_id) or request.lost):
            return False
        return self._move(command_id, "expired", inert(f"withdrawn: {why}", DETAIL))

    def follow(self, answers: Mapping[str, Logged], alive: bool) -> bool:
        """Look for answers in the agent's log (`answers`) and spool; True when one moved."""
        moved = False
        for request in self._in_flight():
            moved |= self._follow(request, answers.get(request.info.id), alive)
        return moved

    @property
    def waiting(self) -> bool:
        """Whether a request has not come to its end yet."""
        return bool(self._in_flight())

    def commands(self) -> dict[str, CommandInfo]:
        """Return what is remembered, by id, newest last: what is in flight, and what ended last.

        One that was never handed over is not among them.
        """
        with self._lock:
            return {name: one.info for name, one in self._known.items() if not one.lost}

    def command(self, command_id: str) -> CommandInfo:
        """Return how far a request came: `unknown` for one that is not remembered."""
        with self._lock:
            request = self._known.get(command_id)
        if request is not None:
            return request.info
        name, why = inert(command_id, 100), "this guard knows no such request"
        return CommandInfo(id=name, op="", state="unknown", asked_us=0, changed_us=0, detail=why)

    def _refusal(self, command: Command, alive: bool, *, own: bool) -> str:
        if command.id and not is_id(command.id):
            return "the request has an id that is none"
        refusal = why_not_confirmed(command, self._names)
        if refusal or own:
            return refusal
        refusal = why_not_offered(command, self._actuator.offers())
        if refusal:
            return refusal
        if not alive:
            return "the agent is not running, nothing was asked of it"
        return self._crowded(command)

    def _crowded(self, command: Command) -> str:
        """Return why a request must wait, or nothing. One plan is in flight at a time."""
        now_us, in_flight = self._clock.boot_us(), self._in_flight()
        if command.origin != ENGINE:
            waiting = sum(request.info.origin != ENGINE for request in in_flight)
            full = waiting >= MOST_IN_FLIGHT
            return f"{waiting} requests wait for the agent, wait for it too" if full else ""
        others = (one.info.plan for one in in_flight if one.blocks(command.plan, now_us))
        other = next(others, None) if command.plan else None
        return "" if other is None else f"plan {inert(other, 60)} waits for an answer"

    def _in_flight(self) -> list[Request]:
        with self._lock:
            return [request for request in self._known.values() if request.in_flight]

    def _enter(self, command: Command, *, own: bool, refusal: str) -> Request:
        """Remember a request; the lock is held."""
        now_us = self._clock.wall_us()
        state: CommandState = "accepted" if own else "asked"
        info = CommandInfo(
            id=command.id or f"{now_us:x}-{secrets.token_hex(4)}",
            op=inert(command.op, 40),
            state="refused" if refusal else state,
            asked_us=now_us,
            changed_us=now_us,
            origin=inert(command.origin, 20),
            detail=inert(refusal, DETAIL),
            by=inert(command.by, 40),
            why=inert(command.why),
            plan=inert(command.plan, 100),
            what=request_text(command.op, command.args),
            dry_run=command.dry_run,
        )
        request = Request(
            info=info, since_m_us=self._clock.boot_us(), ttl_us=time_to_live_us(command)
        )
        ended = [
            name
            for name, one in self._known.items()
            if not one.in_flight and not (info.plan and one.info.plan == info.plan)
        ]
        for name in ended[: max(len(ended) - _REMEMBERED, 0)]:
            del self._known[name]
        self._known[info.id] = request
        return request

    def _begin(self, command: Command) -> None:
        try:
            self._actuator.begin(command, self._clock.wall_us())
        except MemwatchError as error:
            self._move(command.id, "failed", inert(str(error), DETAIL))

    def _follow(self, request: Request, logged: Logged | None, alive: bool) -> bool:
        info = request.info
        answer = self._actuator.answer(info.id)
        if logged is not None and (logged[0] in FINAL_STATES or answer is None):
            said = AGENT_STATES.get(logged[0])
            result = answer.result if answer and answer.state == said else {}
            answer = Answer(state=said, detail=logged[1], result=result) if said else answer
        if answer is None or not is_news(info.state, answer.state):
            answer = self._overdue(request, alive)
        if answer is None:
            return False
        detail = inert(answer.detail, DETAIL)
        return self._move(info.id, answer.state, detail, answer)

    def _overdue(self, request: Request, alive: bool) -> Answer | None:
        info = request.info
        if not alive:
            if info.state == "asked" and self._actuator.withdraw(info.id):
                return Answer(state="expired", detail="the agent is gone; it was taken back")
            return Answer(
                state="unknown", detail="the agent is gone; whether it acted is not known"
            )
        waited_us = self._clock.boot_us() - request.since_m_us - GRACE_US
        if info.state == "asked" and waited_us > request.ttl_us:
            self._actuator.withdraw(info.id)
            return Answer(state="expired", detail="the agent did not answer")
        if info.state != "asked" and waited_us > request.ttl_us + DEADLINE_US:
            return Answer(state="unknown", detail="the agent began and did not say how it ended")
        return None

    def _do(self, name: str, own: OwnOperation, command: Command) -> None:
        try:
            trouble = own(command)
        except BaseException:
            self._move(name, "failed", "the guard failed at it; its guard.log says more")
            raise
        self._move(name, "failed" if trouble else "done", inert(trouble, DETAIL))

    def _note(self, name: str, note: str) -> None:
        with self._lock:
            request = self._known[name]
            request.note = inert(note, DETAIL)
            request.info = replace(request.info, detail=request.note)

    def _move(
        self, name: str, state: CommandState, detail: str, answer: Answer | None = None
    ) -> bool:
        with self._lock:
            request = self._known.get(name)
            if request is None or not is_news(request.info.state, state):
                return False
            said = inert("; ".join(part for part in (detail, request.note) if part), DETAIL)
            result = inert_result(answer.result) if answer and state == "done" else {}
            request.info = replace(
                request.info,
                state=state,
                detail=said,
                changed_us=self._clock.wall_us(),
                result=result,
            )
            told = members(request)
        self._write(told)
        return True

    def _write(self, said: dict[str, Any], *, sync: bool = False) -> Record:
        record = self._recorder.append("intervention", said, sync=sync, acting=True)
        self._tell(record)
        return record
