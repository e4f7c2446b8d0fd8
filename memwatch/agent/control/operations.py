"""What every run does on request: checkpoint, purge, retain, reclaim, abort_experiment, end_run.

Source: contracts, "Operations"; R4, R5, R8. Each checks all it was told before it begins, so that
`refused` means that nothing happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol, TypeVar, overload

import msgspec
from msgspec import Meta, Struct

from memwatch.agent.context import Context
from memwatch.agent.control.mode import REST_US, End, Mode
from memwatch.agent.control.operation import Later, Operation, RefusedError, Request, Result
from memwatch.agent.control.reclaim import Reclaimer
from memwatch.agent.memory.entry import Cause, How
from memwatch.domain.errors import UsageError
from memwatch.domain.operations import ENGINE, CheckpointKind

Save = Literal["required", "best_effort", "none"]

_CAUSES: dict[str, Cause] = {ENGINE: "engine", "agent": "agent"}
_LONGEST_GRACE_US = 3600 * 1_000_000


class Outcome(Protocol):
    """How a checkpoint ended."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def committed(self) -> bool: ...
    @property
    def path(self) -> str: ...
    @property
    def bytes(self) -> int: ...
    @property
    def sha256(self) -> str: ...
    @property
    def reason(self) -> str: ...


class Checkpoints(Protocol):
    """The checkpointer of a run, as far as it is needed here; failures are told, not raised."""

    @property
    def busy(self) -> bool: ...
    @overload
    def take(self, kind: CheckpointKind) -> Outcome: ...
    @overload
    def take(
        self, kind: CheckpointKind, wait: bool, tell: Callable[[Outcome], None]
    ) -> Outcome | None: ...


class Tiers(Protocol):
    """The tiers of a run, as far as they are needed here."""

    def purge(
        self,
        *,
        tier: str | None = None,
        keys: Sequence[str] | None = None,
        how: How | None = None,
        target_bytes: int | None = None,
        cause: Cause,
        dry_run: bool = False,
    ) -> Struct:
        """Let values leave memory; returns what that freed."""

    def keep(
        self, tier: str, changes: Mapping[str, Any] | None, why: str, *, dry_run: bool = False
    ) -> dict[str, Any]:
        """Have a tier keep something else; returns what differs."""

    def totals(self) -> Mapping[str, Mapping[str, int]]:
        """Return entries and bytes of each tier."""


class CheckpointArgs(Struct, forbid_unknown_fields=True):
    """See `Operations.all`."""

    kind: CheckpointKind = "incremental"


class PurgeArgs(Struct, forbid_unknown_fields=True):
    """See `Operations.all`."""

    tier: str | None = None
    keys: list[str] | None = None
    how: How | None = None
    target_bytes: Annotated[int, Meta(gt=0)] | None = None


class RetainArgs(Struct, forbid_unknown_fields=True):
    """See `Operations.all`."""

    tier: str
    keep: dict[str, Any] | None


class AbortArgs(Struct, forbid_unknown_fields=True):
    """See `Operations.all`."""

    save: Literal["best_effort", "none"] = "best_effort"


class EndArgs(Struct, forbid_unknown_fields=True):
    """See `Operations.all`."""

    save: Save = "required"
    grace_us: Annotated[int, Meta(ge=0, le=_LONGEST_GRACE_US)] = 0


