"""The thread that runs the threshold engine: facts in, decisions written down, then carried out.

It is woken by each look at the process tree, by answers of the agent, and once a second. What is
decided is in `guard.wal` before anything is sent. A tick that asks for something and cannot be
written down did not happen: it is made again from the facts of the next one, and nothing is done
meanwhile. In an emergency nothing waits for the device: a record that is written outlives the
guard, and one that a power loss takes has no agent any more. Source: R8 to R10; control, F42, F46.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from memwatch.config.policy import Policy
from memwatch.domain.clock import Clock
from memwatch.domain.command import FINAL_STATES, Command
from memwatch.domain.level import Level, rank
from memwatch.domain.operations import ENGINE
from memwatch.domain.plan import Plan
from memwatch.domain.record import Record
from memwatch.engine.decision import Decision
from memwatch.engine.facts import Facts, Now
from memwatch.engine.standing import Standing, standing
from memwatch.engine.state import EngineState
from memwatch.engine.tick import tick
from memwatch.runtime.guard.recorder import Recorder
from memwatch.runtime.lasting import lasting
from memwatch.wal.codec import OWN_MEMBERS

_PERIOD_S = 1.0
_LONGEST_S = 10.0
"""An engine that fails again and again is tried again this often: an emergency waits no longer."""
_STATE_US = 600_000_000
"""The state is written down at least this often: a guard's start looks back a bounded time."""
_NEAR_S = 300.0
_URGENT: dict[Level, float] = {
    "normal": 0.0,
    "warn": 1.0,
    "intervene": 0.5,
    "emergency": 0.5,
    "hard": 0.5,
}
"""Seconds between two looks at a level; 0 for the profile's."""


class Warden:
    """Runs the engine of one run."""

    def __init__(
        self,
        facts: Callable[[Now], tuple[Facts, Policy]],
        recorder: Recorder,
        clock: Clock,
        boot_id: str,
    ) -> None:
        """`facts` gives what the engine is told, and the policy in force, at an instant."""
        self._facts = facts
        self._recorder = recorder
        self._clock = clock
        self._boot_id = boot_id
        self._state = EngineState()
        self._written = EngineState()
        self._state_due_us = 0
        self._stumbled = False
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memwatch-warden", daemon=True)
        self.standing: Standing | None = None
        """What the engine is at, as of the newest tick; None before the first."""
        self.period_s = 0.0
        """Seconds between two looks at the process tree that the engine wants; 0: any."""
        self.unwritten = ""
        """Why nothing is done by itself, while guard.wal cannot be written."""
        self.send: Callable[[Command], object] = lambda _: None
        self.withdraw: Callable[[str, str], object] = lambda _, __: None
        """Take back a request by its id, with the reason."""
        self.tell: Callable[[Record], None] = lambda _: None
        """Told each record that was written."""
        self.shout: Callable[[str], None] = lambda _: None
        """Told what a person must know at once."""
        self.on_news: Callable[[], None] = lambda: None
        """Told after each tick."""
        self.on_failure: Callable[[str], None] = lambda _: None
        """Told why this loop failed; it goes on."""

    # -- life --------------------------------------------------------------------------------

    def restore(self, states: list[Record], told: Iterable[Record] = ()) -> str:
        """Go on from the newest `engine.state`; returns what was wrong with it, for people.

        `told` is what was written down besides, in order.
        """
        if not states:
            return ""
        newest, trouble = states[-1], ""
        raw, boot = newest.members.get("state"), newest.text("boot")
        try:
            self._state = EngineState.resume(raw, same_boot=boot == self._boot_id)
        except msgspec.ValidationError:
            trouble = "the engine's state cannot be read: its levels begin anew"
        self._end_what_nobody_goes_on_with(told, newest.lsn)
        return trouble

    def _end_what_nobody_goes_on_with(self, told: Iterable[Record], state_lsn: int) -> None:
        """Write down an end of each plan on record that is not the one in flight.

        Of one that is newer than the state nothing was asked for: the guard was killed between
        two records of the same tick.
        """
        on_record = {record.text("id"): record for record in told if record.kind == "plan"}
        in_flight = self._state.plan.id if self._state.plan is not None else ""
        for name, record in on_record.items():
            if name == in_flight or record.text("state") in FINAL_STATES:
                continue
            begun = record.lsn < state_lsn
            said = {k: v for k, v in record.members.items() if k not in OWN_MEMBERS}
            end = {
                "state": "unknown" if begun else "expired",
                "effect": "unmeasured",
                "detail": "its guard ended" + ("" if begun else " before it asked for anything"),
            }
            self.tell(self._recorder.append("plan", {**said, **end}))

    def start(self) -> None:
        """Begin: the state is written down first, so that the next guard finds one."""
        self._keep_state(self._state)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def hear(self) -> None:
        """Say that something was measured or answered."""
        self._wake.set()

    def _run(self) -> None:
        told = self.on_failure
        lasting("the engine", self._follow, self._stop, told, longest_s=_LONGEST_S)

    def _follow(self) -> None:
        while not self._stop.is_set():
            self.look()
            self._wake.wait(_PERIOD_S)
            self._wake.clear()

    @property
    def level(self) -> Level:
        """The highest level of any resource, as of the newest tick."""
        levels = self.standing.levels.values() if self.standing else ()
        return max(levels, key=rank, default="normal")

    @property
    def waiting_plan(self) -> str:
        """The plan that waits for a person; empty for none."""
        plan = self.standing.plan if self.standing else None
        return plan.id if plan is not None and plan.state == "proposed" else ""

    # -- one tick ----------------------------------------------------------------------------

    def look(self) -> None:
        """Decide once, and carry out what was decided."""
        now = Now(self._clock.wall_us(), self._clock.boot_us())
        facts, policy = self._facts(now)
        state, decisions = self._decide(facts, policy, now)
        asks = [decision for decision in decisions if _is_sent(decision)]
        sends = bool(asks)
        gentle = sends and all(rank(one.level) < rank("emergency") for one in asks)
        records = self._write(state, decisions, sync=gentle)
        written = all(record.lsn for record in records)
        self.unwritten = "" if written or not sends else self._recorder.why
        if written or not sends:
            self._state = state
            for record in records:
                self.tell(record)
            for decision in decisions:
                self._carry_out(decision)
        self.standing = standing(state, facts, policy, now)
        self.period_s = _period_s(self.level, facts)
        self.on_news()

    def _decide(
        self, facts: Facts, policy: Policy, now: Now
    ) -> tuple[EngineState, tuple[Decision, ...]]:
        """Decide; what it remembers may be what it stumbles over, so it goes on with less of it."""
        try:
            decided = tick(self._state, facts, policy, now)
        except Exception:
            self._state = EngineState() if self._stumbled else self._state.rebased()
            self._stumbled = True
            raise
        self._stumbled = False
        return decided

    def _write(
        self, state: EngineState, decisions: tuple[Decision, ...], *, sync: bool
    ) -> list[Record]:
        """Write the decisions, then what is remembered; returns the records.

        With `sync` the last one is on the device, and with it those before.
        """
        sends = any(_is_sent(decision) for decision in decisions)
        records = [
            self._recorder.append(*record, acting=sends)
            for decision in decisions
            for record in _records(decision)
        ]
        due = self._clock.boot_us() >= self._state_due_us
        if sends or due or state.durable_changed(self._written):
            records.append(self._keep_state(state, sync=sync, acting=sends))
        return records

    def _keep_state(
        self, state: EngineState, *, sync: bool = False, acting: bool = False
    ) -> Record:
        members = {"state": state.save(), "boot": self._boot_id}
        record = self._recorder.append("engine.state", members, sync=sync, acting=acting)
        if record.lsn:
            self._written = state
            self._state_due_us = self._clock.boot_us() + _STATE_US
        return record

    def _carry_out(self, decision: Decision) -> None:
        if decision.kind == "shout":
            self.shout(decision.why)
        elif decision.kind == "withdraw" and not decision.dry:
            self.withdraw(decision.command_id, decision.why)
        elif _is_sent(decision):
            self.send(_command(decision))


