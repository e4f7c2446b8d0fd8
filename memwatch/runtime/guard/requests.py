"""What a request is: in words, in `guard.wal`, and what must be so before it is taken.

Pure. Source: contracts, "Plans" (confirmations); D6.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, get_args

from msgspec import Struct

from memwatch.actuators.actuator import Offer
from memwatch.actuators.inert_result import inert_result
from memwatch.domain.command import FINAL_STATES, Command, CommandInfo, CommandState
from memwatch.domain.operations import ENGINE, HOLDS, must_be_named
from memwatch.domain.record import Record
from memwatch.domain.text import inert
from memwatch.domain.wording import request_text
from memwatch.wal.spool_format import TTL_US

BUSY_US = 30_000_000
"""An agent that is busy answers nothing for so long: a hold waits at least as long for it."""
DETAIL = 120
_STATES: Mapping[str, CommandState] = {name: name for name in get_args(CommandState)}
_ORDER = ("asked", "accepted", "running")
"""A request moves on through these, never back; any other state is an end."""


class Request(Struct, kw_only=True):
    """A request that the guard knows."""

    info: CommandInfo
    since_m_us: int
    """Boot clock, when it was asked."""
    ttl_us: int = TTL_US
    """The agent must have begun it within this time."""
    note: str = ""
    """Said beside whatever the agent says."""
    given_up: bool = False
    """Its plan wanted it back: it stands in the way of no other plan."""
    never_sent: bool = False
    """On record by a guard that was killed before it handed it over."""

    @property
    def in_flight(self) -> bool:
        """Whether it has not come to its end."""
        return self.info.state not in FINAL_STATES

    @property
    def lost(self) -> bool:
        """Whether nobody will answer it: the engine may hand it over once more."""
        return self.never_sent and self.info.state == "asked"

    def blocks(self, plan: str, m_us: int) -> bool:
        """Say whether it keeps a step of another plan waiting: asked, unanswered, and in time."""
        info = self.info
        of_another = info.origin == ENGINE and info.plan not in ("", plan)
        in_time = m_us - self.since_m_us <= self.ttl_us
        waits = info.state == "asked" and not (self.given_up or self.lost)
        return of_another and waits and in_time


def is_news(known: CommandState, said: CommandState) -> bool:
    """Say whether a state moves a request on."""
    if known in FINAL_STATES:
        return False
    return said in FINAL_STATES or (said in _ORDER and _ORDER.index(said) > _ORDER.index(known))


def time_to_live_us(command: Command) -> int:
    """Return how long a request may wait for the agent to begin it."""
    ttl_us = TTL_US if command.ttl_us is None else max(command.ttl_us, 1)
    return max(ttl_us, BUSY_US) if command.op in HOLDS else ttl_us


def why_not_offered(command: Command, offers: Mapping[str, Offer]) -> str:
    """Return why nobody can carry an operation out, or nothing."""
    offer = offers.get(command.op)
    if offer is None:
        return f"this agent does not offer {inert(command.op, 40)!r}"
    if offer.why_not:
        return offer.why_not
    if command.dry_run and not offer.dry_runs:
        return f"{command.op} has no dry run; nothing was asked"
    return ""


def why_not_confirmed(command: Command, names: Collection[str]) -> str:
    """Return what a person must type first, or nothing: the run's name for what ends or destroys.

    `names` are the run's id and the name of its directory, either will do.
    """
    if command.origin == ENGINE or command.dry_run or not must_be_named(command.op, command.args):
        return ""
    wanted = [inert(name, 100) for name in names if name]
    if command.confirm and command.confirm in (*names, *wanted):
        return ""
    named = wanted[-1] if wanted else "its name"
    asked = request_text(command.op, command.args)
    return f"{asked} must be confirmed: type the name of the run, {named}"


def members(request: Request) -> dict[str, Any]:
    """Return what an `intervention` record says of a request."""
    info = request.info
    said: dict[str, Any] = {
        "id": info.id,
        "op": info.op,
        "state": info.state,
        "detail": info.detail,
        "origin": info.origin,
    }
    more = {
        "plan": info.plan,
        "by": info.by,
        "why": info.why,
        "what": info.what,
        "dry_run": info.dry_run,
        "result": info.result,
        "ttl_us": request.ttl_us if request.ttl_us != TTL_US else 0,
    }
    return said | {name: value for name, value in more.items() if value}


def restored(record: Record, before: Request | None, boot_us: int, wall_us: int) -> Request | None:
    """Return what an `intervention` record makes of a request; None when it is none."""
    state = _STATES.get(record.text("state"))
    name = inert(record.text("id"), 100)
    if state is None or not name or (before and not is_news(before.info.state, state)):
        return before
    result = record.members.get("result")
    info = CommandInfo(
        id=name,
        op=inert(record.text("op"), 40),
        state=state,
        asked_us=before.info.asked_us if before else record.t_us,
        changed_us=record.t_us,
        origin=inert(record.text("origin"), 20),
        detail=inert(record.text("detail"), DETAIL),
        by=inert(record.text("by"), 40),
        why=inert(record.text("why")),
        plan=inert(record.text("plan"), 100),
        what=inert(record.text("what"), DETAIL),
        dry_run=record.members.get("dry_run") is True,
        result=inert_result(result) if isinstance(result, dict) else {},
    )
    since_m_us = before.since_m_us if before else record.m_us
    if since_m_us > boot_us:  # of an earlier boot
        since_m_us = boot_us - max(wall_us - info.asked_us, 0)
    return Request(info=info, since_m_us=since_m_us, ttl_us=record.number("ttl_us") or TTL_US)