class Operations:
    """Carries them out on the parts of one run."""

    def __init__(
        self,
        context: Context,
        tiers: Tiers,
        checkpoints: Checkpoints,
        mode: Mode,
        reclaimer: Reclaimer,
    ) -> None:
        self._context = context
        self._tiers = tiers
        self._checkpoints = checkpoints
        self._mode = mode
        self._reclaimer = reclaimer

    def all(self) -> dict[str, Operation]:
        """Return them by name."""
        return {
            "checkpoint": Operation(
                run=self._checkpoint,
                about="save the state of all tiers",
                args={"kind": "incremental, full, or experiment: all of the current one, if any"},
                dry_runs=True,
                ready=lambda: not self._checkpoints.busy,
            ),
            "purge": Operation(
                run=self._purge,
                about="let values leave memory; nothing irreplaceable is lost",
                args={
                    "tier": "only from this one",
                    "keys": "only these",
                    "how": "expired, oldest, least_accessed, compress, reclaim; else all in order",
                    "target_bytes": "until so much is free",
                },
                idempotent=False,
                destructive=True,
                dry_runs=True,
                max_s=60.0,
            ),
            "retain": Operation(
                run=self._retain,
                about="change what a tier keeps, until that is changed again or the start ends",
                args={
                    "tier": "of this one",
                    "keep": "count, experiments, ttl_s, bytes, …; null: what it keeps by itself",
                },
                destructive=True,
                dry_runs=True,
                max_s=60.0,
            ),
            "reclaim": Operation(
                run=self._reclaim,
                about="drop caches, collect garbage, trim the allocator",
                max_s=30.0,
            ),
            "abort_experiment": Operation(
                run=self._abort,
                about="abort the experiment in progress; the agent lives on",
                args={"save": "best_effort or none: a checkpoint after it"},
                idempotent=False,
                destructive=True,
                anywhere=True,
                this_experiment=True,
            ),
            "end_run": Operation(
                run=self._end_run,
                about="save the state, then end the agent",
                args={
                    "save": "required (the run goes on if it fails), best_effort, none",
                    "grace_us": "the experiment in progress may go on for so long",
                },
                idempotent=False,
                destructive=True,
                ends_run=True,
            ),
        }

    def _checkpoint(self, request: Request) -> Result | Later:
        args = _checked(request, CheckpointArgs)
        kind = args.kind
        if kind == "experiment" and not self._mode.in_experiment:
            kind = "incremental"  # it ended, or was paused before it began: what there is, is saved
        if request.dry_run:
            return {"kind": kind, "tiers": self._tiers.totals()}
        later = Later()

        def tell(outcome: Outcome) -> None:
            if outcome.committed:
                later.done(_told(outcome))
            else:
                later.failed(outcome.reason)

        failed = self._checkpoints.take(kind, False, tell)
        if failed is not None:
            tell(failed)
        return later

    def _purge(self, request: Request) -> Result:
        args = _checked(request, PurgeArgs)
        known = self._tiers.totals()
        if args.tier is not None and args.tier not in known:
            raise RefusedError(f"there is no tier {args.tier}, only {', '.join(known)}")
        purged = self._tiers.purge(
            tier=args.tier,
            keys=args.keys,
            how=args.how,
            target_bytes=args.target_bytes,
            cause=_CAUSES.get(request.origin, "operator"),
            dry_run=request.dry_run,
        )
        result: Result = msgspec.to_builtins(purged)
        return result

    def _retain(self, request: Request) -> Result:
        args = _checked(request, RetainArgs)
        why = f"asked by {request.origin}"
        try:
            return self._tiers.keep(args.tier, args.keep, why, dry_run=request.dry_run)
        except UsageError as error:
            raise RefusedError(str(error)) from None

    def _reclaim(self, request: Request) -> Result:
        del request  # it takes no arguments
        return self._reclaimer.reclaim()

    def _abort(self, request: Request) -> Later:
        args = _checked(request, AbortArgs)
        later, number = Later(), self._context.experiment

        def finish(aborted: bool) -> None:  # or it ended by itself meanwhile
            saved = self._saved(args.save, "incremental")
            later.done({"experiment": number if aborted else None, "saved": saved})

        later.when_cancelled = self._mode.cancel_abort
        rest_us = REST_US if request.origin == ENGINE else 0
        why = f"experiment {number} is aborted, asked by {request.origin}"
        self._mode.abort(finish, why, rest_us)
        return later

    def _end_run(self, request: Request) -> Later:
        args = _checked(request, EndArgs)
        later = Later()

        def finish() -> bool:
            if later.cancelled:  # its deadline passed while the experiment had its grace
                return False
            saved = self._saved(args.save, "full")
            if args.save == "required" and "error" in saved:
                later.failed(f"the state could not be saved, so the run goes on: {saved['error']}")
                return False
            later.done({"saved": saved})
            return True

        due_us = self._context.clock.boot_us() + args.grace_us
        self._mode.end(End(finish, due_us, f"the run is about to end, asked by {request.origin}"))
        return later

    def _saved(self, save: Save, kind: CheckpointKind) -> Result:
        """Take a checkpoint as far as that is wanted and works; never raises."""
        if save == "none":
            return {}
        try:
            outcome = self._checkpoints.take(kind)
        except Exception as error:  # noqa: BLE001 - what it was saved for matters more
            return {"error": str(error) or type(error).__name__}
        return _told(outcome) if outcome.committed else {"error": outcome.reason}


_Args = TypeVar("_Args", CheckpointArgs, PurgeArgs, RetainArgs, AbortArgs, EndArgs)


def _checked(request: Request, kind: type[_Args]) -> _Args:
    try:
        return msgspec.convert(dict(request), kind)
    except msgspec.ValidationError as error:
        raise RefusedError(f"wrong argument: {error}") from None


def _told(outcome: Outcome) -> dict[str, Any]:
    names = ("id", "kind", "path", "bytes", "sha256")
    return {name: getattr(outcome, name) for name in names}
