"""A session without a guard: one made-up run, whose course is a function of time.

The sequence is fixed by the clock that is passed in, so that a frozen clock gives a frozen screen.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from memwatch.domain.clock import Clock, ManualClock
from memwatch.domain.command import Command, CommandInfo, CommandState
from memwatch.domain.control import Hold
from memwatch.domain.errors import SessionError
from memwatch.domain.sample import GAP, Column
from memwatch.domain.snapshot import Event, Severity, Snapshot
from memwatch.runtime.session import RowKind
from tests.ui.builders import MB, TIERS, snapshot_at
from tests.ui.crash import chain


class FakeRun:
    """The run that all fake sessions show. `down` cuts every session and refuses new ones."""

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        age_s: float = 900.0,
        change: Callable[[Snapshot], Snapshot] = lambda snapshot: snapshot,
        gap_s: tuple[float, float] | None = None,
    ) -> None:
        self.clock = clock or ManualClock()
        self.started_us = self.clock.wall_us() - round(age_s * 1e6)
        self.change = change
        """Applied to each snapshot: what a test wants to see."""
        self.gap_s = gap_s
        """Seconds before the start of the fake between which nothing was recorded."""
        self.down = False
        self.silent = False
        self.hangs = threading.Event()
        """While set, no call returns: a guard that was stopped, or is stuck."""
        self.leak_since_us: int | None = None
        self.commands: list[CommandInfo] = []
        self.holds: list[Hold] = []
        self.submitted: list[Command] = []
        self.series_calls: list[tuple[str, int, int, int]] = []
        self.rows_calls: list[str] = []
        self.connections = 0
        self._born_us = self.clock.wall_us()
        self._seq = 0
        self._seen: tuple[int, int] = (0, 0)
        self._lock = threading.Lock()

    def connect(self) -> FakeSession:
        """Open a session; raises SessionError while the run is down."""
        if self.down:
            raise SessionError("no guard listens")
        self.connections += 1
        return FakeSession(self)

    def tier_bytes(self, name: str, t_us: int) -> float:
        """Return the bytes of a tier at an instant."""
        s = (t_us - self.started_us) / 1e6
        if name == "workspace":
            leak = 0.0
            if self.leak_since_us is not None and t_us > self.leak_since_us:
                leak = (t_us - self.leak_since_us) / 6e7 * 60 * MB
            return 25 * MB + (s % 23) * 1.6 * MB + leak
        if name == "recent":
            return 12 * MB + 3 * MB * math.sin(s / 40)
        if name == "verified":
            return min(6 * MB + s * 9000, 30 * MB)
        return 2 * MB + (s // 60) % 20 * 0.1 * MB

    def memory(self, t_us: int) -> float:
        """Return the usage of the tree at an instant."""
        spike = 30 * MB if (t_us // 1_000_000) % 97 == 0 else 0
        return sum(self.tier_bytes(name, t_us) for name in TIERS) + 41 * MB + spike

    def value(self, resource: str, t_us: int) -> float:
        """Return any series at an instant."""
        if resource.startswith("tier:"):
            return self.tier_bytes(resource[5:], t_us)
        return self.memory(t_us)

    @property
    def seq(self) -> int:
        """Number of the present state: it grows when the clock moved or a request came."""
        state = (self.clock.wall_us(), len(self.commands))
        with self._lock:
            if state != self._seen:
                self._seen = state
                self._seq += 1
            return self._seq

    def snapshot(self) -> Snapshot:
        """Return the present state."""
        seq = self.seq
        self._settle()
        return self.change(snapshot_at(self, seq))

    def all_events(self) -> list[Event]:
        """Return everything that happened so far, by plan."""
        now_us = self.clock.wall_us()
        found: list[tuple[int, str, str, Severity]] = [
            (self.started_us, "run", "demo-engine started, pid 4242", "notice")
        ]
        for second in range(int((now_us - self.started_us) / 1e6) + 1):
            t_us = self.started_us + second * 1_000_000
            found += [(t_us, *told) for told in _told(second)]
        return [
            Event(seq=number, t_us=t_us, kind=kind, text=text, severity=severity, origin="agent")
            for number, (t_us, kind, text, severity) in enumerate(sorted(found), 1)
        ]

    def submit(self, command: Command) -> str:
        """Take a request: it stands asked, later accepted, later done."""
        now_us = self.clock.wall_us()
        if not command.dry_run:
            self.submitted.append(command)
        name = f"cmd-{len(self.commands) + 1}"
        self.commands.append(
            CommandInfo(
                id=name,
                op=command.op,
                state="asked",
                asked_us=now_us,
                changed_us=now_us,
                dry_run=command.dry_run,
                result={"freed_bytes": 36 * MB, "entries": 60} if command.dry_run else {},
            )
        )
        return name

    def command(self, command_id: str) -> CommandInfo:
        """Return how far a request is; a rehearsal is answered at once."""
        found = next(one for one in self.commands if one.id == command_id)
        return replace(found, state="done") if found.dry_run else found

    def _settle(self) -> None:
        now_us = self.clock.wall_us()
        for index, one in enumerate(self.commands):
            age_s = (now_us - one.asked_us) / 1e6
            state: CommandState = "asked" if age_s < 1.5 else "accepted" if age_s < 3 else "done"
            if one.state not in (state, "done"):
                self.commands[index] = replace(one, state=state, changed_us=now_us)
                if state == "done":
                    self._settled(one.op, now_us)

    def _settled(self, op: str, now_us: int) -> None:
        """Be what the newest request of a kind asked for."""
        asked = [command for command in self.submitted if command.op == op][-1:]
        if asked and op == "leak":
            self.leak_since_us = now_us if asked[0].args["mb_per_min"] else None
        elif asked and op in ("pause", "read_only"):
            self.holds.append(
                Hold(id=f"hold-{now_us}", op=op, owner="keep", since_us=now_us, effective=True)
            )
        elif asked and op in ("resume", "read_write"):
            self.holds = [hold for hold in self.holds if hold.owner != asked[0].args.get("owner")]

    def recorded(self, t_us: int) -> bool:
        """Return whether anything was recorded at an instant."""
        if t_us < self.started_us or t_us > self.clock.wall_us():
            return False
        if self.gap_s is None:
            return True
        age_s = (self._born_us - t_us) / 1e6
        return not self.gap_s[0] <= age_s <= self.gap_s[1]


def _told(second: int) -> list[tuple[str, str, Severity]]:
    """Return what happens in a second of the made-up run."""
    told: list[tuple[str, str, Severity]] = []
    if second % 9 == 8:
        ratio = 3 + second // 9 % 7 / 10
        told.append(("experiment", f"experiment {second // 9} kept, ratio {ratio:.1f}", "info"))
    if second % 23 == 22:
        told.append(("purge", "purge workspace (retention): 60 entries, 36M", "info"))
    if second % 27 == 26:
        kind = "full" if second % 108 == 107 else "incremental"
        told.append((f"checkpoint.{kind}", f"{kind} checkpoint 1.2M in 0.04s", "info"))
    if second % 150 == 149:
        name = ("exploration", "accumulation", "verification")[(second + 1) // 150 % 3]
        told.append(("phase", f"phase {name}", "notice"))
    if second % 331 == 330:
        told.append(("error", "error MemoryError: dictionary too large", "error"))
    return told


class FakeSession:
    """One connection to the fake run."""

    def __init__(self, run: FakeRun) -> None:
        self._run = run
        self.closed = False

    def latest(self, after_seq: int, timeout_s: float) -> Snapshot | None:
        """Wait for a newer snapshot; none comes while the run is silent."""
        while self._run.hangs.is_set():
            time.sleep(0.01)
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            self._check()
            if not self._run.silent and self._run.seq > after_seq:
                return self._run.snapshot()
            time.sleep(0.01)
        return None

    def series(self, resource: str, t0_us: int, t1_us: int, columns: int) -> list[Column]:
        """Return the course of a resource, four looks per column."""
        self._check()
        self._run.series_calls.append((resource, t0_us, t1_us, columns))
        step = (t1_us - t0_us) // columns
        return [self._column(resource, t0_us + index * step, step) for index in range(columns)]

    def _column(self, resource: str, start_us: int, step_us: int) -> Column:
        looks = [start_us + step_us * part // 4 for part in range(4)]
        if start_us < self._run.started_us < start_us + step_us:
            looks.append(self._run.started_us)
        values = [self._run.value(resource, t) for t in looks if self._run.recorded(t)]
        return Column(min(values), max(values), values[-1]) if values else GAP

    def events(
        self,
        after: int,
        limit: int,
        t0_us: int | None = None,
        t1_us: int | None = None,
        kinds: tuple[str, ...] = (),
    ) -> list[Event]:
        """Return events by number or by time."""
        self._check()
        found = [e for e in self._run.all_events() if e.seq > after]
        found = [e for e in found if not kinds or e.kind in kinds]
        if t0_us is not None and t1_us is not None:
            found = [e for e in found if t0_us <= e.t_us < t1_us]
        return found[-limit:]

    def rows(self, what: RowKind, limit: int) -> list[Any]:
        """Return the chain as it is, or the interventions that the snapshot holds."""
        self._check()
        self._run.rows_calls.append(what)
        shown = self._run.snapshot()
        if what == "interventions":
            return list(shown.interventions[:limit])
        native = shown.checkpoints.source == "native"
        return chain(shown.t_us)[:limit] if native else list(shown.checkpoints.newest[:limit])

    def submit(self, command: Command) -> str:
        """Hand over a request."""
        self._check()
        return self._run.submit(command)

    def command(self, command_id: str) -> CommandInfo:
        """Return how far a request is."""
        self._check()
        return self._run.command(command_id)

    def close(self) -> None:
        """End the session."""
        self.closed = True

    def _check(self) -> None:
        if self._run.down:
            raise SessionError("the guard hung up")
