"""If it crashed now: how long until it is back, what that rests on, and what would be lost (R12).

The words and verdicts are the snapshot's; here they are only placed. What there is no room for
goes by rank, so that the answer and what is wrong with it stay on any screen.
"""

from __future__ import annotations

from collections.abc import Iterator

from memwatch.domain.recovery import Recovery, RecoveryTerm, Span
from memwatch.domain.snapshot import PAST, Snapshot
from memwatch.domain.text import inert
from memwatch.domain.units import (
    NOTICED_S,
    brief_text,
    bytes_text,
    duration_text,
    rough_text,
    span_text,
)
from memwatch.ui.format import age_text, count_text
from memwatch.ui.frame import Frame
from memwatch.ui.line import Line, cut_line, width_of
from memwatch.ui.panels.chain import chain_lines, checkpoint_lines
from memwatch.ui.panels.table import Cell, Ranked, TableColumn, fitted, labelled, ranked, table

GRADE_STYLES = {"good": "ok", "watch": "watch", "poor": "warn"}
_COLUMNS = (
    TableColumn("term", 7, "left"),
    TableColumn("takes", 5),
    TableColumn("range", 11, needs=54),
    TableColumn("of", 14, "left"),
    TableColumn("rests on", 0, "left"),
)
_HOW = 60
"""From this width on a term says in words what it rests on."""


def recovery_heading(frame: Frame) -> str:
    """Return what the figures are about; a run that is over has crashed, or it will not."""
    return "if it is started again" if frame.past else "if it crashed now"


def recovery(frame: Frame, width: int, height: int) -> list[Line]:
    """Return the estimate with its terms, what would be lost, and what to mend, as there is room.

    The terms stand in a table where all else has room as well, else side by side.
    """
    snapshot = frame.snapshot
    if snapshot is None:
        return []
    wide = _ranked(snapshot, width, tabled=True)
    lines = wide if len(wide) <= height else _ranked(snapshot, width, tabled=False)
    return [cut_line(line, width) for line in fitted(lines, height)]


def _ranked(snapshot: Snapshot, width: int, *, tabled: bool) -> list[Ranked]:
    found = snapshot.recovery
    lines: list[Ranked] = [(0, line) for line in headline(snapshot, width)]
    lines += _wrong(found, width)
    if found.terms:
        terms = _table(found.terms, width) if tabled else _flow(found.terms, width)
        lines += [(4, line) for line in terms]
    else:
        lines += [(4, line) for line in chain_lines(snapshot)]
    lines += _lost(snapshot)
    lines += _memory(found)
    if found.plain_s is not None:
        lines.append((7, _plain(found)))
    lines += _drilled(snapshot)
    lines += checkpoint_lines(snapshot)
    return lines


def headline(snapshot: Snapshot, width: int) -> Iterator[Line]:
    """Say how long it takes and how good that is, and beside it how far that can be trusted."""
    found = snapshot.recovery
    span = found.rto_s or _of_load(found)
    if span is None:
        if not found.terms and found.full_bytes is None and snapshot.run.state not in PAST:
            yield [("not known yet: no start and no checkpoint was seen", "dim")]
        return
    native = snapshot.checkpoints.source == "native"
    line: Line = [
        ("back in " if native else "load alone ", ""),
        (brief_text(span.likely), "strong"),
    ]
    if span.high >= NOTICED_S:
        line.append((f" ({span_text(span.low, span.high)})", ""))
    if found.grade is not None:
        line += [("  ", ""), (found.grade, GRADE_STYLES[found.grade])]
    for text in (_allowed(found), _newest(snapshot) if native else "", inert(found.error, 60)):
        aside: Line = [(f"  {text}", "dim")]
        if text and width_of(line) + width_of(aside) <= width:
            line += aside
    yield line


def _of_load(found: Recovery) -> Span | None:
    """Return how long a load takes, where nothing else is known of a recovery."""
    spans = (Span(low=it.low_s, likely=it.seconds, high=it.high_s) for it in found.terms)
    return next(spans, None) if [it.name for it in found.terms] == ["load"] else None


def _allowed(found: Recovery) -> str:
    budget = found.budget
    held = budget.recover_s is not None and not budget.over
    return f"within {duration_text(budget.recover_s)}" if held else ""


def _newest(snapshot: Snapshot) -> str:
    """Return how long ago a recovery was last done, for practice or in earnest."""
    if not snapshot.recovery.past:
        return "not drilled"
    past = snapshot.recovery.past[0]
    return f"{past.kind} {rough_text((snapshot.t_us - past.t_us) / 1e6)} ago"


