"""Control of an agent that runs with `memwatch.agent`: jobs and leased holds over its spool.

A job is answered in `ack/`, a hold by its entry in `state.json`, and so is its release. What was
asked before a restart of ours is found there again, as ids are names. Source: D6, R8, R9; control,
2.7; contracts, "Operations".
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from memwatch.actuators.actuator import Answer, Offer
from memwatch.actuators.folder import ControlFolder
from memwatch.actuators.hold_requests import (
    ABOUT,
    Release,
    chosen_by,
    held,
    hold_of,
    owner_of,
    released,
)
from memwatch.actuators.holds import HoldKeeper
from memwatch.actuators.inert_result import inert_result
from memwatch.actuators.spool import Spool
from memwatch.domain.clock import Clock
from memwatch.domain.command import AGENT_STATES, Command, CommandState
from memwatch.domain.control import Hold
from memwatch.domain.errors import MemwatchError
from memwatch.domain.operations import ENGINE, HOLDS, JOBS, RELEASES
from memwatch.domain.text import inert
from memwatch.wal.spool_format import HOLD, LEASE_US, AgentState, HoldState, is_id

FRESH_US = 10_000_000
"""A state older than this says nothing of now: the agent is busy, or gone."""
_REMEMBERED = 128
_LARGEST_EPOCH = 1 << 62


class NativeActuator:
    """See `memwatch.actuators.actuator.Actuator`."""

    name = "control spool"

    def __init__(self, run_dir: Path, run_id: str, ops: Mapping[str, Any], clock: Clock) -> None:
        """`ops` is what run.json says of the agent's operations; a stranger's text."""
        self._clock = clock
        self._folder = ControlFolder(run_dir, run_id)
        self._spool = Spool(self._folder)
        self._keeper = HoldKeeper(self._folder, clock, self._refusal)
        self._lock = threading.RLock()
        self.no_commands = ""
        self.ops = ops
        """Replaced when the agent began again and offers others."""
        self.epoch = 0
        """Of this guard; carried by what the engine asks for."""
        self.engine_lease_us = LEASE_US
        """Of the engine's pause, when the request names no other."""
        self.alone = True
        """No other guard acts on this run, as of the newest look; only then the engine may."""
        self._claims = False
        self._outdone_by = 0
        self._local: dict[str, Answer] = {}
        self._releases: dict[str, Release] = {}

    # -- a guard's begin ---------------------------------------------------------------------

    def claim(self) -> None:
        """Be the guard that acts on this run, now or as soon as no other one is."""
        with self._lock:
            self._claims, self.alone = True, self._folder.claim()

    def let_go(self) -> None:
        """Let another guard act."""
        with self._lock:
            self._claims = False
            self._folder.let_go()

    def claim_epoch(self, known: int = 0) -> int:
        """Begin a new epoch, and keep what the guard before held; returns its number.

        It is above the highest that the agent saw and the one that the guard before had (`known`).
        """
        with self._lock:
            state = self._spool.state()
            seen = state.epoch if state and state.epoch < _LARGEST_EPOCH else 0
            self.epoch = max(seen, known, self.epoch) + 1
            now = self.state()
            if not self.alone:
                return self.epoch  # what is held is the other guard's
            self._keeper.adopt(self.epoch, {one.id for one in now.holds} if now else None)
            return self.epoch

    def renew_engine_while(self, acts: Callable[[], bool]) -> None:
        """Renew the engine's holds only while it may act; else they end with their lease."""
        self._keeper.engine_renews = acts

    def state(self) -> AgentState | None:
        """Return what the agent says of itself; None when that is old or cannot be read."""
        state = self._spool.state()
        if state is None:
            return None
        age_us = self._clock.boot_us() - state.boot_us
        return state if -FRESH_US < age_us <= FRESH_US else None

    # -- what an actuator does ---------------------------------------------------------------

    def offers(self) -> Mapping[str, Offer]:
        """Return all operations: those of run.json, the holds, and what this agent lacks."""
        why_not = "" if self._folder.is_there else "this run has no control folder of ours"
        offers = {op: Offer(why_not=f"this agent has no {op}") for op in JOBS}
        for op, told in self.ops.items():
            said: Mapping[str, Any] = told if isinstance(told, dict) else {}
            offers[inert(op, 40)] = Offer(why_not=why_not, dry_runs=said.get("dry_run") is True)
        for op in (*HOLDS, *RELEASES):
            offers[op] = Offer(why_not=why_not, dry_runs=True)
        return offers

    def begin(self, command: Command, now_us: int) -> None:
        """Hand a request over; raises MemwatchError with the reason."""
        if not is_id(command.id):
            raise MemwatchError("the request has no id that can be part of a file's name")
        with self._lock:
            self._folder.check_run()
            if command.op in HOLDS:
                self._hold(command)
            elif command.op in RELEASES:
                self._release(command)
            elif self._spool.ack(command.id) is None and not self._spool.is_waiting(command.id):
                epoch = self.epoch if command.origin == ENGINE else None
                self._spool.publish(command.id, self._pinned(command), now_us, epoch)

    def answer(self, command_id: str) -> Answer | None:
        """Return what is known of a request that was begun, by this guard or the one before."""
        with self._lock:
            local, release = self._local.get(command_id), self._releases.get(command_id)
        if local is not None:
            return local
        ack = self._spool.ack(command_id)
        if ack is not None:
            said = AGENT_STATES.get(ack.state)
            result = inert_result(ack.result)
            return (
                Answer(state=said, detail=inert(ack.detail, 120), result=result) if said else None
            )
        state = self.state()
        if state is None:
            return None
        return released(release, state) if release else held(command_id, state)

    def has(self, command_id: str) -> bool:
        """Say whether a request lies with the agent, or was answered; True if nobody can tell."""
        if not is_id(command_id):
            return False
        with self._lock:
            try:
                return self._spool.has(command_id) or self._keeper.has(command_id)
            except OSError:
                return True  # it is not asked for again

    def withdraw(self, command_id: str) -> bool:
        """Take back a request that was not begun; True when it will not be carried out."""
        if not is_id(command_id):
            return False
        with self._lock:
            if command_id in self._local or command_id in self._releases:
                return False
            state = self._spool.state()  # also an old one: what it lists was seen
            if state is not None and held(command_id, state):
                return False
            try:
                return self._spool.withdraw(command_id) or self._keeper.withdraw(command_id)
            except OSError:
                return False

    def holds(self) -> tuple[Hold, ...]:
        """Return what holds the agent: by its own word, and what we keep besides."""
        state = self.state()
        with self._lock:
            kept = {one.file.id: one for one in self._keeper.kept}
        boot_offset_us = self._clock.wall_us() - self._clock.boot_us()
        holds = []
        for told in state.holds if state else ():
            ours = kept.pop(told.id, None)
            holds.append(
                Hold(
                    id=inert(told.id, 60),
                    op=inert(told.op, 20),
                    owner=inert(told.owner, 40),
                    since_us=ours.since_us if ours else 0,
                    ends_us=None if told.ends_us is None else told.ends_us + boot_offset_us,
                    reason=inert(ours.file.reason, 120) if ours else "",
                    effective=told.effective,
                    drained=told.drained,
                )
            )
        for one in kept.values():
            reason, ends_us = inert(one.file.reason, 120), None
            if not one.file.kept:
                ends_us = one.since_us + one.file.lease_us
            holds.append(
                Hold(
                    id=one.file.id,
                    op=one.file.op,
                    owner=one.owner,
                    since_us=one.since_us,
                    ends_us=ends_us,
                    reason=reason,
                )
            )
        return tuple(holds)

    def keep(self, m_us: int) -> tuple[str, ...]:
        """Renew leases that are due; returns what went wrong or was found changed.

        Holds and releases reach the device here, so that nothing that acts waits for it. A
        command never does: one that a power loss takes has no agent any more.
        """
        with self._lock:
            told = (*self._look_for_others(), *self._keeper.keep(m_us))
            state = self._spool.state()
            if state is not None and state.epoch > max(self.epoch, self._outdone_by):
                self._outdone_by = state.epoch
                outdone = f"the agent obeyed another guard (epoch {state.epoch}, ours {self.epoch})"
                told = (*told, outdone)
            unsynced = self._keeper.take_unsynced()
        for name in unsynced:
            self._folder.sync(HOLD, name)
        return told

    # -- below: called with the lock held ----------------------------------------------------

    def _look_for_others(self) -> tuple[str, ...]:
        """Look whether another guard acts on this run; what it held is ours once it does not."""
        before = self.alone
        self.alone = not self._claims or self._folder.claim()
        if self.alone == before:
            return ()
        if not self.alone:
            return ("another guard acts on this run: this one does not",)
        self.claim_epoch()
        return ("the other guard is gone: this one may act",)

    def _hold(self, command: Command) -> None:
        file = hold_of(command, self._folder.run_id, self.epoch, self.engine_lease_us)
        if command.dry_run:
            self._tell(command.id, "done", f"dry run: {ABOUT[command.op]}")
        elif not any(one.file.id == command.id for one in self._keeper.kept):
            state = self.state()
            replaced = self._keeper.put(owner_of(command), file)
            if replaced:
                self._end_hold(replaced, state, "replaced by a newer request")

    def _release(self, command: Command) -> None:
        if command.id in self._releases or command.id in self._local:
            return
        op, chosen, state = RELEASES[command.op], chosen_by(command), self.state()
        now = [h for h in state.holds if h.op == op] if state else []
        told = {one.id for one in now if chosen(one.owner, one.id)}
        if command.dry_run:
            self._tell(command.id, "done", f"dry run: {len(told)} holds would be released")
            return
        ids = {one for one in self._keeper.release(op, chosen) if one} | told
        if not ids:
            self._nothing_held(command, now)
            return
        for one in ids:
            self._end_hold(one, state, "released before the agent saw it")
        gen = state.gen if state else 0
        release = Release(frozenset(ids), bool(told), gen, self._clock.boot_us())
        _remember(self._releases, command.id, release)

    def _end_hold(self, hold_id: str, state: AgentState | None, why: str) -> None:
        """Settle the answer to a hold whose file is no more."""
        answer = held(hold_id, state) if state else None
        _remember(self._local, hold_id, answer or Answer(state="expired", detail=why))

    def _nothing_held(self, command: Command, now: list[HoldState]) -> None:
        others = [inert(one.owner, 40) for one in now]
        if command.origin != ENGINE and others:
            raise MemwatchError(f"held by {', '.join(others)}, not by {owner_of(command)}")
        self._tell(command.id, "done", "nothing held it")

    def _pinned(self, command: Command) -> Command:
        """Bind what is destructive to the start of the agent that it was meant for."""
        told = self.ops.get(command.op)
        if not isinstance(told, dict) or told.get("destructive") is not True:
            return command
        state = self.state()
        if state is None or not state.start_id or "start_id" in command.expect:
            return command
        return replace(command, expect={**command.expect, "start_id": state.start_id})

    def _refusal(self, hold_id: str) -> str | None:
        ack = self._spool.ack(hold_id)
        return inert(ack.detail, 120) if ack is not None and ack.state == "refused" else None

    def _tell(self, command_id: str, state: CommandState, detail: str) -> None:
        _remember(self._local, command_id, Answer(state=state, detail=detail))


def _remember(known: dict[str, Any], name: str, value: Any) -> None:
    known[name] = value
    while len(known) > _REMEMBERED:
        del known[next(iter(known))]
