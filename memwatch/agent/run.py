"""A run: the directory, the log, the tiers, and what an agent says about its work.

    with Run.open("runs/night-7", RunOptions(agent="searcher")) as run:
        with run.experiment("level 9", phase="exploration") as experiment:
            with run.tool("compress") as call:
                call.bytes_out = len(...)
            run.tiers["workspace"].put("call/1", ...)
            experiment.status = "kept"
        run.safe_point()

`safe_point` belongs wherever the state is whole: checkpoints that are due and commands from
outside are done there. A directory with a past is recovered when it is opened. An exception that
is none of the library's goes on unchanged; see each method for those that are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from memwatch.agent.checkpoints.checkpointer import Checkpointer
from memwatch.agent.context import Context
from memwatch.agent.control.listener import ControlListener
from memwatch.agent.control.mode import UNWINDING, Mode
from memwatch.agent.control.operations import Operations
from memwatch.agent.control.reclaim import Reclaimer
from memwatch.agent.files import SYSTEM_FILES, Files
from memwatch.agent.journal import Journal
from memwatch.agent.log import LogWriter
from memwatch.agent.memory.blobs import BlobStore
from memwatch.agent.memory.tiers import Tiers
from memwatch.agent.memory.values import Types
from memwatch.agent.options import RunOptions
from memwatch.agent.past import known_run, last_given
from memwatch.agent.sampler import Sampler
from memwatch.agent.start import introduce, new_run_id, new_start_id
from memwatch.agent.work.calls import Calls, InDoubt
from memwatch.agent.work.experiment import Experiment, ExperimentBlock, Experiments, Hooks
from memwatch.agent.work.spans import SpanBlock, Spans
from memwatch.agent.work.workspace import Workspace, check_apart
from memwatch.domain.clock import Clock, SystemClock
from memwatch.domain.text import sayable
from memwatch.host.lock import RUN_LOCK, FileLock
from memwatch.wal.segment import BLOB_DIR, WAL_DIR
from memwatch.wal.spool_format import ModeName

if TYPE_CHECKING:
    from memwatch.agent.recovery.report import Report
    from memwatch.agent.recovery.state import State

Outcome = TypeVar("Outcome")
Name = str | PathLike[str]


class Run:
    """One start of an agent on a run directory. Make it with `Run.open`.

    Thread-safe; one experiment is in progress at a time, whichever thread or task holds it. A
    forked child must not use it: its log refuses.
    """

    def __init__(
        self,
        context: Context,
        options: RunOptions,
        blobs: BlobStore,
        past: tuple[State, Report] | None = None,
    ) -> None:
        """Take up what `past` holds; nothing is written yet."""
        self.path, self.id, self.start_id = context.path, context.run_id, context.start_id
        self.log = context.log
        self.record = context.record
        """Appends a record of any kind, with the number of the experiment in progress."""
        self.recovered = None if past is None else past[1]
        """How the state of earlier starts was found again; None for a new run."""
        self._context, self._options = context, options
        types = Types(options.types)
        self.tiers = Tiers(
            options.keep,
            context,
            types=types,
            blobs=blobs,
            phases=options.phases,
            builders=options.builders,
            summarize=options.summarize,
            limit_bytes=options.memory_limit_bytes,
            share_cap=options.share_cap,
        )
        self.journal = Journal() if past is None else past[0].journal
        self.journal.freed, self.journal.lock = blobs.release, self.tiers.lock
        if past is not None:
            context.phase = past[0].phase
            self.tiers.adopt(past[0].tiers, past[0].changes)
        blobs.adopt([*self.tiers.live_blobs(), *self.journal.blobs()], context.log.last_lsn)
        self._workspace = Workspace(options.workspace, context, self.journal, blobs)
        self.checkpoints = Checkpointer(
            context, self.tiers, options.cadence, types=types, blobs=blobs, journal=self.journal
        )
        self._mode, self._reclaimer = Mode(context), Reclaimer()
        own = Operations(context, self.tiers, self.checkpoints, self._mode, self._reclaimer)
        self._operations = {**own.all(), **options.operations}
        try:
            self._control = ControlListener(context, self._operations, self._mode)
        except BaseException:
            self.checkpoints.close()
            raise
        self._sampler = Sampler(self.tiers, self.record, period_s=options.sample_s)
        self._spans = Spans(context, self._control.interruption_point)
        self._calls = Calls(
            context,
            self.journal,
            types,
            blobs,
            start_id=self.start_id,
            sync=(lambda: 0) if options.durability == "os" else context.log.sync,
        )
        hooks = Hooks(
            gate=lambda: self._mode.gate(self.safe_point),
            gate_async=lambda: self._mode.gate_async(self.safe_point),
            phase_changed=self.tiers.phase_changed,
            began=self._mode.experiment_began,
            ended=self._experiment_ended,
            over=self._mode.experiment_ended,
            safe_point=self.safe_point,
            aborting=UNWINDING,
        )
        self._experiments = Experiments(context, self.journal, hooks)
        self._lock: FileLock | None = None

    @classmethod
    def open(
        cls,
        path: Name,
        options: RunOptions,
        *,
        clock: Clock | None = None,
        files: Files = SYSTEM_FILES,
    ) -> Run:
        """Create the run directory, or recover the one that has a past and go on in it (R5, R7).

        Raises TargetError for a directory that is something else, UsageError for a workspace in it,
        LockHeldError (with its pid) while another agent writes there, RecoveryError for one that
        two runs are mixed in or that a newer memwatch wrote, LogError or OSError where it cannot be
        written.
        """
        path, clock = Path(path).absolute(), clock or SystemClock()
        check_apart(options.workspace, path)
        known = known_run(path)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FileLock.acquire(path / RUN_LOCK)
        try:
            past = None
            if known:
                from memwatch.agent.restart import find_state  # only a run with a past needs it

                past = find_state(path, options)
            blobs = BlobStore(path / BLOB_DIR, files)
            log = LogWriter(
                path / WAL_DIR,
                durability=options.durability,
                clock=clock,
                files=files,
                before_sync=blobs.sync,
                after_lsn=last_given(path, past[1].last_lsn, lossy=past[1].lossy) if past else 0,
            )
            try:
                run_id = known or new_run_id(options.agent, clock)
                context = Context(path, run_id, log, clock, files, start_id=new_start_id())
                run = cls(context, options, blobs, past)
                run._lock = lock
                run._begin()
            except BaseException:
                log.close()
                raise
        except BaseException:
            lock.release()
            raise
        return run

    @property
    def current(self) -> Experiment | None:
        """The experiment in progress: set its status and metrics, also in a decorated function."""
        return self._experiments.current

    @property
    def experiments(self) -> int:
        """Number of the newest experiment, over the life of the run."""
        return self.journal.experiments

    @property
    def mode(self) -> ModeName:
        """What the run may do now: running, draining, paused, read_only, aborting, ended."""
        return self._mode.state

    def experiment(self, title: str, phase: str | None = None) -> ExperimentBlock:
        """Return an experiment for `with`, `async with`, or to decorate a function.

        Without a `phase` that of the experiment before goes on (R10).
        Entering waits while the run is paused or read-only. Raises RuntimeError while another one
        is in progress, LogError.
        """
        return ExperimentBlock(self._experiments, title, phase)

    def step(self, name: str) -> SpanBlock:
        """Return a step of the agent's work, used as an experiment is."""
        return SpanBlock(self._spans, "step", name)

    def tool(self, name: str) -> SpanBlock:
        """Return a tool call, used as an experiment is."""
        return SpanBlock(self._spans, "tool", name)

    def safe_point(self) -> None:
        """Do what waits: commands from outside, and a checkpoint that is due (R5).

        Costs about a microsecond when nothing does. An abort or an end that was asked for leaves
        it as an exception, which the experiment's block, or the interpreter, takes.
        """
        if self._mode.attention:
            self._control.safe_point()
        if self.checkpoints.pressing and (kind := self.checkpoints.due()) is not None:
            self.checkpoints.take(kind, wait=False)

    def call(
        self,
        service: str,
        request: Any,
        do: Callable[[], Outcome],
        *,
        paid: bool = True,
        in_doubt: InDoubt = "raise",
    ) -> Outcome:
        """Make an external call with `do`, or return what an equal one was answered before a crash.

        `request` and outcome are values as tiers keep them. A paid call of an earlier start whose
        outcome nobody knows raises CallInDoubtError, unless `in_doubt` is "repeat" (R7). Raises
        UnkeepableError, ReadOnlyError, LogError, and whatever `do` raises.
        """
        return self._calls.call(service, request, do, paid=paid, in_doubt=in_doubt)

    async def call_async(
        self,
        service: str,
        request: Any,
        do: Callable[[], Awaitable[Outcome]],
        *,
        paid: bool = True,
        in_doubt: InDoubt = "raise",
    ) -> Outcome:
        """Do as `call` does, with a `do` that is awaited."""
        return await self._calls.call_async(service, request, do, paid=paid, in_doubt=in_doubt)

    def write_file(self, name: Name, data: bytes | str) -> Path:
        """Write a file of the workspace, whole and logged before (R7); returns where it lies.

        After a crash it is put back if it is missing. Raises UsageError for a name that leads
        out of `RunOptions.workspace`, ReadOnlyError, LogError, OSError.
        """
        return self._workspace.write(name, data)

    def wrote(self, name: Name) -> None:
        """Record a file of the workspace that a tool wrote: its hash. Raises as `write_file`."""
        self._workspace.wrote(name)

    def delete_file(self, name: Name) -> None:
        """Delete a file of the workspace, logged before. Raises as `write_file`."""
        self._workspace.delete(name)

    def register_cache(self, name: str, drop: Callable[[], object]) -> None:
        """Have `drop` empty a cache, which fills again by itself, when memory is reclaimed (R8)."""
        self._reclaimer.register(name, drop)

    def note(self, text: str) -> None:
        """Leave a line for people."""
        self.record("note", {"text": sayable(text)})

    def error(self, kind: str, message: str, **members: Any) -> None:
        """Log something that went wrong."""
        self.record("error", {"kind": sayable(kind), "message": sayable(message), **members})

    def close(self, status: str = "done", reason: str = "") -> None:
        """Say how the run ended, and let go of the directory; more than once does no harm.

        `done` means that the work is complete: what calls were answered is forgotten then.
        """
        if self._lock is None or not self._lock.mine:
            return
        members = {"status": sayable(status), "reason": sayable(reason)}
        with ExitStack() as last:  # whatever is in the way of one of them, the others follow
            last.callback(self._lock.release)
            last.callback(self.log.close)
            last.callback(self.journal.log, self.record, "run.end", members)
            last.callback(self._sampler.stop)
            last.callback(self._control.stop, crashed=status == "crashed")
            self.checkpoints.close()

    def __enter__(self) -> Run:
        """Return the run itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the run; an exception that leaves it is its reason, and goes on in any case."""
        if error is None:
            self.close()
            return
        name, crashed = type(error).__name__, isinstance(error, Exception)
        reason = f"{name}: {sayable(error)}" if crashed else sayable(error) or name
        try:
            self.close("crashed" if crashed else "stopped", reason)
        except Exception as second:  # noqa: BLE001 - what the agent raised matters more
            error.add_note(f"the end of the run is not on record: {second}")

    def _begin(self) -> None:
        """Introduce this start, and settle what the one before left open."""
        members = introduce(self._context, self._options, self._operations)
        self.journal.log(self.record, "run.begin", members)
        if self.recovered is not None:
            from memwatch.agent.restart import settle  # only a run with a past needs it

            self.recovered = settle(
                self.recovered,
                self._context,
                self.journal,
                self.tiers,
                self.checkpoints,
                self._workspace,
            )
        self._control.start()
        self._sampler.start()

    def _experiment_ended(self, experiment: Experiment) -> None:
        for tier in self.tiers.values():
            tier.log_accesses()
        outcome = {
            "title": experiment.title,
            "status": experiment.status,
            "metrics": experiment.metrics,
        }
        self.tiers.experiment_ended(experiment.number, outcome)
        self._calls.experiment_ended(experiment.status)
        if experiment.status != "aborted":
            self.checkpoints.experiment_finished()