def _wrong(found: Recovery, width: int) -> Iterator[Ranked]:
    budget = found.budget
    key = {"incremental": "C", "full": "F"}.get(budget.checkpoint or "")
    for said in budget.over:
        line: Line = [("OVER BUDGET ", "warn"), (inert(said, 160), "")]
        if key and said not in budget.beyond:
            line += [("  ", ""), (key, "key"), (f" {budget.checkpoint} checkpoint", "dim")]
        elif said in budget.beyond:
            line.append(("  no checkpoint brings it under", "dim"))
        yield from ranked(1, line, width, len("OVER BUDGET "))
    if found.fix:
        line = labelled(
            "fix" if found.grade else "note",
            (inert(found.fix, 200), "watch" if found.grade else "dim"),
        )
        yield from ranked(3, line, width)


# -- the terms -------------------------------------------------------------------------------------


def _table(terms: tuple[RecoveryTerm, ...], width: int) -> list[Line]:
    return table(_COLUMNS, [_cells(term, width) for term in terms], width)


def _cells(term: RecoveryTerm, width: int) -> list[Cell]:
    rests: str = term.basis
    if term.age_s is not None:
        rests += f" {rough_text(term.age_s)}" + (" ago" if width >= _HOW else "")
    how = inert(term.how, 100) if width >= _HOW else ""
    if how.startswith(term.basis):
        rests = how
    elif how:
        rests += f": {how}"
    return [
        Cell(term.name, "dim"),
        Cell(brief_text(term.seconds), "strong"),
        Cell(span_text(term.low_s, term.high_s), "dim"),
        Cell(_amount(term)),
        Cell(rests, "watch" if term.basis == "assumed" else "dim"),
    ]


def _amount(term: RecoveryTerm) -> str:
    parts = [bytes_text(term.bytes)] if term.bytes is not None else []
    if term.records is not None:
        parts.append(f"{count_text(term.records)} rec.")
    return ", ".join(parts)


def _flow(terms: tuple[RecoveryTerm, ...], width: int) -> list[Line]:
    """Return the terms side by side as a sum; what is only assumed has a tilde."""
    lines: list[Line] = [[]]
    for index, term in enumerate(terms):
        about = "~" if term.basis == "assumed" and term.seconds >= NOTICED_S else ""
        piece: Line = [
            (f"{'+ ' if index else ''}{term.name} ", "dim"),
            (about + brief_text(term.seconds), "strong"),
            (f" {bytes_text(term.bytes)}" if term.bytes else "", "dim"),
        ]
        if lines[-1] and width_of([*lines[-1], *piece]) >= width:
            lines.append(piece)
        else:
            lines[-1] += [(" ", ""), *piece] if lines[-1] else piece
    return lines


# -- what it costs besides -------------------------------------------------------------------------


def _lost(snapshot: Snapshot) -> Iterator[Ranked]:
    """Return what is done again in any case, and what only the log holds."""
    found, over = snapshot.recovery, snapshot.run.state in PAST
    label = "lost" if over else "lose"
    if found.redo_s is None and found.at_risk_s is None:
        yield 3, labelled(label, ("not known yet", "dim"))
        return
    native = snapshot.checkpoints.source == "native"
    if found.redo_s is not None:
        number = snapshot.run.experiment
        what = "of work" if number is None else f"of experiment {number}"
        what = what if native else "all since the newest complete checkpoint"
        redone = (f"{age_text(found.redo_s):>5}", "strong")
        yield (
            3,
            labelled(label, redone, (f"  {what}, redone", "") if native else (f"  {what}", "")),
        )
    if found.at_risk_s is not None and native:
        count = found.at_risk_experiments
        age = (f"{age_text(found.at_risk_s):>5}", "strong")
        yield 5, labelled("at risk", age, (f"  in the log only, {count} exp.", ""))


def _memory(found: Recovery) -> Iterator[Ranked]:
    if found.memory_bytes is None:
        return
    fits = {True: ("  fits", "ok"), False: ("  DOES NOT FIT", "crit"), None: ("", "")}
    how = f": {inert(found.memory_how, 120)}" if found.memory_how else ""
    size = (f"{bytes_text(found.memory_bytes):>5}", "strong")
    rank = 2 if found.memory_fits is False else 6
    yield rank, labelled("memory", size, fits[found.memory_fits], (how, "dim"))


def _plain(found: Recovery) -> Line:
    took = (f"{duration_text(found.plain_s):>5}", "strong")
    return labelled("formula", took, (f"  = {inert(found.plain, 160)}", "dim"))


def _drilled(snapshot: Snapshot) -> Iterator[Ranked]:
    """Return what a recovery for practice took; nothing before the first."""
    drill = snapshot.recovery.drill
    if drill is None:
        return
    came = "cold" if drill.cold_cache else "warm"
    age = rough_text((snapshot.t_us - drill.t_us) / 1e6)
    bad = drill.matches is False or drill.lossy
    if drill.matches is False:
        proved = ("HASH DIFFERS", "warn")
    elif drill.lossy:
        proved = ("SOME LOST", "warn")
    else:
        proved = ("hash matches" if drill.matches else "no hash yet", "")
    took = (f"{duration_text(drill.total_s):>5}", "strong")
    yield 1 if bad else 8, labelled("drilled", took, (f"  {came}, {age} ago, ", ""), proved)
