"""A guard that answers what a test tells it, behind the real socket and the real lock of a run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from memwatch.config.locations import run_home, socket_path
from memwatch.domain.clock import SystemClock
from memwatch.domain.command import Command, CommandInfo, CommandState
from memwatch.domain.control import EngineInfo
from memwatch.domain.errors import SessionError
from memwatch.domain.sample import Column
from memwatch.domain.snapshot import Event, GuardInfo, RunInfo, Snapshot
from memwatch.host.lock import FileLock
from memwatch.host.process import identity_of
from memwatch.runtime.protocol.server import SessionServer
from memwatch.runtime.runs.target import GUARD_LOCK
from memwatch.runtime.session import RowKind

RUN_ID = "night-7"
Answers = list[tuple[CommandState, str, dict[str, Any]]]


def make_run(folder: Path, run_id: str = RUN_ID) -> Path:
    """Make the directory of a run whose agent is this process."""
    me = identity_of(os.getpid())
    assert me is not None
    (folder / "wal").mkdir(parents=True)
    manifest = {
        "format": 1,
        "run_id": run_id,
        "agent": "tester",
        "pid": me.pid,
        "start_ticks": me.start_ticks,
        "boot_id": me.boot_id,
    }
    (folder / "run.json").write_text(json.dumps(manifest))
    return folder


class FakeHub:
    """Serves a run; each request moves on through `answers`, one state a look."""

    def __init__(self, run_dir: Path, run_id: str = RUN_ID) -> None:
        self.asked: list[Command] = []
        self.looks: dict[str, int] = {}
        self.viewers: list[str] = []
        self.answers: Answers = [("asked", "", {}), ("done", "", {})]
        self.refusal = ""
        """Why nothing is taken."""
        self.snapshot = Snapshot(
            seq=1,
            t_us=SystemClock().wall_us(),
            run=RunInfo(
                id=run_id,
                path=str(run_dir),
                agent="tester",
                profile="native",
                host="here",
                pid=os.getpid(),
                state="running",
            ),
            guard=GuardInfo(pid=os.getpid(), engine="shadow"),
            engine=EngineInfo(mode="shadow", will="WILL NOT ACT (shadow)"),
        )
        self.after: Callable[[Command, Snapshot], Snapshot] = lambda _, snapshot: snapshot
        """What becomes of the run with a request."""
        self._lock = FileLock.acquire(run_home(run_id, create=True) / GUARD_LOCK)
        self._server = SessionServer(socket_path(run_id, create=True), run_id, "start", self)
        self._server.start()

    def __enter__(self) -> FakeHub:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.stop()
        self._lock.release()

    def newest(self) -> tuple[int, bytes]:
        return 1, msgspec.msgpack.encode(self.snapshot)

    def want(self) -> None:
        """Nothing newer will come."""

    def status(self) -> bytes:
        return msgspec.json.encode(self.snapshot)

    def series(self, resource: str, t0_us: int, t1_us: int, columns: int) -> list[Column]:
        return []

    def events(
        self, after: int, limit: int, t0_us: int | None, t1_us: int | None, kinds: tuple[str, ...]
    ) -> list[Event]:
        return []

    def rows(self, what: RowKind, limit: int) -> Sequence[Struct]:
        return []

    def submit(self, command: Command) -> str:
        if self.refusal:
            raise SessionError(self.refusal)
        self.asked.append(command)
        self.snapshot = self.after(command, self.snapshot)
        return f"id-{len(self.asked)}"

    def command(self, command_id: str) -> CommandInfo:
        command = self.asked[int(command_id.removeprefix("id-")) - 1]
        look = self.looks[command_id] = self.looks.get(command_id, -1) + 1
        state, detail, result = self.answers[min(look, len(self.answers) - 1)]
        return CommandInfo(
            id=command_id,
            op=command.op,
            state=state,
            asked_us=1_000_000,
            changed_us=1_140_000,
            detail=detail,
            result=result,
            by=command.by,
            dry_run=command.dry_run,
        )

    def viewer_came(self, name: str) -> None:
        self.viewers.append(name)

    def viewer_left(self, name: str, last: bool) -> None:
        """Nobody is missed."""

    def change(self, **members: Any) -> None:
        """Replace members of the snapshot."""
        self.snapshot = replace(self.snapshot, **members)
