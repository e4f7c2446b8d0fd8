"""Writes `control/state.json`: what the agent is doing, for whoever asks without asking it.

Replaced whole but not synced: after a power loss there is no agent to describe.
"""

from __future__ import annotations

import os

from msgspec.structs import replace

from memwatch.agent.control.spool import Spool
from memwatch.agent.files import Files
from memwatch.wal.spool_format import STATE_FILE, STATE_US, AgentState, encode

_DRAFT = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
_DUE_US = STATE_US - 500_000
"""Written this much earlier than promised: the thread that writes it may be kept waiting."""


class StateFile:
    """The state of one start; `seq`, `gen` and `epoch` go on from the start before."""

    def __init__(self, spool: Spool, files: Files) -> None:
        self._path = spool.path / STATE_FILE
        self._draft = spool.path / f".{STATE_FILE}.{os.getpid()}.draft"
        self._files = files
        self._written: AgentState | None = None
        self._seq = 0

    def begin(self, spool: Spool) -> AgentState | None:
        """Return what the start before said last, None when it cannot be read."""
        before = spool.state()
        self._seq = before.seq if before else 0
        return before

    def keep(self, state: AgentState) -> None:
        """Write it when it says something new, or is due; raises OSError."""
        last = self._written
        if last is not None and state.boot_us - last.boot_us < _DUE_US and _same(state, last):
            return
        self._seq += 1
        text = encode(replace(state, seq=self._seq))
        try:
            fd = self._files.open(self._draft, _DRAFT, 0o600)
            try:
                self._files.write_all(fd, text)
            finally:
                self._files.close(fd)
            self._files.rename(self._draft, self._path)
        except OSError:
            self._files.discard(self._draft)
            raise
        self._written = state


def _same(state: AgentState, last: AgentState) -> bool:
    busy = state.busy.id if state.busy else ""
    return (state.mode, state.gen, state.holds) == (last.mode, last.gen, last.holds) and busy == (
        last.busy.id if last.busy else ""
    )
