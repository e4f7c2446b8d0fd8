"""What is due about once a second besides requests: policy, authority, leases, reserve, budget.

Each may wait for a disk, so it runs on the clerk's thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from memwatch.domain.clock import Clock
from memwatch.domain.command import Command
from memwatch.domain.errors import SessionError
from memwatch.domain.level import ACTING, Level
from memwatch.domain.record import Record
from memwatch.domain.text import inert
from memwatch.runtime.guard.budget import SelfLimits
from memwatch.runtime.guard.controls import Controls
from memwatch.runtime.guard.recorder import Recorder
from memwatch.runtime.guard.reserve import DiskReserve

GRANT_AGAIN_US: Final = 1_800_000_000
"""A grant is written down this often: a guard's start looks back a bounded time."""
_RESERVE_US: Final = 10_000_000


class Upkeep:
    """Does what is due; also carries out what people ask of mode and policy."""

    def __init__(
        self,
        recorder: Recorder,
        clock: Clock,
        controls: Controls,
        reserve: DiskReserve,
        limits: SelfLimits,
    ) -> None:
        self._recorder = recorder
        self._clock = clock
        self._actuator = controls.actuator
        self._authority = controls.authority
        self._policy = controls.policy
        self._probe = controls.probe
        self._reserve = reserve
        self._limits = limits
        self._grant_due_us = 0
        self._reserve_due_us = 0
        self.level: Callable[[], Level] = lambda: "normal"
        """The engine's level of memory."""
        self.tell: Callable[[Record], None] = lambda _: None
        """Told each record that was written."""
        self.on_news: Callable[[], None] = lambda: None
        """Told that the engine has something new to judge."""

    def look(self) -> None:
        """Do what is due."""
        m_us = self._clock.boot_us()
        told = self._actuator.keep(m_us)
        self._authority.rival = not self._actuator.alone
        for text in (*told, *self._authority.look()):
            self.note(text)
            self.on_news()
        self._took_over(self._policy.look(m_us))
        self._set_lease()
        self._mind_reserve(m_us)
        for what, state in self._limits.look(self._probe.own, self.level(), m_us):
            self._write("budget", {"what": what, "state": state})
        self._probe.slower = self._limits.slower
        if self._authority.asked and m_us >= self._grant_due_us:
            self._write_grant(again=True)

    def begin(self, version: str) -> None:
        """Write down that this guard begins, and under which policy."""
        book, authority = self._policy.book, self._authority
        authority.follow(book.base)
        authority.look()
        authority.rival = not self._actuator.alone
        self._set_lease()
        self._mind_reserve(self._clock.boot_us())
        members = {"epoch": self._actuator.epoch, "version": version, "policy": book.origin}
        self._write("guard.begin", {**members, "mode": authority.mode})
        if self._policy.error:
            error = {"source": book.origin, "changed": [], "error": self._policy.error}
            self._write("policy", error)
        rival = ("another guard acts on this run: this one does not",) if authority.rival else ()
        for note in (*rival, *book.notes):
            self.note(note)

    def note(self, text: str) -> None:
        """Write down what a person should know; from any thread."""
        self._write("process", {"text": inert(text, 200), "severity": "notice"})

    # -- what people ask -----------------------------------------------------------------------

    def set_mode(self, command: Command) -> str:
        """Carry out `engine.mode`; returns why not, or nothing."""
        try:
            grant = self._authority.give(command.args, command.by, inert(command.why, 120))
        except SessionError as error:
            return str(error)
        record = self._recorder.append("engine.mode", grant.members(), sync=True, acting=True)
        self.tell(record)
        self._grant_due_us = self._clock.boot_us() + GRANT_AGAIN_US
        raises = grant.mode in ACTING
        if not record.lsn and raises:
            return f"{self._recorder.why}: the engine is not let act"
        self._authority.take(grant)
        self.on_news()
        return ""

    def reload_policy(self, _: Command) -> str:
        """Carry out `policy.reload`; returns what is wrong, or nothing."""
        self._took_over(self._policy.reload())
        return self._policy.error

    # -- inside ------------------------------------------------------------------------------

    def _set_lease(self) -> None:
        """Have the engine's next pause last as long as the policy says."""
        self._actuator.engine_lease_us = round(self._policy.book.base.pause.lease_s * 1e6)

    def _took_over(self, members: dict[str, Any] | None) -> None:
        if members is None:
            return
        self._authority.follow(self._policy.book.base)
        self._write("policy", members)
        self.on_news()

    def _mind_reserve(self, m_us: int) -> None:
        if m_us < self._reserve_due_us:
            return
        self._reserve_due_us = m_us + _RESERVE_US
        self._reserve.wanted_bytes = self._policy.book.base.disk_reserve_bytes
        state = self._reserve.look()
        if state:
            self._write("budget", {"what": "disk reserve", "state": state})

    def _write_grant(self, *, again: bool) -> None:
        self._grant_due_us = self._clock.boot_us() + GRANT_AGAIN_US
        self._write("engine.mode", {**self._authority.grant.members(), "again": again})

    def _write(self, kind: str, members: dict[str, Any]) -> None:
        self.tell(self._recorder.append(kind, members))
