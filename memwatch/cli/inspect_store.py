"""`memwatch inspect` of a checkpoint store that another program writes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from memwatch.analytics.checkpoints.store import judge
from memwatch.domain.checkpoint_words import kind_text, state_text
from memwatch.domain.checkpoints import BROKEN, Checkpoint, StoreLook
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text, counted, duration_text, local_time_text, share_text

_NEWEST = 12
_MOST_CHAINS = 8
_KINDS = {"directory": "checkpoint directory", "langgraph": "LangGraph database"}


def make_store_report(look: StoreLook) -> dict[str, Any]:
    """Return one look as one object of plain values; `checkpoints` are in order of their commit.

    `chains` counts kinds and blob bytes by thread; `figures`, `bloat` and `prune` mean what they do
    in `status --json`.
    """
    judged = judge(look)
    ids: dict[str, list[str]] = {"incomplete": [], "damaged": [], "begun": []}
    for one in look.checkpoints:
        ids.get(one.state, []).append(one.id)
    return {
        "kind": look.source,
        "count": look.count,
        "total_bytes": look.total_bytes,
        "state_bytes": look.state_bytes,
        "written_bytes": look.written_bytes,
        "load_bytes": look.load_bytes,
        "log_bytes": look.log_bytes,
        "dead_bytes": look.dead_bytes,
        "best": look.best,
        "writers": list(look.writers),
        "newest": look.checkpoints[-1].id if look.checkpoints else None,
        "incomplete": ids["incomplete"],
        "damaged": ids["damaged"],
        "writing": ids["begun"],
        "chains": _chains(look.checkpoints),
        "figures": msgspec.to_builtins(judged.stats),
        "bloat": msgspec.to_builtins(judged.bloat),
        "prune": msgspec.to_builtins(judged.prune),
        "why": look.why,
        "checkpoints": msgspec.to_builtins(look.checkpoints),
    }


def is_fine(look: StoreLook) -> bool:
    """Whether the newest checkpoint is whole or still being written, and the store can be read."""
    if not look.checkpoints:
        return not look.why
    return look.checkpoints[-1].state not in BROKEN


def store_lines(look: StoreLook, report: dict[str, Any]) -> list[str]:
    """Return the report as text: the newest checkpoints first, then figures and advice."""
    writers = ", ".join(map(str, look.writers)) or "nobody"
    lines = [
        f"{_KINDS[look.source]}: {counted(look.count, 'checkpoint')}, "
        f"{bytes_text(look.total_bytes)} on disk; open for writing by: {writers}"
    ]
    lines += [_row(one) for one in reversed(look.checkpoints[-_NEWEST:])]
    if look.count > _NEWEST:
        lines.append(f"  and {look.count - min(_NEWEST, len(look.checkpoints))} more")
    lines += [_chain(chain) for chain in report["chains"][:_MOST_CHAINS] if chain["thread"]]
    lines += _database(look)
    lines += [inert(text, 200) for text in _verdicts(report)]
    if look.why:
        lines.append(f"not all could be looked at: {inert(look.why, 200)}")
    return lines


def _row(one: Checkpoint) -> str:
    known_us = one.committed_us or one.began_us
    when = local_time_text(known_us, "%Y-%m-%d %H:%M:%S") if known_us else "–"
    took = duration_text(one.duration_s) if one.duration_s is not None else "–"
    kind = kind_text(one.kind, partial=one.partial)
    step = "–" if one.step is None else one.step
    state = state_text(one.state)
    broken = one.state != "committed" and one.reason
    return (
        f"  {inert(one.id, 40):<20} step {step:>5} {kind:<11} {bytes_text(one.bytes):>6} "
        f"{took:>6} {when}  {state}" + (f": {inert(one.reason, 120)}" if broken else "")
    )


def _chains(checkpoints: tuple[Checkpoint, ...]) -> list[dict[str, Any]]:
    kinds = Counter((one.thread, one.kind) for one in checkpoints)
    sizes: Counter[str] = Counter()
    for one in checkpoints:
        sizes[one.thread] += one.bytes or 0
    return [
        {
            "thread": thread,
            "full": kinds[thread, "full"],
            "incremental": kinds[thread, "incremental"],
            "bytes": size,
        }
        for thread, size in sizes.items()
    ]


def _chain(chain: dict[str, Any]) -> str:
    return (
        f"thread {inert(chain['thread'], 60)}: {chain['full']} full, "
        f"{chain['incremental']} incremental, {bytes_text(chain['bytes'])}"
    )


def _database(look: StoreLook) -> list[str]:
    if look.dead_bytes is None or not look.total_bytes:
        return []
    dead = share_text(look.dead_bytes / look.total_bytes)
    return [
        f"state {bytes_text(look.state_bytes)}, written {bytes_text(look.written_bytes)}, "
        f"log {bytes_text(look.log_bytes)}, dead pages {dead}"
    ]


def _verdicts(report: dict[str, Any]) -> list[str]:
    figures, bloat, prune = report["figures"], report["bloat"], report["prune"]
    lines = []
    if figures["every_s"] is not None:
        lines.append(
            f"one each {duration_text(figures['every_s'])}, "
            f"median of full ones {bytes_text(figures['full_bytes_p50'])}"
        )
    if bloat["verdict"] in {"watching", "bloat"}:
        lines.append(f"{bloat['verdict']}: {bloat['why']}")
    if prune["ids"]:
        lines.append(f"{bytes_text(prune['bytes'])} could go: {prune['why']}")
    return lines
