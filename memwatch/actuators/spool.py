"""The operator's side of a control spool: publish commands, take them back, read answers.

A draft is written whole in `tmp/`, then published by link() into `new/`: an existing
name fails, nothing is ever replaced. `memwatch.wal.spool_format` says what the files hold.
Source: D6, R8.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from memwatch.actuators.folder import ControlFolder, handing_over, read_file
from memwatch.domain.command import Command
from memwatch.wal.spool_format import (
    ACK,
    CUR,
    MAX_TTL_US,
    NEW,
    PROTO,
    STATE_FILE,
    TTL_US,
    Ack,
    AgentState,
    CommandFile,
    Sender,
    ack_name,
    command_name,
    encode,
    parse_ack,
    parse_command,
    parse_state,
)

_PRIORITIES = ("abort_experiment", "checkpoint", "purge", "")
"""An operation of each priority: under one of these names a command lies, whatever it asks for."""


class Spool:
    """The control folder of one run."""

    def __init__(self, folder: ControlFolder) -> None:
        self._folder = folder

    def publish(self, name: str, command: Command, now_us: int, epoch: int | None = None) -> None:
        """Put a command where the agent finds it; raises MemwatchError with the reason."""
        ttl_us = TTL_US if command.ttl_us is None else min(max(command.ttl_us, 1), MAX_TTL_US)
        file = CommandFile(
            proto=PROTO,
            id=name,
            run_id=self._folder.run_id,
            op=command.op,
            args=command.args,
            issued_us=now_us,
            ttl_us=ttl_us,
            by=sender(command.origin),
            epoch=epoch,
            expect=command.expect,
            dry_run=command.dry_run,
        )
        with handing_over("the command"):
            text = encode(file)
            self._folder.publish(NEW, command_name(name, command.op), text, now_us, replace=False)

    def is_waiting(self, name: str) -> bool:
        """Say whether a command lies there that the agent has not claimed."""
        return self._found(NEW, name, lambda *_: None)

    def has(self, name: str) -> bool:
        """Say whether a command lies there, is claimed, or was answered."""
        # In the order in which it moves, so that it cannot pass us by.
        seen = self.is_waiting(name) or self._found(CUR, name, lambda *_: None)
        return seen or self.ack(name) is not None

    def withdraw(self, name: str) -> bool:
        """Take a command back that the agent has not claimed; True when it will not be done."""
        return self._found(NEW, name, lambda new, file: os.unlink(file, dir_fd=new))

    def _found(self, folder: str, name: str, then: Callable[[int, str], None]) -> bool:
        with suppress(OSError), self._folder.open(folder) as opened:
            for op in _PRIORITIES:
                with suppress(FileNotFoundError, ValueError):
                    file = command_name(name, op)
                    if parse_command(read_file(opened, file)).id == name:
                        then(opened, file)
                        return True
        return False

    def ack(self, name: str) -> Ack | None:
        """Return the newest answer to a command, or None when there is no readable one."""
        try:
            answer = parse_ack(self._folder.read(ACK, ack_name(name)))
        except (OSError, ValueError):
            return None
        return answer if answer.id == name and answer.run_id == self._folder.run_id else None

    def state(self) -> AgentState | None:
        """Return what the agent last said of itself, or None when that cannot be read."""
        try:
            state = parse_state(self._folder.read("", STATE_FILE))
        except (OSError, ValueError):
            return None
        return state if state.run_id == self._folder.run_id else None


def sender(origin: str) -> Sender:
    """Return who asks: this process."""
    return Sender(os.getuid(), os.uname().nodename, os.getpid(), origin)
