"""What both sides of a control spool agree on, protocol 1: folders, names, and what files hold.

    control/tmp/         drafts of the writers, never looked at
    control/new/         published commands, `<priority>-<id>.json`
    control/cur/         claimed by the agent
    control/ack/         the agent's answers, `<id>.json`, replaced whole
    control/hold/        leased holds, `<owner>-<pause|read_only>.json`
    control/bad/         refused before parsing
    control/state.json   what the agent is doing, replaced at each change and every 2 s

A *command* is done once and answered in `ack/`. A *hold* is true as long as its file lies there
and its lease runs: the writer makes it in `tmp/` and renames it into place, and again with a
higher `renewed` each quarter of the lease; the lease counts on the agent's boot clock from when a
renewal was seen. Its answer is its entry in `state.json`. The agent is free when no live hold
remains, so to resume is to delete one's own hold. A renewal that is refused renews nothing: what
was held stays held until the lease that it had is over. A refused hold goes to `bad/`; it is
answered in `ack/` like a command where its text names an id.

Pure: bytes in, values out. What acts (commands, holds) is read strictly: members that begin with
`x_` are ignored, any other unknown one refuses it. Answers and `state.json` are read leniently.
Source: D6; control, 2.2 to 2.7.
"""

from __future__ import annotations

import re
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from memwatch.domain.operations import HoldOp

PROTO = 1
MAX_BYTES = 16_384
"""Of a command and of an answer."""
TTL_US = 60_000_000
"""A command must be running within this time from its issue."""
DEADLINE_US = 5 * TTL_US
"""It must have ended within this time from its acceptance."""
_MAX_LEASE_US = 1 << 62  # so that its end fits 64 bits
MAX_TTL_US = 7 * 86_400 * 1_000_000
"""Answers are kept for so long: a command that lived longer could be obeyed a second time."""
LEASE_US = 2 * TTL_US
"""Of a hold."""
STATE_US = 2_000_000
"""`state.json` is never older while the agent can write; a GIL held by other code delays it."""

TMP, NEW, CUR, ACK, HOLD, BAD = "tmp", "new", "cur", "ack", "hold", "bad"
FOLDERS = (TMP, NEW, CUR, ACK, HOLD, BAD)
STATE_FILE = "state.json"

LeaseEnd = Literal["release", "keep"]
ModeName = Literal["running", "draining", "paused", "read_only", "aborting", "ended"]
ANY_RUN = "any"
"""In place of a run id in a hold: it holds whoever runs in this directory."""

_PRIORITY = {"abort_experiment": 0, "checkpoint": 1, "purge": 2}
_LAST = 3
_ID = r"[0-9A-Za-z][0-9A-Za-z._-]{0,99}"
_NAME = re.compile(rf"(\d)-({_ID})\.json", re.ASCII)
_HOLD_NAME = re.compile(rf"({_ID})-(pause|read_only)\.json", re.ASCII)


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
    """What must be so for the command to make sense: `gen`, `mode`, `experiment`, `start_id`, as
    `state.json` states them."""
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


