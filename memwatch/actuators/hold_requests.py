"""Requests for holds and their release: whose they are, what they say, how they are answered.

Source: control, 2.7; contracts, "Operations".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from memwatch.actuators.actuator import Answer
from memwatch.actuators.spool import sender
from memwatch.domain.command import Command
from memwatch.domain.errors import MemwatchError
from memwatch.domain.operations import ENGINE, HOLDS
from memwatch.domain.text import inert
from memwatch.wal.spool_format import (
    LEASE_US,
    PROTO,
    AgentState,
    HoldFile,
    HoldState,
)

ABOUT: Final[Mapping[str, str]] = {
    "pause": "no new experiment begins; the one in progress goes on",
    "resume": "release a pause",
    "read_only": "nothing is changed and no new experiment begins",
    "read_write": "release read-only",
}
_LONGEST_LEASE_US = 1 << 62


class Release(Struct, frozen=True):
    """A release that was carried out: the agent has yet to say so."""

    ids: frozenset[str]
    """Of holds that were deleted."""
    listed: bool
    """Whether the agent said that one of them was in force."""
    gen: int
    at_m_us: int


def hold_of(command: Command, run_id: str, epoch: int, engine_lease_us: int) -> HoldFile:
    """Return the hold that a command asks for; raises MemwatchError for wrong arguments.

    The engine's pause ends with its lease, everything else is kept until it is released.
    """
    args = dict(command.args)
    by_engine = command.origin == ENGINE
    lapses = by_engine and command.op == "pause"
    lease_us = args.pop("lease_us", engine_lease_us if lapses else LEASE_US)
    end = args.pop("on_lease_end", "release" if lapses else "keep")
    if args:
        raise MemwatchError(f"unknown arguments: {inert(', '.join(sorted(args)), 100)}")
    if type(lease_us) is not int or not 0 < lease_us < _LONGEST_LEASE_US:
        raise MemwatchError("lease_us is a whole number of microseconds from 1")
    if end not in ("release", "keep"):
        raise MemwatchError("on_lease_end is release or keep")
    return HoldFile(
        proto=PROTO,
        id=command.id,
        run_id=run_id,
        op=HOLDS[command.op],
        lease_us=lease_us,
        on_lease_end=end,
        reason=inert(command.why, 120),
        by=sender(command.origin),
        epoch=epoch if by_engine else None,
    )


def owner_of(command: Command) -> str:
    """Return whose holds a request is about, as part of a file's name.

    `engine` is the engine's alone: a person of that name is `operator`.
    """
    if command.origin == ENGINE:
        return ENGINE
    owner = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in command.by)
    owner = owner.lstrip("._-")[:60]
    return owner if owner and owner != ENGINE else "operator"


def chosen_by(command: Command) -> Callable[[str, str], bool]:
    """Return what says of owner and id of a hold whether it is to be released."""
    args = dict(command.args)
    every, owner, ids = args.pop("all", False), args.pop("owner", ""), args.pop("holds", ())
    fine = type(every) is bool and isinstance(owner, str) and isinstance(ids, list | tuple)
    if args or not fine:
        raise MemwatchError("a release names an owner, ids of holds, or all")
    if every:
        return lambda _, __: True
    if ids:
        wanted = frozenset(one for one in ids if isinstance(one, str) and one)
        return lambda _, hold_id: hold_id in wanted
    whose = owner or owner_of(command)
    return lambda held_by, _: held_by == whose


def held(command_id: str, state: AgentState) -> Answer | None:
    """Return what the agent says of a hold, None when it says nothing."""
    told = next((one for one in state.holds if one.id == command_id), None)
    if told is None:
        return None
    if not told.effective:
        return Answer(state="accepted")
    return Answer(state="done", detail=_how(told), result={"drained": told.drained})


def _how(told: HoldState) -> str:
    if told.op == "read_only":
        return "read-only: nothing is changed"
    return "no new experiment begins" if told.drained else "draining: the experiment goes on"


def released(release: Release, state: AgentState) -> Answer | None:
    """Return `done` once the agent says that what was released holds it no more."""
    if any(one.id in release.ids for one in state.holds):
        return None
    if state.gen <= release.gen if release.listed else state.boot_us < release.at_m_us:
        return None
    rest = ", ".join(f"{inert(one.op, 20)} by {inert(one.owner, 40)}" for one in state.holds)
    detail = f"released; still held: {rest}" if rest else "released"
    return Answer(state="done", detail=inert(detail, 120), result={"mode": inert(state.mode, 20)})
