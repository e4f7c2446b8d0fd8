"""Courses of checkpoints as tests need them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memwatch.analytics.checkpoints.course import Seen
from memwatch.domain.checkpoints import Checkpoint

S = 1_000_000
MB = 1_000_000


def a_checkpoint(number: int, size: int = 10 * MB, **members: Any) -> Checkpoint:
    told = {"kind": "full", "state": "committed", "committed_us": number * 60 * S, **members}
    return Checkpoint(**{"id": f"c{number}", "bytes": size, **told})


def course_of(
    sizes: Sequence[float],
    states: Sequence[float] | None = None,
    every_s: float = 600,
    **members: Any,
) -> list[Seen]:
    """Return full checkpoints of these sizes; `states` are what the state held at each."""
    held = states if states is not None else [None] * len(sizes)
    return [
        Seen(
            round(number * every_s * S),
            a_checkpoint(
                number,
                round(size),
                file_bytes=round(size),
                state_bytes=None if state is None else round(state),
                **members,
            ),
        )
        for number, (size, state) in enumerate(zip(sizes, held, strict=True))
    ]
