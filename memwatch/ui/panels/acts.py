"""What is done about memory: plan, holds and requests; purges and checkpoints, before and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memwatch.domain.command import FINAL_STATES, CommandInfo
from memwatch.domain.intervention import Intervention
from memwatch.domain.plan import Plan
from memwatch.domain.snapshot import Snapshot
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text, duration_text
from memwatch.domain.wording import op_text
from memwatch.ui.format import age_text
from memwatch.ui.frame import Frame
from memwatch.ui.line import Line, cut_line
from memwatch.ui.panels.effect import FREED_CELLS, THEN_CELLS, deed_cells
from memwatch.ui.panels.table import TableColumn, table
from memwatch.ui.words import hold_words, plan_words

RECENT_US = 10_000_000
"""How long a settled request stays in sight."""

TITLE = "interventions ─ 30s before, 10s after"

_SHORT_TIME = 84
"""Below this width the seconds of the time give way."""
_COLUMNS = (
    TableColumn("when", 8, "left", needs=_SHORT_TIME),
    TableColumn("what", 0, "left"),
    TableColumn("by", 8, "left", needs=60),
    TableColumn("why", 12, "left", needs=100),
    TableColumn("before", 6),
    TableColumn("after", 6, needs=78),
    TableColumn("+10min", 6, needs=92),
    TableColumn("freed", FREED_CELLS),
    TableColumn("then", THEN_CELLS, "left", needs=62),
    TableColumn("took", 5),
)
_NARROW = (
    TableColumn("when", 5, "left"),
    _COLUMNS[1],
    TableColumn("by", 6, "left", needs=60),
    *_COLUMNS[3:],
)
_PLAN_TOLD_US = 600_000_000
"""So long a plan that is over is told, while nothing else is."""

_REACHED = {
    "pause": "in force",
    "resume": "released",
    "read_only": "in force",
    "read_write": "released",
    "abort_experiment": "aborted",
    "end_run": "ended",
}
"""What the agent says, in the words of what it was asked for."""
_STATE_STYLES = {
    "done": "ok",
    "refused": "warn",
    "failed": "crit",
    "expired": "warn",
    "unknown": "warn",
}


def acts(frame: Frame, width: int, height: int) -> list[Line]:
    """Return plan, holds and requests in flight, then series of purges, then all else.

    The newest is last; what is in flight leaves the table half of the room.
    """
    snapshot = frame.snapshot
    if snapshot is None:
        return []
    flight = [*_guard_lines(snapshot), *(command_line(o, snapshot.t_us) for o in recent(snapshot))]
    most = height if not snapshot.interventions else max(height // 2, 1)
    lines = [cut_line(line, width) for line in flight[:most]]
    if not snapshot.interventions:
        return [*lines, [(nothing_done(snapshot), "dim")]][:height]
    shown = chosen(snapshot.interventions, max(height - len(lines) - 1, 1))
    wide = width >= _SHORT_TIME
    rows = [deed_cells(one, seconds=wide) for one in shown]
    return (lines + table(_COLUMNS if wide else _NARROW, rows, width))[:height]


def nothing_done(snapshot: Snapshot) -> str:
    """Say that nothing was done, and why where nothing can be."""
    if snapshot.checkpoints.source != "native":
        return "a checkpoint store takes no commands: nothing is done here"
    return "no purge and no checkpoint recorded yet"


def chosen(found: Sequence[Intervention], room: int) -> list[Intervention]:
    """Return what fits: of each kind the newest measured one first.

    So no kind crowds another out, and none scrolls off before it says what it did. Series stand
    above, for they stay; below them time runs downwards.
    """
    kinds: dict[tuple[object, ...], int] = {}
    ranked: list[tuple[int, int, Intervention]] = []
    for one in sorted(found, key=lambda one: (one.after_10s is None, -one.asked_at_us)):
        kind = (one.action, one.tier, one.why, one.count > 1)
        kinds[kind] = rank = kinds.get(kind, -1) + 1
        ranked.append((rank, -one.asked_at_us, one))
    ranked.sort(key=lambda entry: entry[:2])
    shown = [one for _, _, one in ranked[:room]]
    return sorted(shown, key=lambda one: (one.count == 1, one.asked_at_us))


def _guard_lines(snapshot: Snapshot) -> Iterator[Line]:
    """Return the plan in flight or why there is none, and what holds the agent."""
    engine = snapshot.engine
    if engine.plan is not None:
        yield [(plan_words(engine.plan), "strong"), (f"  {inert(engine.plan.why, 200)}", "dim")]
    elif engine.waiting:
        yield [("guard waits: ", "dim"), (inert(engine.waiting, 200), "")]
    elif engine.last is not None and 0 <= snapshot.t_us - engine.last.made_us < _PLAN_TOLD_US:
        yield _over(engine.last, snapshot.t_us)
    for hold in snapshot.holds[:3]:
        words = hold_words(hold, snapshot.t_us)
        yield [(f"{op_text(hold.op)} ", "strong"), (words, "" if hold.effective else "watch")]


def _over(plan: Plan, now_us: int) -> Line:
    """Say what became of the plan before, step by step."""
    freed = "" if plan.freed_bytes is None else f", freed {bytes_text(plan.freed_bytes)}"
    steps = ", ".join(f"{op_text(step.op)} {step.state}" for step in plan.steps)
    ago = age_text((now_us - plan.made_us) / 1e6)
    return [(f"{plan_words(plan)}{freed}", ""), (f"  {ago} ago: {steps}", "dim")]


def recent(snapshot: Snapshot) -> list[CommandInfo]:
    """Return requests that are in flight or settled a moment ago, newest first, three at most.

    Steps of a plan are told with the plan, and what was only rehearsed with the question.
    """
    commands = (one for one in snapshot.commands if not one.plan and not one.dry_run)
    shown = [
        one
        for one in commands
        if one.state not in FINAL_STATES or snapshot.t_us - one.changed_us < RECENT_US
    ]
    shown.sort(key=lambda one: one.asked_us, reverse=True)
    return shown[:3]


def command_line(command: CommandInfo, now_us: int) -> Line:
    """Return how far a request came: "asked" is never shown as "done".

    The age of an open request counts from the asking, that of a settled one is what it took.
    """
    style = _STATE_STYLES.get(command.state, "watch")
    if command.state in FINAL_STATES:
        took_s = max(command.changed_us - command.asked_us, 0) / 1e6
        age = f" after {duration_text(took_s)}"
    else:
        age = f" {max(now_us - command.asked_us, 0) / 1e6:.0f}s"
    asked = inert(command.what, 60) or op_text(command.op)
    said: str = command.state
    if command.state == "done" and command.op in _REACHED:
        said = f"→ {_REACHED[command.op]} (agent)"
    line: Line = [(f"{asked} ", "strong"), (f"{said}{age}", style)]
    if command.origin != "operator" or command.by:
        line.append((f"  by {inert(command.by or command.origin, 24)}", "dim"))
    if command.detail:
        line.append((f"  {inert(command.detail, 120)}", "dim"))
    return line
