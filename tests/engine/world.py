"""A world for the engine: memory, an agent that answers, people; all defaulted, time by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from memwatch.config.policy import Policy
from memwatch.domain.command import CommandInfo, CommandState
from memwatch.domain.control import Hold, Pressure
from memwatch.domain.level import EngineMode, Level
from memwatch.domain.snapshot import RunState
from memwatch.engine.decision import Decision
from memwatch.engine.facts import CheckpointFacts, Facts, Now, RecoveryFacts, ResourceFacts
from memwatch.engine.standing import Standing, standing
from memwatch.engine.state import EngineState
from memwatch.engine.tick import tick

ALL = frozenset(
    ("checkpoint", "purge", "reclaim", "retain", "pause", "read_only", "abort_experiment")
)
LIMIT = 8e9
Answers = Callable[[Decision], CommandState | None]


def obeys(_: Decision) -> CommandState | None:
    """Answer as an agent that does all it is asked."""
    return "done"


def deaf(_: Decision) -> CommandState | None:
    """Answer as an agent that never answers: the request stays asked."""
    return "asked"


def loses(_: Decision) -> CommandState | None:
    """Answer as a ledger that lost the request."""
    return None


class World:
    """Drives the engine and keeps what it decided."""

    def __init__(self, policy: Policy | None = None, mode: EngineMode = "act") -> None:
        self.policy = policy or Policy()
        self.mode: EngineMode = mode
        self.state = EngineState()
        self.share: float | None = 0.3
        self.limit: float | None = LIMIT
        self.memory: dict[str, Any] = {}
        """More of the facts of memory."""
        self.others: tuple[ResourceFacts, ...] = ()
        self.answers: Answers = obeys
        self.ops = self.allow = ALL
        self.start_id = "one"
        self.phase: str | None = None
        self.run_state: RunState = "running"
        self.pressure: Pressure | None = None
        self.checkpoint = CheckpointFacts()
        self.recovery = RecoveryFacts()
        self.commands: dict[str, CommandInfo] = {}
        self.holds: dict[str, Hold] = {}
        self.approved: frozenset[str] = frozenset()
        self.declined: frozenset[str] = frozenset()
        self.released_m_us: int | None = None
        self.reset_m_us: int | None = None
        self.period_s = 2.0
        self.measured = True
        """Whether memory is measured at each tick."""
        self.now = Now(1_800_000_000_000_000, 1_000_000_000)
        self.measured_m_us = self.now.m_us
        self.told: list[Decision] = []
        """All decisions."""

    # -- time --------------------------------------------------------------------------------

    def tick(self, seconds: float = 2.0) -> tuple[Decision, ...]:
        """Let time pass, then decide once; what is asked is answered before the next tick."""
        step_us = round(seconds * 1e6)
        self.now = Now(self.now.t_us + step_us, self.now.m_us + step_us)
        if self.measured:
            self.measured_m_us = self.now.m_us
        self.state, decisions = tick(self.state, self.facts(), self.policy, self.now)
        self.told += decisions
        for decision in decisions:
            self._carry_out(decision)
        return decisions

    def run(self, seconds: float, share: float | None = None, step_s: float = 2.0) -> None:
        """Let time pass in ticks, at a share of the limit."""
        if share is not None:
            self.share = share
        for _ in range(round(seconds / step_s)):
            self.tick(step_s)

    def facts(self) -> Facts:
        """Return what is so now."""
        used = None if self.share is None else self.share * (self.limit or LIMIT)
        facts = {
            "name": "memory",
            "used": used,
            "limit": self.limit,
            "limit_name": "policy",
            "measured_m_us": self.measured_m_us,
        }
        memory = ResourceFacts(**{**facts, **self.memory})
        others = tuple(replace(one, measured_m_us=self.now.m_us) for one in self.others)
        return Facts(
            mode=self.mode,
            allow=self.allow,
            ops=self.ops,
            run_state=self.run_state,
            start_id=self.start_id,
            phase=self.phase,
            resources=(memory, *others),
            pressure=self.pressure,
            checkpoint=self.checkpoint,
            recovery=self.recovery,
            sample_period_s=self.period_s,
            commands=dict(self.commands),
            holds=tuple(self.holds.values()),
            approved=self.approved,
            declined=self.declined,
            released_m_us=self.released_m_us,
            reset_m_us=self.reset_m_us,
        )

    # -- the agent ---------------------------------------------------------------------------

    def _carry_out(self, decision: Decision) -> None:
        if decision.kind == "withdraw":
            self.answer(decision.command_id, "expired", only_if="asked")
        if decision.kind != "ask" or decision.dry or decision.command_id in self.commands:
            return
        state = self.answers(decision)
        if state is None:
            return
        name = decision.command_id
        info = CommandInfo(
            id=name, op=decision.op, state=state, asked_us=self.now.t_us, changed_us=self.now.t_us
        )
        self.commands[name] = info
        if state == "done":
            self._done(decision)

    def _done(self, decision: Decision) -> None:
        if decision.op in ("pause", "read_only"):
            self.hold(decision.op)
        elif decision.op == "resume":
            self.holds.pop("pause", None)

    def hold(self, op: str) -> None:
        """Put a hold of the engine's in force."""
        self.holds[op] = Hold(id=f"engine-{op}", op=op, owner="engine", effective=True)

    def answer(self, command_id: str, state: CommandState, only_if: str = "") -> None:
        """Let the agent answer a request."""
        info = self.commands.get(command_id)
        if info is not None and only_if in ("", info.state):
            self.commands[command_id] = replace(info, state=state)

    def person_releases(self, op: str = "pause") -> None:
        """Let a person end a hold of the engine's."""
        self.holds.pop(op, None)
        self.released_m_us = self.now.m_us + 1

    # -- what was decided --------------------------------------------------------------------

    def level(self) -> Level:
        """Return the level of memory."""
        return self.state.level()

    def asked(self, since: int = 0) -> list[str]:
        """Operations asked for, in order, dry ones included."""
        return [one.op for one in self.told[since:] if one.kind == "ask"]

    def levels(self) -> list[Level]:
        """Levels entered, in order."""
        return [one.level for one in self.told if one.kind == "level"]

    def kinds(self, kind: str) -> list[Decision]:
        """Return the decisions of a kind."""
        return [one for one in self.told if one.kind == kind]

    def standing(self) -> Standing:
        """Where the engine stands."""
        return standing(self.state, self.facts(), self.policy, self.now)
