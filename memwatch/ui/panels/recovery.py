"""If it crashed now: what a recovery would start from. Raw figures, no estimate made of them."""

from __future__ import annotations

from memwatch.domain.checkpoints import Checkpoint, Checkpoints
from memwatch.domain.snapshot import PAST, Snapshot
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text, duration_text, share_text
from memwatch.ui.format import age_text, count_text
from memwatch.ui.frame import Frame
from memwatch.ui.line import Line, cut_line

_LABEL = 9


def recovery_heading(frame: Frame) -> str:
    """Return what the figures are about; a run that is over has crashed, or it will not."""
    return "what a recovery would start from" if frame.past else "if it crashed now"


def recovery(frame: Frame, width: int, height: int) -> list[Line]:
    """Return what would be read and replayed, what would be lost, and the checkpoints."""
    snapshot = frame.snapshot
    if snapshot is None:
        return []
    lines = [*_chain(snapshot), *_drilled(snapshot), *_lost(snapshot), *_checkpoints(snapshot)]
    return [cut_line(line, width) for line in lines][:height]


def _row(label: str, *values: tuple[str, str]) -> Line:
    return [(f"{label:<{_LABEL}} ", "dim"), *values]


def _chain(snapshot: Snapshot) -> list[Line]:
    found, checkpoints = snapshot.recovery, snapshot.checkpoints
    full = checkpoints.last_recoverable_full
    if full is None:
        load = _row("load full", ("none that is complete", "warn"))
    else:
        age_s = (snapshot.t_us - (full.committed_us or full.began_us)) / 1e6
        size = bytes_text(found.full_bytes if found.full_bytes is not None else full.bytes)
        old = "before end" if snapshot.run.state in PAST else "old"
        load = _row("load full", (f"{size:>5}", "strong"), (f"  {age_text(age_s):>4} {old}", ""))
        if full.duration_s is not None:
            load.append((f", took {duration_text(full.duration_s)}", ""))
    chain = checkpoints.chain
    deltas = f"{chain.deltas} delta{'' if chain.deltas == 1 else 's'}"
    share = chain.bytes / chain.limit_bytes if chain.limit_bytes else None
    filled = f"{share_text(share)} of {bytes_text(chain.limit_bytes)}"
    over = share is not None and share > 1
    read = _row(
        "read",
        (f"{bytes_text(found.delta_bytes):>5}", "strong"),
        (f"  {deltas}, ", ""),
        (filled, "warn" if over else ""),
    )
    tail = f"  {count_text(found.tail_records):>4} records of log tail"
    replay = _row("replay", (f"{bytes_text(found.tail_bytes):>5}", "strong"), (tail, ""))
    return [load, read, replay]


def _lost(snapshot: Snapshot) -> list[Line]:
    found = snapshot.recovery
    if found.at_risk_s is None:
        return [_row("at risk", ("not known yet", "dim"))]
    label = "lost" if snapshot.run.state in PAST else "at risk"
    count = found.at_risk_experiments
    what = f"{count} experiment{'' if count == 1 else 's'}"
    if found.mean_experiment_s is not None:
        what += f" (mean {duration_text(found.mean_experiment_s)})"
    return [_row(label, (f"{age_text(found.at_risk_s):>5}", "strong"), (f"  {what}", ""))]


def _drilled(snapshot: Snapshot) -> list[Line]:
    """Return what a recovery for practice took; nothing before the first."""
    drill = snapshot.recovery.drill
    if drill is None:
        return []
    came = "cold" if drill.cold_cache else "warm"
    age = age_text((snapshot.t_us - drill.t_us) / 1e6)
    if drill.matches is False:
        proved = ("HASH DIFFERS", "warn")
    elif drill.lossy:
        proved = ("SOME LOST", "warn")
    else:
        proved = ("hash matches" if drill.matches else "no hash yet", "")
    took = (f"{duration_text(drill.total_s):>5}", "strong")
    return [_row("drilled", took, (f" {came}, {age} ago, ", ""), proved)]


def _checkpoints(snapshot: Snapshot) -> list[Line]:
    checkpoints = snapshot.checkpoints
    lines = [
        _row("last", *_told(checkpoints.last, snapshot)),
    ]
    if snapshot.run.state not in PAST:
        lines.append(_row("next", *_due(checkpoints)))
    if checkpoints.incomplete:
        names = ", ".join(inert(name, 24) for name in checkpoints.incomplete[:4])
        lines.append(_row("broken", (f"{len(checkpoints.incomplete)} incomplete: {names}", "warn")))
    return lines


def _told(one: Checkpoint | None, snapshot: Snapshot) -> list[tuple[str, str]]:
    over = snapshot.run.state in PAST
    if one is None:
        return [("no checkpoint" if over else "no checkpoint yet", "dim")]
    age_s = (snapshot.t_us - (one.committed_us or one.began_us)) / 1e6
    text = f"{bytes_text(one.bytes):>5}  {inert(one.kind, 16).replace('incremental', 'incr'):<4}"
    text += f" {age_text(age_s):>6} {'before end' if over else 'ago'}"
    if one.duration_s is not None:
        text += f", took {duration_text(one.duration_s)}"
    if one.stall_s is not None and one.stall_s != one.duration_s:
        text += f", stall {duration_text(one.stall_s)}"
    if one.state != "committed":
        return [(f"{one.state.upper()} ", "warn"), (text, "")]
    return [(text, "")]


def _due(checkpoints: Checkpoints) -> list[tuple[str, str]]:
    parts: list[tuple[str, str]] = []
    if checkpoints.overdue:
        parts.append(("OVERDUE", "warn"))
    elif checkpoints.due_in_s is not None:
        parts.append((f"{age_text(checkpoints.due_in_s):>5}  to go", ""))
    else:
        parts.append(("no cadence known", "dim"))
    if checkpoints.experiments_since is not None:
        since = checkpoints.experiments_since
        parts.append((f", {since} experiment{'' if since == 1 else 's'} since", ""))
    return parts
