"""A run: the directory, the log, the tiers, and what an agent says about its work.

    with Run.open(path, RunOptions(agent="searcher")) as run:
        with run.experiment("level 9", phase="exploration") as experiment:
            with run.tool("compress") as call:
                call.bytes_out = len(...)
            run.tiers["workspace"].put("call/1", ...)
            run.safe_point()
            experiment.status = "kept"

`safe_point` belongs wherever the state is whole: checkpoints that are due and commands from
outside are done there.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

import memwatch
from memwatch.agent.checkpoints.checkpointer import Cadence, Checkpointer, Kind
from memwatch.agent.context import Context
from memwatch.agent.control.listener import ControlListener, Operation
from memwatch.agent.files import SYSTEM_FILES, Files
from memwatch.agent.journal import Journal
from memwatch.agent.log import Durability, LogWriter
from memwatch.agent.memory.blobs import BlobStore
from memwatch.agent.memory.tiers import Keep, Tiers
from memwatch.agent.memory.values import Types
from memwatch.agent.past import known_run, last_experiment
from memwatch.agent.sampler import Sampler
from memwatch.agent.work.experiment import Experiment, ExperimentBlock, Experiments, Hooks
from memwatch.agent.work.spans import SpanBlock, Spans
from memwatch.domain.clock import Clock, SystemClock
from memwatch.host.lock import RUN_LOCK, FileLock
from memwatch.host.process import identity_of
from memwatch.wal.manifest import RunManifest
from memwatch.wal.segment import FORMAT, RUN_FILE, WAL_DIR

KEEP: Mapping[str, Keep] = {
    "workspace": Keep(count=200),
    "recent": Keep(experiments=5),
    "verified": Keep(delete=False),
    "history": Keep(experiments=20),
}
"""What the four tiers keep unless told otherwise (R1)."""


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is opened with."""

    agent: str
    profile: str = "native"
    memory_limit_bytes: int | None = None
    keep: Mapping[str, Keep] = msgspec.field(default_factory=lambda: KEEP)
    cadence: Cadence = Cadence()
    operations: Mapping[str, Operation] = msgspec.field(default_factory=dict)
    """Besides `checkpoint`, which every run takes."""
    sample_s: float = 5.0
    durability: Durability = "batch"


