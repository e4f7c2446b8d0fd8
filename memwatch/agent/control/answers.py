"""What the agent answers: published in `ack/`, logged as `command` records."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, Final

import msgspec

from memwatch.agent.context import Context
from memwatch.agent.control.spool import Spool
from memwatch.domain.errors import LogError
from memwatch.domain.text import inert
from memwatch.wal.spool_format import MAX_BYTES, Ack, is_id

_RESULT_BYTES: Final = MAX_BYTES - 2_000
"""Room for the rest of an answer stays."""


class Answers:
    """Of one start. Its methods are called with the lock of the jobs held."""

    def __init__(self, context: Context, spool: Spool) -> None:
        self._context = context
        self._spool = spool
        self._late: dict[str, Ack] = {}

    def blank(self, command_id: str) -> Ack:
        """Return an answer before the first."""
        return Ack(id=command_id, run_id=self._context.run_id, seq=0, state="")

    def next(self, ack: Ack, state: str, detail: str, result: dict[str, Any]) -> Ack:
        """Return the answer that follows another."""
        clock = self._context.clock
        return Ack(
            id=ack.id,
            run_id=self._context.run_id,
            seq=ack.seq + 1,
            state=state,
            wall_us=clock.wall_us(),
            boot_us=clock.boot_us(),
            pid=os.getpid(),
            detail=inert(detail),
            result=tellable(result),
        )

    def publish(self, ack: Ack) -> bool:
        """Write it; where that fails it is tried again, and false is returned."""
        self._late[ack.id] = ack  # first: an interrupt may come while it is written
        try:
            self._spool.write_ack(ack)
        except OSError:  # a full disk: the poll tries again until it is out
            return False
        self._late.pop(ack.id, None)
        return True

    def withdraw(self, command_id: str) -> None:
        """Try no more to write an answer that is not true any more."""
        self._late.pop(command_id, None)

    def is_late(self, command_id: str) -> bool:
        """Say whether the newest answer to this one is not out yet."""
        return command_id in self._late

    def publish_late(self) -> list[str]:
        """Try again to write what could not be written; returns the ids that are out."""
        return [ack.id for ack in list(self._late.values()) if self.publish(ack)]

    def log(self, ack: Ack, op: str, origin: str, *, dry_run: bool = False) -> None:
        """Write an answer into the log; one that only says what would be done says so."""
        members: dict[str, Any] = {"id": ack.id, "op": inert(op, 60), "state": ack.state}
        members |= {"detail": ack.detail, "result": ack.result, "origin": inert(origin, 40)}
        if dry_run:
            members["dry_run"] = True
        with suppress(LogError):  # the answer in the spool stands without it
            self._context.record("command", members)

    def refuse_unread(self, command_id: str, why: str) -> None:
        """Answer a file that was no command or hold, as far as it says whom to answer."""
        known = is_id(command_id)
        refusal = self.next(self.blank(command_id if known else "-"), "refused", why, {})
        if known and self._spool.ack(command_id) is None:
            self.publish(refusal)
        self.log(refusal, "?", "unknown")


def tellable(result: Any) -> dict[str, Any]:
    """Return a copy of what an operation says as far as it can be told.

    The operation is the agent's: what it was asked for is done, whatever it returns.
    """
    if not isinstance(result, dict):
        return {"left_out": f"the operation returned {type(result).__name__}, not a dict"}
    try:
        text = msgspec.json.encode(result)
        if len(text) > _RESULT_BYTES:
            return {"left_out": f"{len(text)} bytes are over the {_RESULT_BYTES} allowed"}
        told: dict[str, Any] = msgspec.json.decode(text)
    except Exception as error:  # noqa: BLE001 - another thread may be changing it, too
        return {"left_out": inert(str(error) or type(error).__name__)}
    return told
