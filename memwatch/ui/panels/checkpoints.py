"""All checkpoints that are known, each a row; above them figures and what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len

from memwatch.domain.checkpoints import Checkpoint, Checkpoints
from memwatch.domain.snapshot import PAST, Snapshot
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text, duration_text, rough_text, short_text
from memwatch.ui.format import clock_text, count_text, moment_text, percent_text
from memwatch.ui.frame import Frame
from memwatch.ui.line import Line
from memwatch.ui.panels.chain import (
    broken_lines,
    chain_spans,
    due_spans,
    kind_text,
    name_text,
    names_text,
)
from memwatch.ui.panels.facts import Fact
from memwatch.ui.panels.recovery import headline
from memwatch.ui.panels.sheet import SHORT_TIME, Sheet, SheetRow
from memwatch.ui.panels.table import Cell, Ranked, TableColumn, labelled, ranked

SOURCES = {"native": "", "directory": "a directory", "langgraph": "a LangGraph database"}
_STATES = {
    "begun": ("being written", "watch"),
    "committed": ("complete", ""),
    "aborted": ("aborted", "warn"),
    "incomplete": ("incomplete", "warn"),
    "damaged": ("DAMAGED", "crit"),
}
_BLOAT_STYLES = {"bloat": "warn", "watching": "watch"}


def checkpoints_title(frame: Frame, count: int) -> str:
    """Return what the table holds, and of what."""
    snapshot = frame.snapshot
    if snapshot is None:
        return "checkpoints"
    known = max(snapshot.checkpoints.count, count)
    of = SOURCES[snapshot.checkpoints.source]
    newest = f"the newest {count} of {known}" if 0 < count < known else f"{known}"
    return f"checkpoints ─ {newest}" + (f" in {of}" if of else "")


def checkpoint_sheet(frame: Frame, rows: Sequence[Checkpoint], width: int) -> Sheet:
    """Return figures, and a row for each checkpoint, newest first."""
    snapshot = frame.snapshot
    if snapshot is None:
        return Sheet(nothing="nothing was received yet")
    found = snapshot.checkpoints
    over = snapshot.run.state in PAST
    return Sheet(
        above=tuple(row for rank, line in _figures(snapshot) for row in ranked(rank, line, width)),
        columns=_columns(found, rows, seconds=width >= SHORT_TIME),
        rows=tuple(
            SheetRow(one.id, _cells(one, snapshot, seconds=width >= SHORT_TIME)) for one in rows
        ),
        nothing="no checkpoint" if over else "no checkpoint yet",
    )


def _columns(
    found: Checkpoints, rows: Sequence[Checkpoint], *, seconds: bool
) -> tuple[TableColumn, ...]:
    native = found.source == "native"

    def where(needs: int, told: Iterable[object]) -> int:
        """Return the width that a column needs; one in which nothing stands has none."""
        return needs if any(told) else _NEVER

    timed = [one.duration_s is not None for one in rows]
    name = min(max((cell_len(name_text(one.id)) for one in rows), default=0), 24)
    return (
        TableColumn("when", 8 if seconds else 5, "left"),
        TableColumn("name", max(name, 4), "left", needs=_NAMES[found.source]),
        TableColumn("kind", 5, "left", needs=where(0, (one.kind != "full" for one in rows))),
        TableColumn(
            "step",
            min(max([4, *(len(f"{one.step}") for one in rows)]), 12),
            needs=where(
                100 if found.source == "directory" else 50, (one.step is not None for one in rows)
            ),
        ),
        TableColumn("thread", 12, "left", needs=where(60, (one.thread for one in rows))),
        TableColumn("size", 5),
        TableColumn("entries", 7, needs=where(64, (one.entries for one in rows))),
        TableColumn("files", 5, needs=where(96, (one.files for one in rows))),
        TableColumn("took" if native else "took≥", 5, needs=where(50, timed)),
        TableColumn("age", 5, needs=44),
        TableColumn(
            "on", 12, "left", needs=where(90 if native else 150, (one.base for one in rows))
        ),
        TableColumn("state", 0, "left"),
    )


_NEVER = 10_000
_NAMES = {"native": 110, "directory": 56, "langgraph": 150}
"""From which width on the name is shown: that of a folder is how people know it."""


def _cells(one: Checkpoint, snapshot: Snapshot, *, seconds: bool) -> tuple[Cell, ...]:
    at_us = one.committed_us or one.began_us
    age_s = (snapshot.t_us - at_us) / 1e6 if at_us else None
    words, style = state_words(one, snapshot)
    return (
        Cell(clock_text(at_us, seconds=seconds) if at_us else "–", "dim"),
        Cell(name_text(one.id)),
        Cell(kind_text(one.kind)),
        Cell("–" if one.step is None else f"{one.step}"),
        Cell(inert(one.thread, 24), "dim"),
        Cell(bytes_text(one.bytes), style if style == "warn" else ""),
        Cell(count_text(one.entries), "dim"),
        Cell(count_text(one.files), "dim"),
        Cell(short_text(one.duration_s)),
        Cell(rough_text(age_s), "dim"),
        Cell(name_text(one.base or ""), "dim"),
        Cell(words, style),
    )


def state_words(one: Checkpoint, snapshot: Snapshot) -> tuple[str, str]:
    """Return what a checkpoint is good for, and the style of that."""
    found = snapshot.checkpoints
    words, style = _STATES[one.state]
    if one.state == "committed" and one.id in found.missing and one.id not in found.damaged:
        return "MISSING ON DISK", "crit"
    if one.state == "committed":
        return ", ".join([words, *_remarks(one, snapshot)]), style
    return f"{words}: {inert(one.reason, 160)}" if one.reason else words, style


def _remarks(one: Checkpoint, snapshot: Snapshot) -> Iterator[str]:
    found = snapshot.checkpoints
    if one.partial:
        yield "adapter only"
    if found.last_recoverable_full is not None and one.id == found.last_recoverable_full.id:
        yield "a recovery loads it" if found.source == "native" else "newest to start from"
    if one.id in found.prune.ids:
        yield "may go"


# -- figures ---------------------------------------------------------------------------------------


def _figures(snapshot: Snapshot) -> Iterator[Ranked]:
    found = snapshot.checkpoints
    for line in headline(snapshot, 400):
        yield 3, [*labelled("recovery"), *line]
    yield from _newest(snapshot)
    if found.stats.complete or found.stats.failed:
        yield 4, _course(found)
        yield 5, _sizes(found)
    if found.source == "native":
        yield 6, labelled("chain", *chain_spans(found))
    bloat = found.bloat
    style = _BLOAT_STYLES.get(bloat.verdict, "")
    said: Line = [(bloat.verdict.upper() if bloat.verdict == "bloat" else bloat.verdict, style)]
    if bloat.why:
        said.append((f": {inert(bloat.why, 200)}", ""))
    if bloat.do:
        said.append((f"; {inert(bloat.do, 160)}", "strong"))
    yield 1 if bloat.verdict == "bloat" else 6, labelled("bloat", *said)
    if found.prune.why or found.prune.ids:
        yield 7, _prune(found)


def _newest(snapshot: Snapshot) -> Iterator[Ranked]:
    """Return what is being written, what is wrong with the newest, and when the next is due."""
    found = snapshot.checkpoints
    if found.writing:
        yield 2, labelled("writing", (names_text(found.writing), "watch"))
    for line in broken_lines(found):
        yield 0, line
    if snapshot.run.state in PAST:
        return
    due = due_spans(found)
    size = "" if found.next_bytes is None else f" of ~{bytes_text(found.next_bytes)}"
    if found.next_fits:
        due.append((f", a full one{size} fits", ""))
    elif found.next_fits is False:
        due.append((f", a full one{size} DOES NOT FIT", "crit"))
    elif size:
        due.append((f", a full one takes{size.removeprefix(' of')}", ""))
    yield 1 if found.overdue or found.next_fits is False else 4, labelled("next", *due)


def _course(found: Checkpoints) -> Line:
    stats = found.stats
    parts = [f"{stats.complete} complete"]
    parts += [f"{stats.failed} failed"] if stats.failed else []
    parts += [f"one every {duration_text(stats.every_s)}"] if stats.every_s is not None else []
    if stats.duration_p50_s is not None:
        took = _p95(duration_text(stats.duration_p50_s), duration_text(stats.duration_p95_s))
        least = (
            "" if found.source == "native" else "at least "
        )  # a store tells when files were done
        parts.append(f"took {least}{took}")
    if stats.time_share is not None:
        parts.append(f"{percent_text(stats.time_share * 100)} of the time")
    return labelled("course", (", ".join(parts), ""))


def _sizes(found: Checkpoints) -> Line:
    stats = found.stats
    parts = []
    if stats.full_bytes_p50 is not None:
        size = _p95(bytes_text(stats.full_bytes_p50), bytes_text(stats.full_bytes_p95))
        parts.append(f"full ones {size}")
    if stats.growth_bytes is not None:
        sign = "+" if stats.growth_bytes >= 0 else ""
        parts.append(f"{sign}{bytes_text(stats.growth_bytes)} from one to the next")
    if stats.total_bytes is not None:
        parts.append(f"{bytes_text(stats.total_bytes)} on disk")
    if stats.write_bytes_per_s is not None and found.source == "native":
        parts.append(f"written at {bytes_text(stats.write_bytes_per_s)}/s")
    return labelled("size", (", ".join(parts) or "not known yet", ""))


def _p95(median: str, p95: str) -> str:
    return median if p95 in (median, "–") else f"{median} (p95 {p95})"


def _prune(found: Checkpoints) -> Line:
    prune = found.prune
    if not prune.count:
        return labelled("prune", (inert(prune.why, 200), "dim"))
    said = f"{prune.count} may go, {bytes_text(prune.bytes)}"
    return labelled("prune", (said, "strong"), (f": {inert(prune.why, 200)}", ""))


# -- evidence --------------------------------------------------------------------------------------


def checkpoint_facts(one: Checkpoint, snapshot: Snapshot) -> list[Fact]:
    """Return all that is known of one checkpoint."""
    now_us = snapshot.t_us
    facts: list[Fact] = [
        ("name", inert(one.id, 200)),
        ("kind", inert(one.kind, 40) + (f", on {inert(one.base, 100)}" if one.base else "")),
        ("is", state_words(one, snapshot)[0]),
    ]
    for name, t_us in (("began", one.began_us), ("committed", one.committed_us)):
        if t_us:
            facts.append((name, moment_text(t_us, now_us, seconds=True)))
    took = duration_text(one.duration_s)
    stall = (
        "" if one.stall_s is None else f", the agent stood still for {duration_text(one.stall_s)}"
    )
    facts.append(("took", took + stall))
    if one.bytes is not None:
        facts.append(("size", f"{one.bytes:,} bytes" + _in(one)))
    if one.file_bytes is not None and one.file_bytes != one.bytes:
        facts.append(("", f"of it {one.file_bytes:,} in its own files, the rest are values beside"))
    if one.state_bytes is not None:
        facts.append(("state", f"{one.state_bytes:,} bytes in memory"))
    if one.first_lsn is not None:
        facts.append(("log", f"lsn {one.first_lsn} to {one.last_lsn}"))
    if one.step is not None:
        facts.append(("step", f"{one.step}"))
    if one.thread:
        facts.append(("thread", inert(one.thread, 100)))
    if one.reason:
        facts.append(("why", inert(one.reason, 300)))
    return facts


def _in(one: Checkpoint) -> str:
    parts = [
        f" in {count:,} {name}"
        for count, name in ((one.entries, "entries"), (one.files, "files"))
        if count
    ]
    return ",".join(parts)
