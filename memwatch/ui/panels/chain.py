"""What a recovery would start from, in raw figures, and how the checkpoints stand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from memwatch.domain.checkpoints import Checkpoint, Checkpoints
from memwatch.domain.snapshot import PAST, Snapshot
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text, counted, duration_text, share_text
from memwatch.ui.format import age_text, count_text
from memwatch.ui.line import Line
from memwatch.ui.panels.table import Ranked, labelled


def chain_lines(snapshot: Snapshot) -> list[Line]:
    """Return what would be loaded, read and replayed; for a time without an estimate."""
    found, checkpoints = snapshot.recovery, snapshot.checkpoints
    full = checkpoints.last_recoverable_full
    if full is None:
        load = labelled("load full", ("none that is complete", "warn"))
    else:
        age_s = (snapshot.t_us - (full.committed_us or full.began_us)) / 1e6
        size = bytes_text(found.full_bytes if found.full_bytes is not None else full.bytes)
        old = "before end" if snapshot.run.state in PAST else "old"
        load = labelled(
            "load full", (f"{size:>5}", "strong"), (f"  {age_text(age_s):>4} {old}", "")
        )
        if full.duration_s is not None:
            load.append((f", took {duration_text(full.duration_s)}", ""))
    read = labelled("read", (f"{bytes_text(found.delta_bytes):>5}", "strong"), ("  ", ""))
    read += chain_spans(checkpoints)
    tail = f"  {count_text(found.tail_records):>4} records of log tail"
    replay = labelled("replay", (f"{bytes_text(found.tail_bytes):>5}", "strong"), (tail, ""))
    return [load, read, replay]


def chain_spans(checkpoints: Checkpoints) -> Line:
    """Return how long the chain behind the newest full one is, of what it may be."""
    chain = checkpoints.chain
    share = chain.bytes / chain.limit_bytes if chain.limit_bytes else None
    filled = f"{share_text(share)} of {bytes_text(chain.limit_bytes)}"
    return [
        (f"{counted(chain.deltas, 'delta')}, ", ""),
        (filled, "warn" if share is not None and share > 1 else ""),
    ]


def checkpoint_lines(snapshot: Snapshot) -> list[Ranked]:
    """Return the last, the next, and those that are of no use, with their ranks."""
    checkpoints = snapshot.checkpoints
    lines: list[Ranked] = [(8, labelled("last", *_told(checkpoints.last, snapshot)))]
    if snapshot.run.state not in PAST:
        rank = 3 if checkpoints.overdue else 8
        lines.append((rank, labelled("next", *due_spans(checkpoints))))
    return [*lines, *((2, line) for line in broken_lines(checkpoints))]


def broken_lines(checkpoints: Checkpoints) -> Iterator[Line]:
    """Return the names of checkpoints that are of no use, by what is wrong with them."""
    damaged = checkpoints.damaged
    missing = tuple(name for name in checkpoints.missing if name not in damaged)
    wrong = (("incomplete", checkpoints.incomplete), ("DAMAGED", damaged), ("missing", missing))
    for word, names in wrong:
        if names:
            yield labelled("broken", (f"{len(names)} {word}: {names_text(names)}", "warn"))


def names_text(names: Sequence[str]) -> str:
    """Return the first of some names of checkpoints."""
    return ", ".join(name_text(name) for name in names[:3])


_STALL_S = 0.001
"""A shorter standstill of the agent is none that a person asks about."""


def name_text(name: str) -> str:
    """Return the name of a checkpoint without the zeros that only serve sorting.

    >>> name_text("full-00000000000000001416"), name_text("checkpoint-2000")
    ('full-…1416', 'checkpoint-2000')
    """
    return inert(_ZEROS.sub("…", name), 40)


_ZEROS = re.compile(r"(?<!\d)0{6,}")


def kind_text(kind: str) -> str:
    """Return the kind of a checkpoint in few letters."""
    return inert(kind, 16).replace("incremental", "incr").replace("experiment", "exp")


def due_spans(checkpoints: Checkpoints) -> Line:
    """Return when the next one is due."""
    parts: Line = []
    if checkpoints.overdue:
        parts.append((f"OVERDUE {kind_text(checkpoints.overdue_kind or '')}".rstrip(), "warn"))
    elif checkpoints.due_in_s is not None:
        parts.append((f"{age_text(checkpoints.due_in_s):>5}  to go", ""))
    else:
        parts.append(("no cadence known", "dim"))
    if checkpoints.experiments_since is not None:
        since = counted(checkpoints.experiments_since, "experiment")
        parts.append((f", {since} since", ""))
    return parts


def _told(one: Checkpoint | None, snapshot: Snapshot) -> Line:
    over = snapshot.run.state in PAST
    if one is None:
        return [("no checkpoint" if over else "no checkpoint yet", "dim")]
    age_s = (snapshot.t_us - (one.committed_us or one.began_us)) / 1e6
    text = f"{bytes_text(one.bytes):>5}  {kind_text(one.kind):<4}"
    text += f" {age_text(age_s):>6} {'before end' if over else 'ago'}"
    if one.duration_s is not None:
        text += f", took {duration_text(one.duration_s)}"
    if one.stall_s is not None and _STALL_S <= one.stall_s != one.duration_s:
        text += f", stall {duration_text(one.stall_s)}"
    if one.state != "committed":
        return [(f"{one.state.upper()} ", "warn"), (text, "")]
    return [(text, "")]
