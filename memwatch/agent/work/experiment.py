"""Experiments: the unit that an agent's work, its checkpoints and its retention are counted in.

One is in progress at a time, whichever thread or task holds it; steps, tool calls and values of
any thread that come meanwhile belong to it.
"""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import isfinite
from types import TracebackType
from typing import Any, Literal, get_args

from msgspec import Struct

from memwatch.agent.context import Context
from memwatch.agent.journal import Journal
from memwatch.agent.work.block import Block
from memwatch.domain.errors import LogError
from memwatch.domain.record import LARGEST
from memwatch.domain.text import sayable
from memwatch.host.forked import new_lock

Status = Literal["done", "kept", "discarded", "failed", "aborted"]
_STATUSES = get_args(Status)


class Experiment(Struct):
    """The experiment in progress; its agent fills in how it went."""

    number: int
    """Counted from 1 over the life of the run."""
    title: str
    phase: str
    status: Status = "done"
    """One that is none of these counts as `done` where the experiment ends, and an error is logged:
    a slip of the pen costs nobody an experiment."""
    metrics: dict[str, float | int | str | None] = {}
    """Where it ends other numbers (of numpy, of torch) become floats, and NaN and the infinities,
    which the log cannot hold, None."""


def _loggable(metrics: Any) -> dict[str, float | int | str | None]:
    """Return metrics as the log can hold them: an experiment's end is logged whatever they are."""
    if not isinstance(metrics, dict):
        return {"metrics": _figure(metrics)}
    return {sayable(name): _figure(value) for name, value in metrics.items()}


def _figure(value: Any) -> float | int | str | None:
    kind = type(value)
    if value is None or kind is bool or (kind is int and abs(value) < LARGEST):
        return value  # type: ignore[no-any-return] # it is one of those
    if isinstance(value, str):
        return sayable(value)
    try:
        number = float(value)
    except Exception:  # noqa: BLE001 - a class of the agent's
        return sayable(value, 200)
    return number if isfinite(number) else None


class Hooks(Struct, kw_only=True, frozen=True):
    """What surrounds an experiment: where it may begin, and what follows its end.

    In this order: gate, begin logged, began, phase_changed; end logged, ended, over, safe_point.
    """

    gate: Callable[[], None]
    """Returns when a new experiment may begin; raises what ends the run."""
    gate_async: Callable[[], Awaitable[None]]
    began: Callable[[], None]
    phase_changed: Callable[[], None]
    ended: Callable[[Experiment], None]
    """Retention, cadence and what else is counted in experiments."""
    over: Callable[[], None]
    """Called also when the end could not be logged."""
    safe_point: Callable[[], None]
    aborting: tuple[type[BaseException], ...]
    """Each unwinds the experiment in progress, and only that."""


class Experiments:
    """Begins and ends the experiments of a run."""

    def __init__(self, context: Context, journal: Journal, hooks: Hooks) -> None:
        self.hooks = hooks
        self.current: Experiment | None = None
        """The one in progress."""
        self._context = context
        self._journal = journal
        self._began_us = 0
        self._block: Callable[[], ExperimentBlock | None] = lambda: None
        """The block that holds it, as long as that is there."""
        self._holding = new_lock()

    def begin(self, title: str, phase: str | None, block: ExperimentBlock) -> Experiment:
        """Log and begin; raises RuntimeError while another one is in progress, and LogError."""
        title = sayable(title)
        with self._holding:
            if self.current is not None and self._block() is None:
                self._give_up(self.current)  # an interrupt came where its block began or ended
            if self.current is not None:
                raise RuntimeError(f"experiment {self.current.number} has not ended yet")
            context, number = self._context, self._journal.experiments + 1
            phase = context.phase if phase is None else sayable(phase)
            self._began_us = context.clock.boot_us()
            members = {"x": number, "title": title, "phase": phase}
            self._journal.log(context.record, "experiment.begin", members)
            self._block = weakref.ref(block)
            context.experiment = number
            current = self.current = Experiment(number, title, phase)
        try:
            self.hooks.began()
            if phase != context.phase:
                context.phase = phase
                self.hooks.phase_changed()
        except BaseException:
            self._give_up(current)
            raise
        return current

    def _give_up(self, experiment: Experiment) -> None:
        """End one that nobody holds."""
        experiment.status = "aborted"
        with suppress(LogError):
            self.end(experiment)

    def end(self, experiment: Experiment) -> None:
        """Log the end, then do what is counted in experiments; raises LogError."""
        try:
            self._log_end(experiment)
            self.hooks.ended(experiment)
        finally:
            self.current = self._context.experiment = None
            self.hooks.over()

    def _log_end(self, experiment: Experiment) -> None:
        context = self._context
        experiment.title = sayable(experiment.title)
        if experiment.status not in _STATUSES:
            self._correct(experiment)
        metrics = experiment.metrics = _loggable(experiment.metrics)
        members = {
            "x": experiment.number,
            "title": experiment.title,
            "status": experiment.status,
            "metrics": metrics,
            "duration_us": context.clock.boot_us() - self._began_us,
        }
        self._journal.log(context.record, "experiment.end", members)

    def _correct(self, experiment: Experiment) -> None:
        """Make an unknown status `done`, and say so in the log."""
        said, experiment.status = experiment.status, "done"
        message = f"status {said!r:.40} is none of {', '.join(_STATUSES)}: it counts as done"
        about = {"kind": "status", "message": sayable(message)}
        self._context.record("error", about)


class ExperimentBlock(Block[Experiment]):
    """An experiment around a block of code.

    An exception makes it `failed`, an interruption `aborted`; both go on. An abort that was asked
    for ends at the block, and so does a change that was refused as the run is read-only: the code
    behind it runs, and the next experiment waits. An agent outlives its guard's hard limit (R9)
    without knowing of it.
    """

    def __init__(self, experiments: Experiments, title: str, phase: str | None) -> None:
        super().__init__(title)
        self._experiments, self._phase = experiments, phase
        self._experiment: Experiment | None = None

    def again(self, name: str) -> ExperimentBlock:
        """Return a block of the same phase, not begun."""
        return ExperimentBlock(self._experiments, name, self._phase)

    def __enter__(self) -> Experiment:
        """Wait until one may begin, and begin."""
        self._experiments.hooks.gate()
        self._experiment = self._experiments.begin(self.name, self._phase, self)
        return self._experiment

    async def __aenter__(self) -> Experiment:
        """Begin; other tasks run while it has to wait."""
        await self._experiments.hooks.gate_async()
        self._experiment = self._experiments.begin(self.name, self._phase, self)
        return self._experiment

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """End, and come to a safe point."""
        experiment, hooks = self._experiment, self._experiments.hooks
        assert experiment is not None
        rest = _without(error, hooks.aborting)
        if error is not None:
            experiment.status = "failed" if isinstance(rest, Exception) else "aborted"
        if rest is None:
            self._experiments.end(experiment)
            hooks.safe_point()
            return error is not None
        with suppress(LogError):  # what happened inside matters more
            self._experiments.end(experiment)
        if rest is not error:
            raise rest
        return False


def _without(
    error: BaseException | None, aborting: tuple[type[BaseException], ...]
) -> BaseException | None:
    """Return what is left of an exception, or a group of them, without the abort."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(aborting)[1]
    return None if isinstance(error, aborting) else error
