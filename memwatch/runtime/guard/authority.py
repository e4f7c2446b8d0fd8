"""Whether the engine may act, on what, until when, and who said so.

A person's word goes before the policy's, and lasts until its time is over or the run ends. The
file `STOP` in memwatch's own folder keeps all engines of this user from acting while it exists:
one file, one command, however many runs. Source: R8; contracts, "Plans"; control, 6.7.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from memwatch.config.policy import Policy
from memwatch.config.yaml_file import nearest
from memwatch.domain.clock import Clock
from memwatch.domain.errors import SessionError
from memwatch.domain.level import ACTING, ENGINE_MODES, EngineMode
from memwatch.domain.operations import OPERATIONS
from memwatch.domain.record import Record, whole
from memwatch.domain.text import inert

STOP_FILE: Final = "STOP"
MODES: Final[dict[str, EngineMode]] = {name: name for name in ENGINE_MODES}
_MOST_OPS = 32


class Grant(Struct, frozen=True, kw_only=True):
    """What the engine may do, by somebody's word."""

    mode: EngineMode = "shadow"
    allow: tuple[str, ...] | None = None
    """Operations that it may use by itself; None: those of the policy."""
    until_us: int | None = None
    """Wall clock; None: until the run ends."""
    by: str = "policy"
    why: str = ""

    def members(self) -> dict[str, Any]:
        """Return what `guard.wal` holds of it."""
        return {
            "mode": self.mode,
            "allow": self.allow,
            "until_us": self.until_us,
            "by": self.by,
            "why": self.why,
        }


class Authority:
    """The grant in force. Thread-safe: a grant is replaced as a whole."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        """`folder` is where the stop file is looked for."""
        self._clock = clock
        self._stop_file = folder / STOP_FILE
        self._policy = Policy()
        self._given: Grant | None = None
        self._lapsed = False
        self.stopped = False
        """The stop file is there, as seen at the last look."""
        self.rival = False
        """Another guard acts on this run, as seen at the last look."""

    @property
    def grant(self) -> Grant:
        """What is in force by somebody's word, the stop file aside."""
        given = self._given
        if given is None:
            return Grant(mode=self._policy.mode)
        return given

    @property
    def mode(self) -> EngineMode:
        """The mode of the engine now."""
        mode = self.grant.mode
        barred = self.stopped or self.rival or self._over()
        return "shadow" if mode in ACTING and barred else mode

    @property
    def allow(self) -> frozenset[str]:
        """Operations that the engine may use by itself."""
        allow = self.grant.allow
        return frozenset(self._policy.allow if allow is None else allow)

    @property
    def stop_file(self) -> str:
        """Path of the stop file while it is there."""
        return str(self._stop_file) if self.stopped else ""

    @property
    def asked(self) -> bool:
        """A person said for this run what the engine may do."""
        return self._given is not None

    @property
    def acts(self) -> bool:
        """What the engine decides is sent, at once or when a person lets it."""
        return self.mode in ACTING

    def follow(self, policy: Policy) -> None:
        """Take the policy's word where no person said otherwise."""
        self._policy = policy

    def give(self, args: dict[str, Any], by: str, why: str) -> Grant:
        """Return the grant that a request asks for; raises SessionError for one that is none."""
        mode = MODES.get(str(args.get("mode")))
        if mode is None:
            raise SessionError(f"the engine's mode is one of {', '.join(MODES)}")
        until_us = args.get("until_us")
        if until_us is not None and (whole(until_us) is None or until_us <= self._clock.wall_us()):
            raise SessionError("the time until which the mode is in force is not ahead")
        allow = _operations(args.get("allow"))
        return Grant(mode=mode, allow=allow, until_us=until_us, by=by or "operator", why=why)

    def take(self, grant: Grant) -> None:
        """Let a grant be in force: after it was written down."""
        self._given, self._lapsed = grant, False

    def restore(self, records: list[Record]) -> None:
        """Go on with the newest word of a person: `engine.mode` records, in order."""
        for record in records:
            mode = MODES.get(record.text("mode"))
            if mode is not None:
                self._given = Grant(
                    mode=mode,
                    allow=_read_operations(record.members.get("allow")),
                    until_us=record.number("until_us"),
                    by=inert(record.text("by"), 40),
                    why=inert(record.text("why"), 120),
                )

    def look(self) -> list[str]:
        """Look whether time is over or the stop file came or went; says so, for people."""
        told = []
        if self._over() and not self._lapsed:
            self._lapsed = True
            told.append("the time is over in which the engine could act: it is in shadow")
        stopped = self._stop_file.exists()
        if stopped != self.stopped:
            self.stopped = stopped
            state = "is there: no engine acts" if stopped else "is gone: engines act as set"
            told.append(f"the file {self._stop_file} {state}")
        return told

    def _over(self) -> bool:
        grant = self._given
        if grant is None or grant.until_us is None or grant.mode not in ACTING:
            return False
        return self._clock.wall_us() >= grant.until_us


def _operations(value: object) -> tuple[str, ...] | None:
    found = _read_operations(value)
    if found is None and value is not None:
        raise SessionError("`allow` names operations")
    for op in found or ():  # a slip of the pen must not leave out what a night relies on
        if op not in OPERATIONS:
            raise SessionError(f"there is no operation {op!r}{nearest(op, OPERATIONS)}")
    return found


def _read_operations(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, (list, tuple)) or len(value) > _MOST_OPS:
        return None
    return tuple(inert(op, 40) for op in value if isinstance(op, str))
