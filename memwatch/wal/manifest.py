"""The two small JSON files of a run directory: `run.json` and a full checkpoint's manifest."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from memwatch.domain.record import LARGEST
from memwatch.wal.segment import FORMAT

Whole = Annotated[int, Meta(ge=-LARGEST, le=LARGEST)]
"""An integer of believable size."""


class RunManifest(Struct, frozen=True, kw_only=True):
    """`run.json`: who writes this run directory. Unknown members are ignored."""

    format: int
    run_id: str
    agent: str
    profile: str = "native"
    pid: Whole = 0
    start_ticks: Whole = 0
    """Start time of the process in clock ticks since boot: with boot id and pid its identity."""
    boot_id: str = ""
    host: str = ""
    started_us: Whole = 0
    argv: list[str] = []
    limits: dict[str, Whole] = {}
    """As in the newest `run.begin`, whose segment may have been dropped since."""
    cadence: dict[str, Any] = {}
    """When the agent takes checkpoints, plain numbers: incremental_experiments, incremental_s,
    full_experiments, full_s, chain_bytes."""
    retention: dict[str, Any] = {}
    """Groups that each tier keeps; a tier without a bound is not named."""
    ops: dict[str, Any] = {}
    """Operations that the agent takes over its spool, by name."""


class CheckpointFile(Struct, frozen=True):
    """One file of a full checkpoint."""

    bytes: Whole
    sha256: str


class TierTotals(Struct, frozen=True):
    """What a checkpoint holds of a tier."""

    entries: Whole
    bytes: Whole


class CheckpointManifest(Struct, frozen=True, kw_only=True):
    """`MANIFEST.json` of a full checkpoint."""

    format: int
    run_id: str
    id: str
    kind: str
    base: str | None = None
    first_lsn: Whole
    last_lsn: Whole
    tiers: dict[str, TierTotals]
    files: dict[str, CheckpointFile]
    began_us: Whole
    committed_us: Whole
    experiments: Whole = 0
    """How many experiments the run had begun, over its life."""
    open: Whole | None = None
    """Number of the experiment that was in progress."""
    phase: str = ""


class _Stated(Struct, frozen=True):
    """What every format of either file states, whatever else it holds."""

    format: int


_Manifest = TypeVar("_Manifest", RunManifest, CheckpointManifest)


def parse_run(text: bytes) -> RunManifest:
    """Read `run.json`; raises ValueError with one sentence."""
    manifest = _parse(text, RunManifest)
    if not manifest.run_id or len(manifest.run_id) > 200:
        raise ValueError("run.json names no usable run_id")
    return manifest


def parse_checkpoint(text: bytes) -> CheckpointManifest:
    """Read a full checkpoint's manifest; raises ValueError with one sentence."""
    return _parse(text, CheckpointManifest)


def _parse(text: bytes, shape: type[_Manifest]) -> _Manifest:
    try:
        stated = msgspec.json.decode(text, type=_Stated).format
        if stated != FORMAT:
            raise ValueError(
                f"format {stated} is not one that this version reads ({FORMAT}); upgrade memwatch"
            )
        return msgspec.json.decode(text, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not a manifest ({error}); restore it or name another run") from None
