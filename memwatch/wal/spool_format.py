"""What both sides of a control spool agree on, protocol 1: folders, names, commands, answers.

    control/tmp/   drafts of the writers, never looked at
    control/new/   published commands, `<priority>-<id>.json`
    control/cur/   claimed by the agent
    control/ack/   the agent's answers, `<id>.json`, replaced whole
    control/bad/   refused before parsing

Pure: bytes in, values out. A command is read strictly, since it acts: members that begin with
`x_` are ignored, any other unknown one refuses it. An answer is read leniently.
Source: D6; control, 2.2 to 2.6.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct

PROTO = 1
MAX_BYTES = 16_384
"""Of a command and of an answer."""
TTL_US = 60_000_000
"""A command must be running within this time from its issue."""
DEADLINE_US = 5 * TTL_US
"""It must have ended within this time from its acceptance."""

TMP, NEW, CUR, ACK, BAD = "tmp", "new", "cur", "ack", "bad"
FOLDERS = (TMP, NEW, CUR, ACK, BAD)

_PRIORITY = {"abort_experiment": 0, "checkpoint": 1, "purge": 2}
_LAST = 3
_ID = r"[0-9A-Za-z][0-9A-Za-z._-]{0,99}"
_NAME = re.compile(rf"(\d)-({_ID})\.json", re.ASCII)


class Sender(Struct, frozen=True, omit_defaults=True):
    """Who asks; unknown members are ignored."""

    uid: int = -1
    host: str = ""
    pid: int = 0
    origin: str = "operator"


class CommandFile(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command as published. Members at their default are not written."""

    proto: int
    id: str
    run_id: str
    op: str
    issued_us: int
    ttl_us: int = TTL_US
    deadline_us: int = DEADLINE_US
    args: dict[str, Any] = {}
    by: Sender = Sender()
    epoch: int | None = None
    """Rises with each change of who may act: a command of an earlier one is refused."""
    expect: dict[str, Any] = {}
    """What must be so for the command to make sense, as the agent states it."""
    dry_run: bool = False
    confirm: str | None = None


class Ack(Struct, frozen=True, kw_only=True):
    """An answer as published; unknown members are ignored. A final state never changes."""

    proto: int = PROTO
    id: str
    run_id: str
    seq: int
    state: str
    wall_us: int = 0
    boot_us: int = 0
    pid: int = 0
    detail: str = ""
    result: dict[str, Any] = {}


_MEMBERS = frozenset(CommandFile.__struct_fields__)


def command_name(command_id: str, op: str) -> str:
    """Return the name of a command's file: names in order are commands in order.

    >>> command_name("7f", "checkpoint")
    '1-7f.json'
    """
    return f"{_PRIORITY.get(op, _LAST)}-{command_id}.json"


def parse_name(name: str) -> tuple[int, str] | None:
    """Return priority and id that a file name states, or None for another name.

    >>> parse_name("1-7f.json")
    (1, '7f')
    """
    match = _NAME.fullmatch(name)
    return (int(match[1]), match[2]) if match else None


def ack_name(command_id: str) -> str:
    """Return the name of the file that answers a command."""
    return f"{command_id}.json"


def encode(message: CommandFile | Ack) -> bytes:
    """Return the text of a file; raises ValueError when it is over the limit."""
    text = msgspec.json.encode(message)
    if len(text) > MAX_BYTES:
        raise ValueError(f"{len(text)} bytes are over the {MAX_BYTES} allowed")
    return text


def parse_command(text: bytes) -> CommandFile:
    """Read a command; raises ValueError with the reason."""
    try:
        members = msgspec.json.decode(text, type=dict[str, Any])
        command = msgspec.convert(members, CommandFile)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not a command: {error}") from None
    unknown = {name for name in members if not name.startswith("x_")} - _MEMBERS
    if unknown:
        raise ValueError(f"it has unknown members: {', '.join(sorted(unknown))[:100]}")
    if command.proto != PROTO:
        raise ValueError(f"protocol {command.proto} is not spoken here")
    return command


def parse_ack(text: bytes) -> Ack:
    """Read an answer; raises ValueError."""
    try:
        return msgspec.json.decode(text, type=Ack)
    except RecursionError as error:
        raise ValueError(f"it is not an answer: {error}") from None
