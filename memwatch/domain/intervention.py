"""What was done about memory, and what it did (R13). Part of the snapshot."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

Verdict = Literal["pending", "effective", "none", "worse", "unmeasured"]
"""`pending` until measured; `unmeasured` when nobody looked at the time, or another one did its
work meanwhile. Nothing is called effective before something was measured."""
IN_VAIN: Final = frozenset({"none", "worse"})
MEASURED: Final = IN_VAIN | {"effective"}


class ResourceEffect(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One resource around an intervention, as we measured it; None where nothing was (yet).

    Of it, of stages and of experiments what says nothing is left out in JSON: there are many.
    """

    resource: str
    """memory, `tier:workspace`, `tokens:context`, disk, unaccounted."""
    unit: Literal["bytes", "tokens"] = "bytes"
    before: float | None = None
    """Median of the 30 s before; where usage moved one way all through them, what it came to."""
    after_10s: float | None = None
    after_10min: float | None = None
    freed: float | None = None
    """At 10 s; at 10 min where it came later. Negative when usage grew."""
    freed_share: float | None = None
    """`freed / before`."""
    rebound_s: float | None = None
    """Time until usage was back where it had been."""
    held_s: float | None = None
    """It was not back so long after it; None where it is back, or nothing was freed."""
    verdict: Verdict = "pending"


class Stage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of an intervention that the agent measured apart: garbage, allocator, one cache."""

    name: str
    freed_bytes: int | None = None
    duration_s: float | None = None
    error: str = ""


class ExperimentsAround(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The next experiments after an intervention against as many before it."""

    before: int = 0
    after: int = 0
    """How many were looked at; three each when there are enough."""
    before_s: float | None = None
    after_s: float | None = None
    """Median duration; None until there are three on each side."""
    before_ok: int = 0
    after_ok: int = 0
    """Those that ended well: neither failed nor crashed."""


class Intervention(Struct, frozen=True, kw_only=True):
    """A purge, checkpoint, compaction, pause or restart, with usage before and after.

    A plan of the engine (action "plan warn") is one as well: what its steps did to the process
    cannot be told apart, what all of them did can.
    """

    id: str
    action: str
    tier: str = ""
    how: str = ""
    """Of a purge: expired, oldest, least_accessed, compress, reclaim."""
    origin: str = ""
    """agent, engine, operator."""
    by: str = ""
    """The viewer that asked, where one did."""
    why: str = ""
    plan: str = ""
    """The plan that it was a step of."""
    state: str = "done"
    asked_at_us: int = 0
    done_at_us: int | None = None
    duration_s: float | None = None
    """From accepted to done."""
    verdict: Verdict = "pending"
    """Of the resource that it is about: the tier for a purge of a tier, else the tree."""
    effects: tuple[ResourceEffect, ...] = ()
    """That resource first."""
    stages: tuple[Stage, ...] = ()
    pause_s: float | None = None
    """How long it kept new experiments from beginning."""
    experiments: ExperimentsAround | None = None
    confounders: tuple[str, ...] = ()
    """What else happened meanwhile and may explain it, in words."""
    before: float | None = None
    """Of the first of `effects`, as are the next five."""
    after_10s: float | None = None
    after_10min: float | None = None
    freed_bytes: float | None = None
    freed_share: float | None = None
    rebound_s: float | None = None
    """Time until usage was back where it had been, when that was seen."""
    held_s: float | None = None
    claimed: int | None = None
    """What the agent itself said it freed (or wrote, for a checkpoint); the mean of a series."""
    differs: bool = False
    """The claim is not what we measured."""
    count: int = 1
    """More than one for a series: purges by retention that follow each other in one tier."""
    span_s: float | None = None
    """From the first of a series to its last; before is before the first, after behind the last."""
    overlaps: bool = False
    """Another purge of the tier falls into what was measured: nothing is said of what it freed."""

    @property
    def op(self) -> str:
        """The operation that it is, as agents name it: `checkpoint` of "checkpoint full"."""
        return self.action.partition(" ")[0].replace("-", "_")

    @property
    def is_checkpoint(self) -> bool:
        """It writes state down, and is not meant to free any memory."""
        return self.op == "checkpoint"

    @property
    def unit(self) -> Literal["bytes", "tokens"]:
        """Unit of what it is about."""
        return self.effects[0].unit if self.effects else "bytes"


class Advice(Struct, frozen=True, kw_only=True):
    """What past interventions and recoveries teach: what to do, or which value to change."""

    text: str
    """One line, with the figures that it rests on."""
    kind: Literal["action", "stopped", "policy", "recovery", "checkpoint"]
    """The cheapest action, one that stopped working, a value to change, a term to fix."""
    set: str = ""
    """`key=value` as `memwatch policy set RUN` takes it, where there is one."""
