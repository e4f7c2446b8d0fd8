"""What the guard knows of itself and its run at one instant, for viewers and for the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from memwatch.config.policy import CrashBudget, Policy
from memwatch.config.schema import Profile
from memwatch.domain.clock import Clock
from memwatch.domain.control import EngineInfo, Hold
from memwatch.domain.level import PLANNED
from memwatch.domain.operations import ENGINE, OPERATIONS
from memwatch.domain.snapshot import Disk
from memwatch.engine.facts import Facts, Now
from memwatch.engine.standing import Standing
from memwatch.runtime.guard.controls import Controls
from memwatch.runtime.guard.engine_facts import Circumstances, FactsBuilder
from memwatch.runtime.guard.warden import Warden
from memwatch.runtime.views.checkpoint_view import CheckpointView
from memwatch.runtime.views.facts import RunFacts
from memwatch.runtime.views.limits_view import limits_of
from memwatch.runtime.views.recovery_view import Known, RecoveryView
from memwatch.runtime.views.ring import Ring
from memwatch.runtime.views.run_view import RunView


class Seen(NamedTuple):
    """What the agent's own files said at the newest look of the warden."""

    declared: str | None = None
    """The agent's mode by its own word, where that is newer than its log's."""
    holds: tuple[Hold, ...] = ()
    ops: frozenset[str] = frozenset()
    """What it takes now, holds included."""


class Portrait:
    """Puts together what the other parts know. Thread-safe: it only reads."""

    def __init__(
        self,
        profile: Profile,
        run: RunFacts,
        ring: Ring,
        clock: Clock,
        controls: Controls,
    ) -> None:
        self._profile = profile
        self.run = RunView(run, ring, clock, profile.lights.checkpoint_grace)
        self._ring = ring
        self._actuator = controls.actuator
        self._authority = controls.authority
        self._ledger = controls.ledger
        self._policy = controls.policy
        self._probe = controls.probe
        self._wishes = controls.wishes
        self._facts = FactsBuilder(profile, ring)
        checkpoints = CheckpointView(ring, profile.checkpoints, profile.lights)
        self._recovery = RecoveryView(ring, checkpoints, clock)
        self.known: Callable[[CrashBudget], Known] = lambda budget: Known(budget=budget)
        """What an estimate of a recovery needs besides the ring."""
        self.seen = Seen()
        """For viewers: the tick itself reads no file."""

    @property
    def policy(self) -> Policy:
        """The policy in force, of the agent's phase."""
        return self._policy.of(self._ring.state.phase)

    def _look(self) -> Seen:
        """Read what the agent says of itself now."""
        offers = self._actuator.offers().items()
        ops = frozenset(op for op, offer in offers if not offer.why_not)
        seen = Seen(self._declared(), self._actuator.holds(), ops)
        if seen != self.seen:
            self.seen = seen
            self._ring.touch()
        return seen

    def _declared(self) -> str | None:
        said = self._actuator.state()
        state = self._ring.state
        if said is None or (state.start is not None and said.start_id != state.start.start_id):
            return None
        return said.mode if said.boot_us >= self._ring.axis_of(state.mode_at) else None

    # -- for the engine ----------------------------------------------------------------------

    def facts(self, now: Now) -> tuple[Facts, Policy]:
        """Return what the engine is told at an instant, and the policy in force."""
        policy, seen, at_us = self.policy, self._look(), now.m_us
        with self._ring.lock:
            run_state, _, _ = self.run.state(self._probe.alive, at_us, seen.declared)
            manifest, machine = self.run.run.manifest, self._probe.limits
            limits = limits_of(self._profile, self._ring, manifest, machine, policy)
            disk = self._ring.disk
            recovery = self._recovery.facts(self.known(policy.budget), at_us)
        space = Disk()
        if disk is not None:
            space = Disk(total_bytes=disk.total_bytes, free_bytes=disk.free_bytes)
        known = Circumstances(
            policy=policy,
            limits=limits,
            run_state=run_state,
            mode=self._authority.mode,
            allow=self._authority.allow,
            ops=seen.ops,
            disk=space,
            pressure=self._probe.pressure,
            period_s=self._probe.period_s,
            commands=self._ledger.commands(),
            holds=self._minded(seen.holds),
            approved=self._wishes.approved,
            declined=self._wishes.declined,
            released_m_us=self._wishes.released_m_us,
            reset_m_us=self._wishes.reset_m_us,
            recovery=recovery,
        )
        return self._facts.build(known, at_us), policy

    def _minded(self, holds: tuple[Hold, ...]) -> tuple[Hold, ...]:
        """Return what the engine may look after: not what another guard's engine holds."""
        if not self._authority.rival:
            return holds
        return tuple(hold for hold in holds if hold.owner != ENGINE)

    # -- for viewers -------------------------------------------------------------------------

    def engine(self, warden: Warden) -> EngineInfo:
        """Return what the engine may do, is at, and waits for."""
        authority, grant, at = self._authority, self._authority.grant, warden.standing
        allow = authority.allow
        waiting = f"{warden.unwritten}: nothing is done" if warden.unwritten else ""
        return EngineInfo(
            mode=authority.mode,
            allow=tuple(sorted(allow)),
            policy_allow=tuple(sorted(self.policy.allow)),
            until_us=grant.until_us,
            by=grant.by,
            asked=authority.asked,
            will=self._will(allow),
            policy=self._policy.book.origin,
            policy_error=self._policy.error,
            epoch=self._actuator.epoch,
            plan=at.plan if at else None,
            last=at.last if at else None,
            waiting=waiting or (at.waiting if at else ""),
            open_breakers=at.open_breakers if at else (),
            soft_why=at.soft_why if at else "",
            pressure=self._probe.pressure,
            missing=self._missing(at),
            stop_file=authority.stop_file,
        )

    def _missing(self, at: Standing | None) -> dict[str, str]:
        """Return why an operation cannot be asked for, by its name, as far as anybody might."""
        no_commands = self._actuator.no_commands
        if no_commands:
            return dict.fromkeys(OPERATIONS, no_commands)
        return {**(at.missing if at else {}), **self._policy.book.missing}

    def _will(self, allow: frozenset[str]) -> str:
        """Say in one line whether the engine acts, and at which levels."""
        authority, no_commands = self._authority, self._actuator.no_commands
        if no_commands:
            return f"WILL NOT ACT ({no_commands})"
        if self._probe.alive is False:
            return "WILL NOT ACT (the agent is not running)"
        if authority.mode != "act":
            barred = "STOP file" if authority.stopped else "another guard acts"
            why = barred if authority.stopped or authority.rival else authority.mode
            return f"WILL NOT ACT ({why})"
        usable, rules = allow & self.seen.ops, self.policy.levels
        acts = [
            level
            for level in PLANNED
            if any(step.op in usable for step in getattr(rules, level).steps)
        ]
        return f"WILL ACT ({', '.join(acts)})" if acts else "WILL NOT ACT (nothing is allowed)"
