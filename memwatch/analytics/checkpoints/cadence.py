"""Which checkpoint is due next, by the cadence that the agent goes by (requirement R5).

A first one is always full, as increments need a base. The agent acts at its next safe point, so
some time behind the cadence is no fault: overdue is what is `grace` times behind.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from memwatch.domain.policy import Cadence

Kind = Literal["full", "incremental"]


class Since(NamedTuple):
    """What was done since a checkpoint, or since the start when there is none."""

    seconds: float
    experiments: int


class Due(NamedTuple):
    """The checkpoint that comes next."""

    kind: Kind
    in_s: float
    """Negative when its time is over."""
    experiments: int
    """Experiments done towards it."""
    of_experiments: int
    overdue: Kind | None
    """The kind that should have come long ago, the full one before all."""


def next_due(
    cadence: Cadence, grace: float, newest: Since, full: Since | None, chain_bytes: int
) -> Due:
    """Return what is due next; `full` is None while this start has no full checkpoint."""
    plain: Kind = "full" if full is None else "incremental"
    late = _late(newest, cadence.incremental_s, cadence.incremental_experiments, grace)
    in_s = cadence.incremental_s - newest.seconds
    due = Due(
        plain, in_s, newest.experiments, cadence.incremental_experiments, plain if late else None
    )
    if full is None:
        return due
    full_in_s = cadence.full_s - full.seconds
    chain_due = chain_bytes > cadence.chain_bytes
    if _late(full, cadence.full_s, cadence.full_experiments, grace) or (
        chain_bytes > cadence.chain_bytes * grace
    ):
        due = due._replace(overdue="full")
    if chain_due or full.experiments >= cadence.full_experiments or full_in_s <= in_s:
        in_s = min(full_in_s, 0.0) if chain_due else full_in_s
        return Due("full", in_s, full.experiments, cadence.full_experiments, due.overdue)
    return due


def _late(since: Since, seconds: float, experiments: int, grace: float) -> bool:
    return since.seconds > seconds * grace or since.experiments > experiments * grace
