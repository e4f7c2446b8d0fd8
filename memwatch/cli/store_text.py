"""What `status` says of a store that another program writes: its checkpoints in place of tiers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memwatch.domain.checkpoint_words import kind_text, state_text
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text, counted, duration_text, local_time_text

_NEWEST = 8


def is_store(status: dict[str, Any]) -> bool:
    """Say whether a status is of a checkpoint store and not of a run of ours."""
    return str((status.get("source") or {}).get("kind", "native")) != "native"


def store_head(status: dict[str, Any]) -> str:
    """Return what lies there, in one line."""
    known, path = status["checkpoints"], inert(status["run"]["path"], 200)
    total = known["stats"]["total_bytes"]
    size = "" if total is None else f", {bytes_text(total)} in all"
    why = inert(status["source"]["watch_why"], 160)
    count = counted(known["count"], "checkpoint")
    return f"{path}: {count}{size}" + (f" ({why})" if why else "")


def store_rows(status: dict[str, Any]) -> Iterator[str]:
    """Give a line for each of the newest checkpoints, newest first."""
    yield f"{'checkpoint':<28} {'kind':<11} {'size':>6} {'took':>7} {'at':>14}  state"
    for one in status["checkpoints"]["newest"][:_NEWEST]:
        size = "–" if one["bytes"] is None else bytes_text(one["bytes"])
        took = "–" if one["duration_s"] is None else duration_text(one["duration_s"])
        at_us = one["committed_us"] or one["began_us"]
        at = local_time_text(at_us, "%m-%d %H:%M:%S") if at_us else "–"
        state = state_text(one["state"])
        done = one["state"] == "committed"
        why = f": {inert(one['reason'], 80)}" if one["reason"] and not done else ""
        name, kind = inert(one["id"], 28), kind_text(one["kind"], partial=one["partial"])
        yield f"{name:<28} {kind:<11} {size:>6} {took:>7} {at:>14}  {state}{why}"
