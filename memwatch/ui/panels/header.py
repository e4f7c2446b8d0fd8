"""The top line: which run, in which state, and whether the guard acts."""

from __future__ import annotations

from memwatch.domain.snapshot import PAST, RunInfo, Snapshot
from memwatch.domain.text import inert
from memwatch.domain.units import counted, duration_text
from memwatch.ui.format import clock_text
from memwatch.ui.frame import Frame
from memwatch.ui.line import Line, cut, cut_line, joined, spread, width_of
from memwatch.ui.words import guard_words

_STATE_STYLES = {
    "running": "ok",
    "draining": "watch",
    "paused": "watch",
    "read_only": "watch",
    "aborting": "warn",
    "crashed": "crit",
    "killed": "crit",
    "silent": "warn",
}
_SHORT_REASON = 24
"""A shorter word on the guard keeps its reason; a longer one leaves half of the width to others."""
_SHORT_NAME = 8
"""Of a run's name so many characters are left at least, beside the word on its guard."""


def header(frame: Frame, width: int) -> Line:
    """Return the top line: run, host, state, experiment, uptime, guard and the snapshot's time.

    Where the width does not do, the least important parts go first, the name shrinks last.
    """
    snapshot = frame.snapshot
    if snapshot is None:
        return spread([(" memwatch ", "title"), (inert(frame.target), "")], [], width)
    run = snapshot.run
    state = (run.state.upper().replace("_", "-"), _STATE_STYLES.get(run.state, "strong"))
    experiment = "" if run.experiment is None else f"{run.experiment}"
    phase = inert(run.phase or "", 24)
    guard = _guard_word(frame, snapshot)
    if width_of([guard]) > max(width // 2, _SHORT_REASON):
        guard = guard[0].partition(" (")[0], guard[1]
    clock: Line = [(f"  {clock_text(snapshot.t_us)} ", "strong")]
    parts: list[tuple[int, Line]] = [  # importance, then what is said
        (2, [("memwatch", "title")]),
        (9, [(cut(inert(run.id), 40), "strong")]),
        (4, [(f"@ {cut(inert(run.host), 24)}", "")]),
        (3, [(f"pid {run.pid}", "dim")] if run.pid else []),
        (10, [state]),
        (9, [(trouble, "watch")] if (trouble := reading_trouble(snapshot)) else []),
        (7, [(f"exp {experiment}", "")] if experiment else []),
        (6, [(phase, "")] if phase else []),
        (5, [(_age_word(run), "dim")]),
        (9, [guard] if guard[0] else []),
    ]
    for least in range(2, 10):
        shown = [part for importance, part in parts if importance >= least and part]
        line: Line = [(" ", ""), *joined(shown, ("  ", ""))]
        if width_of(line) + width_of(clock) < width:
            return spread(line, clock, width)
    return _narrow(state, guard, inert(run.id), width)


def _narrow(state: tuple[str, str], guard: tuple[str, str], name: str, width: int) -> Line:
    """Return what fits where hardly anything does: the name is cut to what the others leave."""
    words, style = guard
    room = width - width_of([state]) - _SHORT_NAME - 2
    said = next(
        (it for it in (words, words.partition(" (")[0]) if width_of([(it, "")]) <= room), ""
    )
    parts: list[Line] = [[state], [(said, style)] if said else [], [(name, "strong")]]
    return cut_line(joined(parts, (" ", "")), width)


def reading_trouble(snapshot: Snapshot) -> str:
    """Return how the run is read where that is not as it should be, in two words each."""
    source, backfill = snapshot.source, snapshot.guard.backfill_share
    parts = [
        "polling" if source.watch == "polling" and snapshot.run.state not in PAST else "",
        f"{source.damaged} damaged" if source.damaged else "",
        counted(source.gaps, "gap") if source.gaps else "",
        "" if backfill is None else f"history {backfill * 100:.0f}%",
    ]
    return ", ".join(part for part in parts if part)


def _guard_word(frame: Frame, snapshot: Snapshot) -> tuple[str, str]:
    if frame.link.state == "lost":
        return "no guard", "alarm"
    if frame.silent:
        return "guard silent", "alarm"
    if frame.past:
        return "", ""
    words = guard_words(snapshot.engine, snapshot.guard.engine)
    return words, "watch" if words.startswith("WILL NOT") else "dim"


def _age_word(run: RunInfo) -> str:
    lasted = duration_text(run.uptime_s)
    return f"ran {lasted}" if run.state in PAST else f"up {lasted}"
