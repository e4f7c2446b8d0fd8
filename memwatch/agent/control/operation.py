"""What an agent does on request: how it is described, asked, refused, and answered later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from memwatch.host.forked import new_lock

Result: TypeAlias = dict[str, Any]


class RefusedError(ValueError):
    """What was asked is not done, and nothing has happened; the text says why."""


class Request(dict[str, Any]):
    """The arguments of a command, and what else an operation may want to know of it."""

    def __init__(
        self,
        args: Mapping[str, Any],
        *,
        command_id: str = "",
        origin: str = "operator",
        dry_run: bool = False,
    ) -> None:
        super().__init__(args)
        self.command_id = command_id
        self.origin = origin
        """Who asks: operator, engine, agent."""
        self.dry_run = dry_run
        """Say what would be done and do nothing."""


class Later:
    """A result that comes later, from any thread: returned by an operation in place of it."""

    def __init__(self) -> None:
        self.progress: Result = {}
        """How far it is; replaced by the one who works, told in the answer every 5 s."""
        self.cancelled = False
        """Nobody waits for it any more: its deadline passed."""
        self.when_cancelled: Callable[[], object] = lambda: None
        self._lock = new_lock()
        self._end: tuple[str, str, Result] | None = None
        self._tell: Callable[[str, str, Result], None] | None = None

    def done(self, result: Result) -> None:
        """Say that it was done; only the first end counts."""
        self._finish("done", "", result)

    def failed(self, why: str) -> None:
        """Say that it was not done, or only in part."""
        self._finish("failed", why, {})

    def cancel(self) -> None:
        """Say that nobody waits for it any more."""
        self.cancelled = True
        self.when_cancelled()

    def when_ended(self, tell: Callable[[str, str, Result], None]) -> None:
        """Have `tell` called once with state, detail and result, at once if it has ended."""
        with self._lock:
            self._tell = tell
            end = self._end
        if end is not None:
            tell(*end)

    def _finish(self, state: str, detail: str, result: Result) -> None:
        with self._lock:
            if self._end is not None:
                return
            self._end = (state, detail, result)
            tell = self._tell
        if tell is not None:
            tell(state, detail, result)


class Operation(Struct, frozen=True, kw_only=True):
    """Something that an agent does on request."""

    run: Callable[[Request], Result | Later]
    """Called at a safe point with the arguments; RefusedError becomes `refused`, any other
    exception `failed`, each with its text."""
    about: str = ""
    args: dict[str, str] = {}
    """Names and meaning of the arguments, told to people in run.json."""
    idempotent: bool = True
    """After a crash in the middle it may simply be run again."""
    destructive: bool = False
    """What it takes away does not come back by itself: people are asked first."""
    dry_runs: bool = False
    """It heeds `Request.dry_run`."""
    anywhere: bool = False
    """It may also run where a step or tool call begins, as it needs no state that is whole."""
    this_experiment: bool = False
    """It means the experiment in progress when it was accepted, never a later one; it is run as
    well where that one ended meanwhile and no other began."""
    ends_run: bool = False
    """What it asks for is so once the run has ended: no later start does it."""
    ready: Callable[[], bool] = lambda: True
    """Whether it can begin now; it waits for a later safe point where not."""
    max_s: float = 300.0
    """It rarely takes longer."""


def describe(operations: Mapping[str, Operation]) -> dict[str, Any]:
    """Return what run.json says of them (`ops`)."""
    return {
        name: {
            "about": operation.about,
            "args": operation.args,
            "idempotent": operation.idempotent,
            "destructive": operation.destructive,
            "dry_run": operation.dry_runs,
            "max_s": operation.max_s,
        }
        for name, operation in operations.items()
    }
