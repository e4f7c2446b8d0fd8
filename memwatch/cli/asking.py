"""Hands a request to a run's guard and follows it to its end. Loads neither screen nor database."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from msgspec.structs import replace

from memwatch.domain.clock import SystemClock
from memwatch.domain.command import FINAL_STATES, Command, CommandInfo, CommandState
from memwatch.domain.errors import SessionError
from memwatch.domain.text import inert
from memwatch.runtime.protocol.client import GuardSession
from memwatch.runtime.protocol.numbers import GuardSilentError, NoGuardError
from memwatch.runtime.protocol.thin_client import status_json
from memwatch.runtime.runs.attach import Attachment

LONGEST_S = 380.0
"""Longer than a request can be under way: the guard gives each an end by itself."""
_FIRST_LOOK_S = 0.02
_LOOK_S = 0.2
_PATIENCE_S = 1.5
"""After this a person at a terminal is told what is waited for."""
_WAITING = "asked; waiting for the agent's answer (ctrl-c leaves it asked)"
_LOST = 2
"""So many guards in a row that do not know the request: nobody does."""


def ask(attachment: Attachment, command: Command, wait_s: float = LONGEST_S) -> CommandInfo:
    """Hand a request over and follow it to its end, for `wait_s` at most.

    A guard is started when there is none. What the guard itself refuses comes back as refused;
    raises SessionError when no guard answers.
    """
    began_us = SystemClock().wall_us()
    session = attachment.ensure()
    follower = _Follower(attachment, session)
    try:
        asked = _info(command, began_us, "asked", session.submit(command))
        return follower.follow(asked, wait_s)
    except (NoGuardError, GuardSilentError):
        raise
    except SessionError as error:
        return refused(command, inert(str(error), 300))
    finally:
        follower.close()


def refused(command: Command, why: str) -> CommandInfo:
    """Return a request that nobody took: it has no name, nothing was handed over."""
    return _info(command, SystemClock().wall_us(), "refused", "", why)


class _Follower:
    """Looks after one request; a guard that is replaced meanwhile is asked in its place."""

    def __init__(self, attachment: Attachment, session: GuardSession) -> None:
        self._attachment = attachment
        self._session: GuardSession | None = session

    def follow(self, asked: CommandInfo, wait_s: float) -> CommandInfo:
        """Return the request when it has come to its end, or when the time is over."""
        began, pause_s, lost = time.monotonic(), _FIRST_LOOK_S, 0
        told = not (sys.stderr and sys.stderr.isatty())
        known = asked
        while True:
            try:
                known = self._look(asked.id)
                lost = 0
            except SessionError as error:
                self.close()
                lost += 1
                if lost == _LOST:
                    now_us = SystemClock().wall_us()
                    why = inert(str(error), 200)
                    return replace(known, state="unknown", detail=why, changed_us=now_us)
            waited_s = time.monotonic() - began
            if known.state in FINAL_STATES or waited_s >= wait_s:
                return known
            if waited_s > _PATIENCE_S and not told:
                told = True
                print(_WAITING, file=sys.stderr)
            time.sleep(min(pause_s, wait_s - waited_s))
            pause_s = min(pause_s * 1.5, _LOOK_S)

    def close(self) -> None:
        """End the session with the guard that was asked last."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _look(self, name: str) -> CommandInfo:
        if self._session is None:
            self._session = self._attachment.ensure()
        return self._session.command(name)


def _info(
    command: Command, asked_us: int, state: CommandState, name: str, detail: str = ""
) -> CommandInfo:
    return CommandInfo(
        id=name,
        op=command.op,
        state=state,
        asked_us=asked_us,
        changed_us=SystemClock().wall_us(),
        detail=detail,
        by=command.by,
        why=command.why,
        dry_run=command.dry_run,
    )


def status_of(attachment: Attachment) -> dict[str, Any]:
    """Return what the guard says of the run now; {} when it does not say it in time."""
    try:
        found = json.loads(status_json(str(attachment.socket)))
    except (SessionError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