class HoldFile(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A hold as its writer keeps it. Members at their default are not written."""

    proto: int
    id: str
    run_id: str
    """A run, or ANY_RUN."""
    op: HoldOp
    lease_us: int = LEASE_US
    on_lease_end: LeaseEnd | None = None
    """None: `keep` for read_only, which only its holder leaves, `release` for pause."""
    reason: str = ""
    renewed: int = 0
    """Rises with each renewal."""
    by: Sender = Sender()
    epoch: int | None = None

    @property
    def kept(self) -> bool:
        """Whether it outlives its lease and stays until it is deleted."""
        return (self.on_lease_end or ("keep" if self.op == "read_only" else "release")) == "keep"


class HoldState(Struct, frozen=True, kw_only=True):
    """What the agent makes of a hold: its answer."""

    id: str
    op: str
    owner: str = ""
    seen: int = 0
    """The newest `renewed` that the agent saw."""
    effective: bool = False
    """No experiment begins (pause), no change is taken (read_only)."""
    drained: bool = False
    """No experiment is in progress any more."""
    ends_us: int | None = None
    """Boot clock; None for one that stays until it is deleted."""


class Busy(Struct, frozen=True, kw_only=True):
    """The command that the agent is at work on."""

    op: str
    id: str
    since_us: int = 0
    """Boot clock."""
    progress: dict[str, Any] = {}


class AgentState(Struct, frozen=True, kw_only=True):
    """`state.json`: what the agent is doing. Unknown members are ignored."""

    proto: int = PROTO
    run_id: str
    start_id: str = ""
    pid: int = 0
    seq: int = 0
    """Rises with each writing, over all starts."""
    mode: str = "running"
    gen: int = 0
    """Rises with each change of mode or holds, over all starts."""
    epoch: int = 0
    """Highest that was seen: lower ones are refused."""
    holds: list[HoldState] = []
    busy: Busy | None = None
    since_safe_point_us: int | None = None
    """None before the first one; right to a tenth of a second."""
    experiment: int | None = None
    wall_us: int = 0
    boot_us: int = 0


_Acting = TypeVar("_Acting", CommandFile, HoldFile)


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


def is_id(text: str) -> bool:
    """Say whether a text can be an id: it becomes part of file names."""
    return re.fullmatch(_ID, text, re.ASCII) is not None


def hold_name(owner: str, op: HoldOp) -> str:
    """Return the name of a hold's file: one of each kind for an owner.

    >>> hold_name("d-9a", "pause")
    'd-9a-pause.json'
    """
    return f"{owner}-{op}.json"


def parse_hold_name(name: str) -> tuple[str, str] | None:
    """Return owner and kind that a file name states, or None for another name.

    >>> parse_hold_name("d-9a-read_only.json")
    ('d-9a', 'read_only')
    """
    match = _HOLD_NAME.fullmatch(name)
    return (match[1], match[2]) if match else None


def encode(message: CommandFile | Ack | HoldFile | AgentState) -> bytes:
    """Return the text of a file; raises ValueError when it is over the limit."""
    text = msgspec.json.encode(message)
    if len(text) > MAX_BYTES:
        raise ValueError(f"{len(text)} bytes are over the {MAX_BYTES} allowed")
    return text


def parse_command(text: bytes) -> CommandFile:
    """Read a command; raises ValueError with the reason."""
    command = _parse_acting(text, CommandFile, "a command")
    if command.ttl_us > MAX_TTL_US:
        raise ValueError("its time to live is over 7 days")
    return command


def parse_hold(text: bytes) -> HoldFile:
    """Read a hold; raises ValueError with the reason."""
    hold = _parse_acting(text, HoldFile, "a hold")
    if hold.lease_us < 1:
        raise ValueError("its lease is no time at all")
    if hold.lease_us > _MAX_LEASE_US:
        raise ValueError("its lease is longer than any clock can tell")
    if not is_id(hold.id):
        raise ValueError("its id is none")
    return hold


def parse_ack(text: bytes) -> Ack:
    """Read an answer; raises ValueError."""
    try:
        return msgspec.json.decode(text, type=Ack)
    except RecursionError as error:
        raise ValueError(f"it is not an answer: {error}") from None


def parse_state(text: bytes) -> AgentState:
    """Read what an agent says of itself; raises ValueError."""
    try:
        return msgspec.json.decode(text, type=AgentState)
    except RecursionError as error:
        raise ValueError(f"it is not a state: {error}") from None


def _parse_acting(text: bytes, kind: type[_Acting], what: str) -> _Acting:
    try:
        members = msgspec.json.decode(text, type=dict[str, Any])
        message = msgspec.convert(members, kind)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not {what}: {error}") from None
    unknown = {name for name in members if not name.startswith("x_")} - set(kind.__struct_fields__)
    if unknown:
        raise ValueError(f"it has unknown members: {', '.join(sorted(unknown))[:100]}")
    if message.proto != PROTO:
        raise ValueError(f"protocol {message.proto} is not spoken here")
    return message
