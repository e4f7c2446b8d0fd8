"""All interventions that are known, sorted by what a person asks for, and each in detail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from memwatch.domain.intervention import ExperimentsAround, Intervention, Stage
from memwatch.domain.snapshot import Snapshot
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text, counted, duration_text, short_text
from memwatch.ui.format import count_text, moment_text
from memwatch.ui.frame import Frame
from memwatch.ui.panels.acts import nothing_done
from memwatch.ui.panels.effect import (
    FREED_CELLS,
    THEN_CELLS,
    amount_text,
    deed_cells,
    effect_words,
    succeeded,
    took_text,
    what_words,
    who_words,
)
from memwatch.ui.panels.facts import Fact
from memwatch.ui.panels.sheet import SHORT_TIME, Sheet, SheetRow
from memwatch.ui.panels.table import Cell, Ranked, TableColumn, labelled, ranked

_MEANWHILE = 160
"""From this width on a row says what else may explain what it did."""
_PAUSE_S = 0.001
_KINDS = ("action", "stopped", "policy")
_WORDS = (
    ("effective", "effective"),
    ("none", "without effect"),
    ("worse", "worse"),
    ("pending", "being measured"),
    ("unmeasured", "unmeasured"),
    ("overlaps", "overlapping others"),
)


def freed_bytes(one: Intervention) -> float | None:
    """Return the bytes that it really freed: of what it is about, else of the memory."""
    if one.overlaps:
        return None
    if one.unit == "bytes":
        return one.freed_bytes
    return next((it.freed for it in one.effects if it.resource == "memory"), None)


SORTS: Mapping[str, Callable[[Intervention], float | None]] = {
    "bytes freed": freed_bytes,
    "share freed": lambda one: one.freed_share,
    "time": lambda one: float(one.asked_at_us),
    "duration": lambda one: one.duration_s if one.span_s is None else one.span_s,
    "how long it held": lambda one: one.held_s if one.rebound_s is None else one.rebound_s,
}
"""By name, greatest first; what has no such figure goes last, newest first."""


def in_order(rows: Sequence[Intervention], sort: str) -> list[Intervention]:
    """Return interventions in the order of `SORTS`; checkpoints, which only write, go last."""
    key = SORTS[sort]

    def place(one: Intervention) -> tuple[int, float, int]:
        figure = key(one)
        aside = sort not in ("time", "duration") and one.is_checkpoint
        return 2 if aside else int(figure is None), -(figure or 0.0), -one.asked_at_us

    return sorted(rows, key=place)


def interventions_title(sort: str, count: int) -> str:
    """Return how many there are, and in which order."""
    return f"interventions ─ {count}, by {sort}"


def intervention_sheet(frame: Frame, rows: Sequence[Intervention], sort: str, width: int) -> Sheet:
    """Return what they teach, and a row for each, in order."""
    snapshot = frame.snapshot
    if snapshot is None:
        return Sheet(nothing="nothing was received yet")
    seconds = width >= SHORT_TIME
    return Sheet(
        above=tuple(
            row for rank, line in _above(snapshot, rows) for row in ranked(rank, line, width)
        ),
        columns=_columns(sort, width),
        rows=tuple(SheetRow(one.id, _cells(one, seconds=seconds)) for one in in_order(rows, sort)),
        nothing=nothing_done(snapshot),
    )


def _above(snapshot: Snapshot, rows: Sequence[Intervention]) -> Iterator[Ranked]:
    for advice in snapshot.advice:
        if advice.kind in _KINDS:
            line = labelled("advice", (inert(advice.text, 200), ""))
            yield 1, [*line, (f"  set {inert(advice.set, 80)}", "dim")] if advice.set else line
    counts = Counter(
        "overlaps" if one.overlaps else one.verdict for one in rows if not one.is_checkpoint
    )
    if counts:
        said = [f"{counts[verdict]} {words}" for verdict, words in _WORDS if counts[verdict]]
        others = len(rows) - counts.total()
        tail = f"; {counted(others, 'checkpoint')}" if others else ""
        yield 2, labelled("verdicts", (", ".join(said) + tail, "dim"))


def _columns(sort: str, width: int) -> tuple[TableColumn, ...]:
    def head(name: str, *sorts: str) -> str:
        return f"{name}↓" if sort in sorts else name

    return (
        TableColumn(head("when", "time"), 8 if width >= SHORT_TIME else 5, "left"),
        TableColumn("what", 24 if width >= _MEANWHILE else 0, "left"),
        TableColumn("by", 8, "left", needs=72),
        TableColumn("why", 14, "left", needs=116),
        TableColumn("before", 6, needs=56),
        TableColumn("after", 6, needs=78),
        TableColumn("+10min", 6, needs=94),
        TableColumn(head("freed", "bytes freed", "share freed"), FREED_CELLS),
        TableColumn(head("then", "how long it held"), THEN_CELLS, "left", needs=50),
        TableColumn(head("took", "duration"), 5, needs=66),
        TableColumn("paused", 6, needs=124),
        TableColumn("next 3", 9, needs=134),
        TableColumn("agent says", 10, needs=104),
        TableColumn("meanwhile", 0, "left", needs=_MEANWHILE),
    )


def _cells(one: Intervention, *, seconds: bool) -> tuple[Cell, ...]:
    says = amount_text(one.claimed, one.unit)
    return (
        *deed_cells(one, seconds=seconds),
        Cell(short_text(one.pause_s) if (one.pause_s or 0) >= _PAUSE_S else "", "dim"),
        Cell(_around(one.experiments), "dim"),
        Cell(f"≠ {says}" if one.differs else says, "warn" if one.differs else "dim"),
        Cell(", ".join(inert(text, 60) for text in one.confounders), "dim"),
    )


def _around(around: ExperimentsAround | None) -> str:
    """Return how the next experiments differ: their median duration, and how many ended well."""
    if around is None or around.before_s is None or around.after_s is None or not around.before_s:
        return ""
    times = around.after_s / around.before_s
    change = f"{times * 100 - 100:+.0f}%" if times < 10 else f"×{count_text(round(times))}"
    return f"{change} {around.after_ok}/{around.after}"


# -- evidence --------------------------------------------------------------------------------------


def intervention_facts(one: Intervention, snapshot: Snapshot) -> list[Fact]:
    """Return all that was measured around one intervention, and what else may explain it."""
    who = inert(one.by, 40) or who_words(one)
    how = f", {inert(one.how, 20)}" if one.how else ""
    facts: list[Fact] = [
        ("what", f"{what_words(one)}{how} (id {inert(one.id, 80)})"),
        ("asked", f"{moment_text(one.asked_at_us, snapshot.t_us, seconds=True)} by {who}"),
        ("why", inert(one.why, 200)),
        ("plan", inert(one.plan, 80)),
        ("took", took_text(one)),
        (
            "paused",
            "" if one.pause_s is None else f"no experiment began for {duration_text(one.pause_s)}",
        ),
        ("verdict", verdict_words(one)),
    ]
    facts += [(inert(it.resource.rpartition(":")[2], 12), effect_words(it)) for it in one.effects]
    parts = "steps say" if one.op == "plan" else "of it"
    facts += [(parts if not index else "", _stage(it)) for index, it in enumerate(one.stages)]
    if one.experiments is not None:
        facts.append(("experiments", _experiments(one.experiments)))
    facts += [
        ("meanwhile" if not i else "", inert(it, 200)) for i, it in enumerate(one.confounders)
    ]
    if one.claimed is not None:
        says = f"{amount_text(one.claimed, one.unit)}, by its own account"
        facts.append(("agent says", f"{says}: not what we measured" if one.differs else says))
    facts.append(("measured", "before: median of the 30 s before (where it rose or fell all the"
                              " time, what it had come to); after: 10 s and 10 min later, by the"
                              " guard"))  # fmt: skip
    return [fact for fact in facts if fact[1]]


def verdict_words(one: Intervention) -> str:
    """Return the verdict as a sentence; it is that of the first resource."""
    if one.overlaps:
        return "another one lies within what was measured: nothing is said of it"
    if one.is_checkpoint:
        whole = "complete: it is there to be loaded, and frees nothing"
        return whole if succeeded(one) else "not complete"
    said = {
        "pending": "being measured",
        "effective": "effective",
        "none": "no effect: what changed is within 2 %, or within the noise of the time before",
        "worse": "worse: usage rose",
        "unmeasured": "nobody measured it at the time",
    }
    return said[one.verdict]


def _stage(stage: Stage) -> str:
    freed = "" if stage.freed_bytes is None else f" {bytes_text(stage.freed_bytes)}"
    took = "" if stage.duration_s is None else f" in {duration_text(stage.duration_s)}"
    return f"{inert(stage.name, 30)}{freed}{took}" + (
        f": {inert(stage.error, 100)}" if stage.error else ""
    )


def _experiments(around: ExperimentsAround) -> str:
    def side(count: int, median_s: float | None, well: int) -> str:
        median = "" if median_s is None else f", median {duration_text(median_s)}"
        return f"{counted(count, 'experiment')}{median}, {well} ended well"

    before = side(around.before, around.before_s, around.before_ok)
    return f"before: {before}; after: {side(around.after, around.after_s, around.after_ok)}"