class Run:
    """One start of an agent on a run directory. Make it with `Run.open`."""

    def __init__(self, context: Context, options: RunOptions, lock: FileLock) -> None:
        self.path, self.id, self.log = context.path, context.run_id, context.log
        self.record = context.record
        """Appends a record of any kind, with the number of the experiment in progress."""
        self.start_id = uuid.uuid4().hex
        self.tiers = Tiers(
            options.keep,
            context,
            types=Types(),
            blobs=BlobStore(context.path / "blobs", context.files),
            limit_bytes=options.memory_limit_bytes,
        )
        self.checkpoints = Checkpointer(context, self.tiers, options.cadence)
        self._context = context
        self._options = options
        self._lock = lock
        self._operations = {"checkpoint": self._checkpoint_operation(), **options.operations}
        self._sampler = Sampler(self.tiers, self.record, period_s=options.sample_s)
        self._control = ControlListener(context, self._operations)
        self.journal = Journal()
        self.journal.experiments = last_experiment(context.path / WAL_DIR)
        self._spans = Spans(context, lambda: None)
        hooks = Hooks(
            gate=lambda: None,
            gate_async=_nothing,
            phase_changed=lambda: None,
            ended=self._experiment_ended,
            safe_point=self.safe_point,
            aborting=_Never,
        )
        self._experiments = Experiments(context, self.journal, hooks)

    @classmethod
    def open(
        cls,
        path: Path,
        options: RunOptions,
        *,
        clock: Clock | None = None,
        files: Files = SYSTEM_FILES,
    ) -> Run:
        """Create the run directory, or go on in one that has no agent now.

        Raises TargetError for a directory that is something else, LockHeldError while another
        agent writes there, LogError or OSError where it cannot be written.
        """
        path, clock = path.absolute(), clock or SystemClock()
        run_id = known_run(path) or _new_run_id(options.agent, clock)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FileLock.acquire(path / RUN_LOCK)
        try:
            log = LogWriter(path / WAL_DIR, durability=options.durability, clock=clock, files=files)
            try:
                run = cls(Context(path, run_id, log, clock, files), options, lock)
                run._begin()
            except BaseException:
                log.close()
                raise
        except BaseException:
            lock.release()
            raise
        return run

    @property
    def experiments(self) -> int:
        """Number of the newest experiment, over the life of the run."""
        return self.journal.experiments

    def note(self, text: str) -> None:
        """Leave a line for people."""
        self.record("note", {"text": text})

    def error(self, kind: str, message: str, **members: Any) -> None:
        """Log something that went wrong."""
        self.record("error", {"kind": kind, "message": message, **members})

    def safe_point(self) -> None:
        """Do what waits: commands from outside, and a checkpoint that is due."""
        if self._control.waiting:
            self._control.safe_point()
        kind = self.checkpoints.due()
        if kind is not None:
            self.checkpoints.take(kind)

    def experiment(self, title: str, phase: str) -> ExperimentBlock:
        """Return an experiment for `with`, `async with`, or to decorate a function."""
        return ExperimentBlock(self._experiments, title, phase)

    def step(self, name: str) -> SpanBlock:
        """Return a step of the agent's work, used as an experiment is."""
        return SpanBlock(self._spans, "step", name)

    def tool(self, name: str) -> SpanBlock:
        """Return a tool call, used as an experiment is."""
        return SpanBlock(self._spans, "tool", name)

    def close(self, status: str = "done", reason: str = "") -> None:
        """Say how the run ended, and let go of the directory; more than once does no harm."""
        if not self._lock.mine:
            return
        try:
            self._control.stop()
            self._sampler.stop()
            self.record("run.end", {"status": status, "reason": reason})
        finally:
            try:
                self.log.close()
            finally:
                self._lock.release()

    def __enter__(self) -> Run:
        """Return the run itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the run; an exception that leaves it is its reason."""
        if error is None:
            self.close()
        elif isinstance(error, Exception):
            self.close("crashed", f"{type(error).__name__}: {error}")
        else:
            self.close("stopped", type(error).__name__)

    def _begin(self) -> None:
        me, options = identity_of(os.getpid()), self._options
        limit = options.memory_limit_bytes
        limits = {} if limit is None else {"memory_bytes": limit}
        manifest = RunManifest(
            format=FORMAT,
            run_id=self.id,
            agent=options.agent,
            profile=options.profile,
            pid=os.getpid(),
            start_ticks=me.start_ticks if me else 0,
            boot_id=me.boot_id if me else "",
            host=os.uname().nodename,
            started_us=self._context.clock.wall_us(),
            argv=sys.argv,
            limits=limits,
            cadence=msgspec.to_builtins(options.cadence),
            retention={
                name: keep.count or keep.experiments
                for name, keep in options.keep.items()
                if keep.count or keep.experiments
            },
            ops={
                name: {"about": op.about, "args": op.args, "idempotent": op.idempotent}
                for name, op in self._operations.items()
            },
        )
        text = msgspec.json.format(msgspec.json.encode(manifest))
        self._context.files.replace(self.path / RUN_FILE, text)
        about = {
            "start_id": self.start_id,
            "boot": manifest.boot_id,
            "agent": options.agent,
            "version": memwatch.__version__,
            "pid": manifest.pid,
            "limits": limits,
        }
        self.record("run.begin", about)
        self._control.start()
        self._sampler.start()

    def _experiment_ended(self, experiment: Experiment) -> None:
        for tier in self.tiers.values():
            tier.log_accesses()
        if experiment.status != "aborted":
            self.checkpoints.experiment_finished()

    def _checkpoint_operation(self) -> Operation:
        about, args = "save the state of all tiers", {"kind": "full or incremental"}
        return Operation(run=self._checkpoint_asked, about=about, args=args)

    def _checkpoint_asked(self, args: dict[str, Any]) -> dict[str, Any]:
        kinds: dict[str, Kind] = {"full": "full", "incremental": "incremental"}
        wanted = kinds.get(str(args.get("kind", "incremental")))
        if wanted is None:
            raise ValueError("kind is full or incremental")
        outcome = self.checkpoints.take(wanted)
        if not outcome.committed:
            raise ValueError(outcome.reason)
        result: dict[str, Any] = msgspec.to_builtins(outcome)
        return {name: result[name] for name in ("id", "kind", "path", "bytes", "sha256")}


async def _nothing() -> None:
    return


class _Never(BaseException):
    """Nothing is aborted."""


def _new_run_id(agent: str, clock: Clock) -> str:
    """Return a name that people can type and that no other run has."""
    name = "".join(c for c in agent.lower() if c.isascii() and c.isalnum())[:20] or "run"
    began = datetime.fromtimestamp(clock.wall_us() / 1e6, UTC).strftime("%m%d-%H%M")
    return f"{name}-{began}-{uuid.uuid4().hex[:4]}"