def _is_sent(decision: Decision) -> bool:
    return decision.kind == "ask" and not decision.dry


def _command(decision: Decision) -> Command:
    """Return the request that a decision hands over."""
    plan = decision.plan
    steps = plan.steps if plan is not None else ()
    step = next((one for one in steps if one.command_id == decision.command_id), None)
    return Command(
        op=decision.op,
        args=decision.args,
        origin=ENGINE,
        by=ENGINE,
        why=decision.why,
        id=decision.command_id,
        plan=plan.id if plan is not None else "",
        ttl_us=round(step.patience_s * 1e6) if step is not None else None,
    )


def _records(decision: Decision) -> list[tuple[str, dict[str, Any]]]:
    """Return kind and members of the records that tell a decision."""
    if decision.kind == "level":
        level = {"level": decision.level, "resource": decision.resource, "share": decision.value}
        return [("level", {**level, "why": decision.why})]
    if decision.plan is not None and decision.kind in ("plan", "effect"):
        return [("plan", _plan_members(decision.plan))]
    return [
        (
            "engine.decision",
            {
                "what": decision.kind,
                "rule": decision.rule,
                "level": decision.level,
                "resource": decision.resource,
                "value": decision.value,
                "limit": decision.limit,
                "why": decision.why,
                "dry": decision.dry,
            },
        )
    ]


def _plan_members(plan: Plan) -> dict[str, Any]:
    steps = [
        {
            "op": step.op,
            "args": step.args,
            "id": step.command_id,
            "state": step.state,
            "detail": step.detail,
        }
        for step in plan.steps
    ]
    return {
        "id": plan.id,
        "level": plan.level,
        "resource": plan.resource,
        "rule": plan.rule,
        "why": plan.why,
        "state": plan.state,
        "detail": plan.detail,
        "dry": plan.dry,
        "effect": plan.effect,
        "at": plan.at,
        "steps": steps,
        "before_bytes": plan.before_bytes,
        "after_bytes": plan.after_bytes,
    }


def _period_s(level: Level, facts: Facts) -> float:
    """Return how often the process tree should be looked at; 0 for as often as usual."""
    wanted = _URGENT[level]
    memory = facts.resource("memory")
    near = memory.time_to_limit_s if memory else None
    if wanted == 0 and near is not None and near[0] < _NEAR_S:
        return _URGENT["warn"]
    return wanted
