"""What the engine remembers from tick to tick: plain values, a file of JSON at any point."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from memwatch.domain.level import EngineMode, Level
from memwatch.domain.plan import Plan
from memwatch.engine.hysteresis import LevelState
from memwatch.engine.pressure import PressureState
from memwatch.engine.soft_limit import SoftState

PauseStage = Literal["helps", "relief", "abort", "ends", "stays"]
"""helps: it may yet · relief: it lasted too long, reclaiming is tried once more · abort: then the
experiment is aborted · ends: then it is released · stays: then it is left to a person."""


class PauseState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pause of the engine's that is in force."""

    since_m_us: int
    level: Level
    """The highest level seen while it lasts: what must be left for it to end."""
    resource: str = "memory"
    stage: PauseStage = "helps"


class RetentionState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the agent was asked to keep."""

    asked: dict[str, dict[str, Any]] = {}
    """By tier, as last asked for; a tier that is not in it keeps what the agent itself says."""
    command_id: str = ""
    """Request that is not answered yet."""
    tier: str = ""
    before: dict[str, Any] | None = None
    """What was asked for that tier before it."""
    asked_m_us: int = 0
    refused: dict[str, dict[str, Any] | None] = {}
    """What the agent would not do: not asked again until the policy says something else."""


class BudgetState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was done about a budget (`CrashBudget`)."""

    planned_m_us: int | None = None
    """When its newest checkpoint was planned."""
    tried: dict[str, float] = {}
    """By rule, the figure that this checkpoint has not brought under its budget (yet)."""


class EngineState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All of it. Times are of the boot clock, in microseconds."""

    at_m_us: int = 0
    """The newest tick."""
    mode: EngineMode = "off"
    """As it was then."""
    start_id: str = ""
    levels: dict[str, LevelState] = {}
    """By resource; one that is missing is at normal and has nothing under way."""
    soft: SoftState = SoftState()
    pressure: PressureState = PressureState()
    least: Level = "normal"
    """Level that pressure calls for."""
    plan: Plan | None = None
    """In flight, or proposed and waiting for a person."""
    last: Plan | None = None
    """The one before; its effect is measured a while after its end."""
    handed_over_m_us: int = 0
    """When the step in work was handed over last."""
    cooldowns: dict[str, int] = {}
    """End of the cool-down, by slot."""
    ineffective: dict[str, int] = {}
    """Plans without effect in a row, by slot."""
    breakers: dict[str, int] = {}
    """Since when they are open, by slot."""
    outlook_m_us: int | None = None
    """When a plan was made because time or room ran out."""
    budget: BudgetState = BudgetState()
    pause: PauseState | None = None
    release_id: str = ""
    """Request to end the pause."""
    release_m_us: int = 0
    released_m_us: int | None = None
    """The newest release of a hold of ours by a person that was minded."""
    retention: RetentionState = RetentionState()
    touched_m_us: int | None = None
    """Since when the hard limit counts as touched: until a person lets the agent write again."""
    told: dict[str, str] = {}
    """Why no plan is made, by slot: told once."""

    def level(self, resource: str = "memory") -> Level:
        """Return the level of a resource."""
        found = self.levels.get(resource)
        return found.level if found else "normal"

    def save(self) -> Any:
        """Return it as plain values, for a record."""
        return msgspec.to_builtins(self)

    @classmethod
    def resume(cls, raw: Any, *, same_boot: bool) -> EngineState:
        """Return a state that was saved; raises msgspec.ValidationError when it is none.

        Another boot has another clock and another agent: durations begin anew, the plan in flight
        ends unknown, and what latches (levels, breakers, holds, the soft limit) stays.
        """
        state = msgspec.convert(raw, cls)
        plan = state.plan
        if plan is not None and not 0 <= plan.at <= len(plan.steps):
            raise msgspec.ValidationError("a plan is behind its last step")
        return state if same_boot else state.rebased()

    def rebased(self) -> EngineState:
        """Return it for another boot clock."""
        plan = self.plan
        if plan is not None:
            plan = replace(
                plan, state="unknown", effect="unmeasured", detail="another boot", done_m_us=0
            )
        elif self.last is not None and self.last.effect == "pending":
            plan = replace(self.last, effect="unmeasured")
        return EngineState(
            mode=self.mode,
            levels={name: LevelState(level=one.level) for name, one in self.levels.items()},
            soft=replace(self.soft, stepped_m_us=None, calm_m_us=None, near_m_us={}),
            last=plan or self.last,
            ineffective=self.ineffective,
            breakers=dict.fromkeys(self.breakers, 0),
            touched_m_us=None if self.touched_m_us is None else 0,
        )

    def durable_changed(self, other: EngineState) -> bool:
        """Say whether a restart would lose something that matters: what latches or was decided."""
        return self._durable() != other._durable()

    def _durable(self) -> tuple[object, ...]:
        return (
            {name: one.level for name, one in self.levels.items() if one.level != "normal"},
            self.soft.points,
            self.plan,
            self.last,
            self.cooldowns,
            self.ineffective,
            self.breakers,
            self.outlook_m_us,
            self.budget.planned_m_us,
            self.pause,
            self.release_id,
            self.released_m_us,
            self.retention,
            self.touched_m_us,
        )
