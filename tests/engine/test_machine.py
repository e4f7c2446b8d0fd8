"""The engine under anything that may happen, in any order: what must hold after each tick."""

from __future__ import annotations

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from memwatch.config.policy import Breaker, Enter, Exit, Measure, Pause, Policy, ResourceRule
from memwatch.domain.command import FINAL_STATES, CommandState
from memwatch.domain.control import Pressure
from memwatch.domain.level import EngineMode, Level, rank
from memwatch.domain.plan import Plan
from memwatch.domain.policy import Keep
from memwatch.engine.decision import Decision
from memwatch.engine.facts import ResourceFacts
from memwatch.engine.levels import level_of
from memwatch.engine.state import EngineState
from memwatch.engine.tick import tick
from tests.engine.world import ALL, World

_LEVELS = Policy().levels
POLICY = replace(
    Policy(),
    enter=Enter(warn_s=4, intervene_s=4),
    exit=Exit(dwell_s=6),
    levels=replace(
        _LEVELS,
        warn=replace(_LEVELS.warn, cooldown_s=30),
        intervene=replace(_LEVELS.intervene, cooldown_s=30),
        emergency=replace(_LEVELS.emergency, cooldown_s=20),
    ),
    measure=Measure(after_s=4),
    breaker=Breaker(after=2),
    pause=Pause(longest_s=60),
    ask_s=20,
    resources={"tier:recent": ResourceRule(warn=0.5, emergency=0.9, levels=_LEVELS)},
)
ANSWERS: tuple[CommandState, ...] = (
    "accepted",
    "running",
    "done",
    "refused",
    "failed",
    "expired",
    "unknown",
)
SHARES = st.one_of(
    st.sampled_from([0.3, 0.54, 0.58, 0.62, 0.72, 0.78, 0.89, 0.92, 0.96]),
    st.floats(0, 1.1),
    st.just(float("nan")),
)


