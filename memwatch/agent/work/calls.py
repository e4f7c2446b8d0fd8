"""Calls to services outside: logged before and after, so that none is paid for twice (R7).

    answer = run.call("model", {"prompt": text}, lambda: client.ask(text))

The record `begun` is written (for a paid call: on the device) before the call is made, the
outcome right after it. When the agent dies and is started again, the calls of its unfinished
experiment are answered from the log, each once, in the order in which they were made; those that
were made outside of any experiment likewise, outside of any. A call whose outcome nobody knows
is in doubt. One that failed was answered with an exception, and is made again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from typing import Any, Literal, TypeVar

from msgspec import Raw, Struct

from memwatch.agent.context import Context
from memwatch.agent.journal import SETTLED, Journal, Members
from memwatch.agent.memory.blobs import BlobStore
from memwatch.agent.memory.entry import Blob
from memwatch.agent.memory.values import Types, digest
from memwatch.domain.errors import CallInDoubtError, LogError, UnkeepableError
from memwatch.domain.text import sayable
from memwatch.host.forked import new_lock

Outcome = TypeVar("Outcome")
InDoubt = Literal["raise", "repeat"]

INLINE_BYTES = 4_000
"""An outcome up to this size stands in its record, a larger one in a blob."""


class _Begun(Struct, frozen=True):
    """A call that is being made."""

    id: str
    about: Members


class _Answer(Struct, frozen=True):
    """What an earlier start was answered; in a box of its own, as None is an answer."""

    value: Any


class Calls:
    """Makes the external calls of one start, or finds what an earlier one was answered."""

    def __init__(
        self,
        context: Context,
        journal: Journal,
        types: Types,
        blobs: BlobStore,
        *,
        start_id: str,
        sync: Callable[[], object],
    ) -> None:
        """`sync` brings the log to the device; what `journal` knows by now is the past."""
        self._context, self._journal = context, journal
        self._types, self._blobs = types, blobs
        self._sync = sync
        self._start = start_id[:8]
        self._numbers = count(1)
        self._lock = new_lock()
        self._past = [call for call in journal.calls() if call.get("state") != "failed"]
        self._used: set[str] = set()

    def experiment_ended(self, status: str) -> None:
        """Settle what was left open, or let another attempt find it again."""
        with self._lock:
            if status in SETTLED:
                self._past = [call for call in self._past if call.get("x") is None]
            open_ids = {str(call["id"]) for call in self._past if call.get("x") is not None}
            self._used -= open_ids

    def call(
        self,
        service: str,
        request: Any,
        do: Callable[[], Outcome],
        *,
        paid: bool = True,
        in_doubt: InDoubt = "raise",
    ) -> Outcome:
        """Make a call, or return what an equal one was answered in a start that was cut short.

        `request` and the outcome are values that a tier could keep (UnkeepableError else). A paid
        call that may have been made already raises CallInDoubtError, unless `in_doubt` is
        "repeat". Whatever `do` raises is logged and goes on. Raises ReadOnlyError, LogError.
        """
        begun = self._begin(service, request, paid, in_doubt)
        if isinstance(begun, _Answer):
            return begun.value  # type: ignore[no-any-return] # it was an Outcome when it was logged
        try:
            outcome = do()
        except BaseException as error:
            self._failed(begun, error)
            raise
        return self._done(begun, outcome)

    async def call_async(
        self,
        service: str,
        request: Any,
        do: Callable[[], Awaitable[Outcome]],
        *,
        paid: bool = True,
        in_doubt: InDoubt = "raise",
    ) -> Outcome:
        """Do as `call` does, with a `do` that is awaited."""
        begun = self._begin(service, request, paid, in_doubt)
        if isinstance(begun, _Answer):
            return begun.value  # type: ignore[no-any-return] # it was an Outcome when it was logged
        try:
            outcome = await do()
        except BaseException as error:
            self._failed(begun, error)
            raise
        return self._done(begun, outcome)

    def _begin(self, service: str, request: Any, paid: bool, in_doubt: InDoubt) -> _Begun | _Answer:
        self._context.check_writable()
        encoded = self._types.encode(request)
        request_hash = digest(encoded.canonical)
        # Stated also where it is none: another thread may begin an experiment before the end.
        about: Members = {"service": service, "request": request_hash, "paid": paid}
        about["x"] = self._context.experiment
        name = f"{self._start}-{next(self._numbers)}"
        past = self._take_past(about)
        if past is not None:
            about["again"] = past["id"]
            if past["state"] == "done":
                return self._answered(name, about, past)
            if paid and in_doubt == "raise":
                with self._lock:
                    self._used.discard(str(past["id"]))
                raise CallInDoubtError(
                    f"a paid call to {service} began in an earlier start and may have been made: "
                    f'find out, then pass in_doubt="repeat" to make it again (call {past["id"]})'
                )
        self._log(name, about, {"state": "begun"})
        if paid:
            self._sync()
        return _Begun(name, about)

    def _take_past(self, about: Members) -> Members | None:
        """Return an equal call of an earlier start that was not used yet; answered ones first."""
        scoped = about["x"] is not None
        with self._lock:
            equal = [
                call
                for call in self._past
                if call.get("request") == about["request"]
                and call.get("service") == about["service"]
                and (call.get("x") is not None) == scoped
                and call["id"] not in self._used
            ]
            equal.sort(key=lambda call: call["state"] != "done")
            if equal:
                self._used.add(str(equal[0]["id"]))
            return equal[0] if equal else None

    def _answered(self, name: str, about: Members, past: Members) -> _Answer:
        """Log the outcome again, as one of this start: the next crash must find it too."""
        kind = str(past.get("type", ""))
        if "blob" in past:
            canonical = self._blobs.load(Blob(past["blob"], past["blob_bytes"]))
        else:
            canonical = self._types.encode(past.get("value")).canonical
        value = self._types.decode(kind, canonical)
        self._log(name, about, self._outcome(kind, canonical))
        return _Answer(value)

    def _done(self, begun: _Begun, outcome: Outcome) -> Outcome:
        try:
            encoded = self._types.encode(outcome)
        except UnkeepableError as error:
            self._log(begun.id, begun.about, {"state": "failed", "error": str(error)})
            raise
        self._log(begun.id, begun.about, self._outcome(encoded.type, encoded.canonical))
        return outcome

    def _failed(self, begun: _Begun, error: BaseException) -> None:
        """Log that a call was answered with an exception; an interruption leaves it in doubt."""
        if isinstance(error, Exception):
            told = f"{type(error).__name__}: {sayable(error, 400)}"
            with suppress(LogError):  # what the caller must see is `error`
                self._log(begun.id, begun.about, {"state": "failed", "error": told})

    def _outcome(self, kind: str, canonical: bytes) -> Members:
        members: Members = {"state": "done"} | ({"type": kind} if kind else {})
        if len(canonical) <= INLINE_BYTES:
            return members | {"value": Raw(canonical)}
        blob = self._blobs.save(canonical)
        return members | {"blob": blob.sha256, "blob_bytes": blob.bytes}

    def _log(self, name: str, about: Members, how: Members) -> None:
        members = {"id": name, **about, **how}
        try:
            self._journal.log(self._context.record, "call", members)
        except BaseException:
            if "blob" in how:
                self._blobs.release(how["blob"], self._context.log.last_lsn)
            raise