class Engine(RuleBasedStateMachine):
    """Drives the world; the model of the rules is here, apart from the engine."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(POLICY)
        self.world.answers = lambda _: "asked"
        self.decisions: tuple[Decision, ...] = ()
        self.before = EngineState()
        self.asked: dict[str, Decision] = {}
        self.given_up: set[str] = set()
        self.rest_until: dict[Level, int] = {}
        """Earliest next plan of a level of memory, by what was seen to end."""

    # -- what happens ------------------------------------------------------------------------

    @rule(
        share=SHARES,
        ticks=st.integers(1, 6),
        grows=st.sampled_from([None, 0.0, 60e6, 900e6]),
        falls=st.booleans(),
    )
    def time_passes(self, share: float, ticks: int, grows: float | None, falls: bool) -> None:
        self.world.share = share
        near = None if not grows else (8e9 / grows * 60, 8e9 / grows * 90)
        self.world.memory = {
            "growth_recent_per_min": grows,
            "growth_per_min": grows,
            "time_to_limit_s": near,
            "mean_10s": 1e9 if falls else 2e9,
            "mean_60s": 2e9,
        }
        for _ in range(ticks):
            self.tick()

    @rule(seconds=st.integers(10, 90))
    def much_time_passes(self, seconds: int) -> None:
        for _ in range(seconds // 2):
            self.tick()

    @rule(answer=st.sampled_from(ANSWERS), newest=st.booleans())
    def the_agent_answers(self, answer: CommandState, newest: bool) -> None:
        waits = [n for n, c in self.world.commands.items() if c.state not in FINAL_STATES]
        if waits:
            name = waits[-1 if newest else 0]
            self.world.answer(name, answer)
            op = self.world.commands[name].op
            if answer == "done" and op in ("pause", "read_only"):
                self.world.hold(op)
            if answer == "done" and op == "resume":
                self.world.holds.pop("pause", None)
        self.tick()

    @rule(mode=st.sampled_from(["off", "observe", "shadow", "ask", "act", "act", "act"]))
    def a_person_sets_the_mode(self, mode: EngineMode) -> None:
        if mode != self.world.mode:
            self.rest_until = {}
        self.world.mode = mode
        self.tick()

    @precondition(lambda self: self.world.state.plan is not None)
    @rule(lets=st.booleans())
    def a_person_answers(self, lets: bool) -> None:
        plan = self.world.state.plan
        assert plan is not None
        if lets:
            self.world.approved |= {plan.id}
        else:
            self.world.declined |= {plan.id}
        self.tick()

    @rule(op=st.sampled_from(["pause", "read_only"]))
    def a_person_releases(self, op: str) -> None:
        if op in self.world.holds:
            self.world.person_releases(op)
        self.tick()

    @rule()
    def a_person_resets(self) -> None:
        self.world.reset_m_us = self.world.now.m_us
        self.rest_until = {}
        self.tick()

    @rule(lacks=st.frozensets(st.sampled_from(sorted(ALL))), forbids=st.booleans())
    def operations_come_and_go(self, lacks: frozenset[str], forbids: bool) -> None:
        self.world.ops = ALL if forbids else ALL - lacks
        self.world.allow = ALL - lacks if forbids else ALL
        self.tick()

    @rule(limit=st.sampled_from([None, 0.0, 2e9, 8e9, 64e9]))
    def the_limit_changes(self, limit: float | None) -> None:
        self.world.limit = limit
        self.tick()

    @rule(measured=st.booleans())
    def the_probe_stalls_or_goes_on(self, measured: bool) -> None:
        self.world.measured = measured
        self.tick()

    @rule(used=st.floats(0, 12))
    def a_tier_is_measured(self, used: float) -> None:
        self.world.others = (ResourceFacts(name="tier:recent", used=used, limit=10.0),)
        self.tick()

    @rule(full=st.sampled_from([None, 0.0, 20.0, 90.0]))
    def pressure_changes(self, full: float | None) -> None:
        calm = full is None
        self.world.pressure = (
            None
            if calm
            else Pressure(scope="cgroup", some_avg10=full or 0, some_avg60=0, full_avg10=full or 0)
        )
        self.tick()

    @rule(experiments=st.sampled_from([None, 10, 50]))
    def the_phase_changes(self, experiments: int | None) -> None:
        kept = {} if experiments is None else {"history": Keep(experiments=experiments)}
        self.world.policy = replace(POLICY, retention=kept)
        self.tick()

    @rule()
    def the_guard_restarts(self) -> None:
        self.world.state = EngineState.resume(self.world.state.save(), same_boot=True)
        self.tick()

    @rule()
    def the_machine_restarts(self) -> None:
        self.world.state = EngineState.resume(self.world.state.save(), same_boot=False)
        self.world.start_id += "+"
        self.world.commands = {}
        self.given_up |= self.asked.keys()
        self.rest_until = {}
        self.tick()

    @rule()
    def the_agent_restarts(self) -> None:
        self.world.start_id += "'"
        self.tick()

    @rule()
    def a_request_is_lost(self) -> None:
        if self.world.commands:
            del self.world.commands[next(reversed(self.world.commands))]
        self.tick()

    # -- one tick ----------------------------------------------------------------------------

    def tick(self) -> None:
        self.before = self.world.state
        self.decisions = self.world.tick()
        self.note()
        self.check_decisions()
        self.check_restored()

    def note(self) -> None:
        """Keep the model: what was asked, given up, and must rest."""
        for one in self.decisions:
            if one.kind == "ask" and not one.dry:
                known = self.asked.setdefault(one.command_id, one)
                assert (known.op, known.args) == (one.op, one.args)
            if one.kind == "withdraw":
                self.given_up.add(one.command_id)
            if one.kind == "level" and rank(one.level) >= rank("emergency"):
                self.rest_until.pop(one.level, None)  # entered anew: it waits for nothing
        self.check_rest()
        ended = self.world.state.last
        if ended is None or ended == self.before.last or ended.resource != "memory":
            return
        begun = any(step.asked_us for step in ended.steps)
        if begun and ended.rule.startswith("levels.") and ended.done_m_us == self.world.now.m_us:
            until = self.world.now.m_us + round(
                getattr(POLICY.levels, ended.level).cooldown_s * 1e6
            )
            self.rest_until[ended.level] = until

    def made(self) -> Plan | None:
        """Return the plan that this tick made."""
        plan = self.world.state.plan or self.world.state.last
        return plan if plan is not None and plan.made_m_us == self.world.now.m_us else None

    def check_rest(self) -> None:
        """A level of memory is not acted on again while it cools down."""
        plan = self.made()
        if plan is None or plan.rule != f"levels.{plan.level}":
            return
        assert self.world.now.m_us >= self.rest_until.get(plan.level, 0), plan

    def check_decisions(self) -> None:
        world = self.world
        for one in self.decisions:
            assert one.why
            assert one.rule
            assert "\n" not in one.why
            assert one.op != "read_write"
            if one.kind != "ask" or one.op == "resume":
                continue
            assert one.op in world.ops & world.allow
            assert world.mode in ("act", "ask", "shadow")
            assert one.dry == (world.mode == "shadow")

    def check_restored(self) -> None:
        """The state is plain JSON, and what is restored from it decides alike."""
        world = self.world
        raw = msgspec.json.decode(msgspec.json.encode(world.state))
        restored = EngineState.resume(raw, same_boot=True)
        assert restored == world.state
        later = world.now._replace(m_us=world.now.m_us + 1_000_000)
        facts = world.facts()
        assert tick(restored, facts, world.policy, later) == tick(
            world.state, facts, world.policy, later
        )

    # -- what holds --------------------------------------------------------------------------

    @invariant()
    def one_plan_is_in_flight(self) -> None:
        plan = self.world.state.plan
        name = plan.id if plan is not None else ""
        waits = {
            one.plan.id
            for command_id, one in self.asked.items()
            if one.plan is not None
            and command_id not in self.given_up
            and command_id in self.world.commands
            and self.world.commands[command_id].state == "asked"
        }
        assert waits <= {name}

    @invariant()
    def only_what_is_higher_preempts(self) -> None:
        old, new = self.before.plan, self.world.state.plan
        ended = self.world.state.last
        if old is None or new is None or ended is None or ended.id != old.id or new.id == old.id:
            return
        if ended.detail.startswith("pre-empted"):
            urgent = new.resource == "memory" != old.resource
            assert rank(new.level) > rank(old.level) or (urgent and new.level == old.level)

    @invariant()
    def an_emergency_never_waits(self) -> None:
        risen = [
            one
            for one in self.decisions
            if one.kind == "level"
            and one.resource == "memory"
            and rank(one.level) >= rank("emergency")
            and rank(one.level) > rank(self.before.level())
        ]
        world, plan = self.world, self.before.plan
        in_flight = plan is not None and plan.resource == "memory"
        if not risen or world.mode != "act":
            return
        level = risen[-1].level
        if in_flight and plan is not None and rank(plan.level) >= rank(level):
            return
        steps = getattr(POLICY.levels, level).steps
        able = {step.op for step in steps} & world.ops & world.allow
        able -= {op for op in world.holds if op in ("pause", "read_only")}
        asked = [one.level for one in self.decisions if one.kind == "ask" and one.plan is not None]
        assert not able or level in asked

    @invariant()
    def an_emergency_is_seen_at_once(self) -> None:
        world = self.world
        fresh = world.measured and world.share is not None and world.limit
        if not fresh:
            return
        literal = level_of(world.share, world.policy.thresholds)
        if rank(literal) >= rank("emergency"):
            assert rank(world.level()) >= rank(literal)

    @invariant()
    def what_may_not_act_plans_nothing(self) -> None:
        if self.world.mode in ("off", "observe"):
            assert self.world.state.plan is None


TestEngine = Engine.TestCase
TestEngine.settings = settings(max_examples=120, stateful_step_count=40)
