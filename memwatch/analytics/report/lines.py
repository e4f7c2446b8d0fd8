"""The ten lines that tell a night: plainly, and each with its figures."""

from __future__ import annotations

from memwatch.analytics.report.lines_recovery import checkpoints_line, lost_line, recovery_line
from memwatch.analytics.report.model import DeedRow, Figures, Line, PlanRow, Report
from memwatch.analytics.report.words import when_text
from memwatch.domain.units import (
    bytes_text,
    counted,
    duration_text,
    local_time_text,
    share_text,
    times_text,
)

_HELD_WORDS = {"paused": "paused", "read_only": "read-only", "draining": "waiting to pause"}
_MODES = {
    "act": "it was allowed to act",
    "ask": "it asked before it acted",
    "shadow": "it only tried dry what it would have done",
    "observe": "it only observed",
    "off": "its engine was off",
}
_FEW = 3
_WORTH_A_WORD = 0.02
"""Of the peak: what freed less in all helped nobody."""


def ten_lines(report: Report) -> tuple[Line, ...]:
    """Return the ten lines of a report whose tables are complete."""
    return (
        Line("Run", _run(report)),
        Line("Work", _work(report)),
        Line("Memory", _memory(report)),
        Line("Levels", _levels(report)),
        Line("Guard", _guard(report)),
        Line("What helped", _helped(report)),
        Line("Checkpoints", checkpoints_line(report)),
        Line("If it crashed", recovery_line(report)),
        Line("Lost", lost_line(report)),
        Line("To do", _to_do(report)),
    )


def _run(report: Report) -> str:
    span = report.span
    day = local_time_text(span.from_us, "%d %b %Y")
    text = f"{report.run}" + _who(report)
    state = {"gone": "its directory is gone"}.get(report.state, report.state.replace("_", "-"))
    if report.state == "ended" and report.end:
        state += f" ({report.end})"
    text += f": {state}; told of {duration_text(span.seconds)} from {day}, "
    text += f"{when_text(span.from_us, report)}, to {when_text(span.until_us, report)}"
    if span.begun_us:
        text += f" (it began at {when_text(span.begun_us, report)})"
    return f"{text}. {_watched(report)}"


def _who(report: Report) -> str:
    where = f" on {report.host}" if report.host else ""
    return f" ({report.agent}{where})" if report.agent else ""


def _watched(report: Report) -> str:
    span = report.span
    if not span.watched_s:
        return "No guard watched it."
    mode = max(report.modes, key=lambda stay: stay.seconds, default=None)
    may = _MODES.get(mode.name, "") if mode else ""
    missed_s = span.seconds - span.watched_s
    share = "all of it" if missed_s < max(0.01 * span.seconds, 5) else ""
    share = share or f"{duration_text(span.watched_s)} of it"
    return f"The guard watched {share}" + (f", and {may}." if may else ".")


def _work(report: Report) -> str:
    work = report.experiments
    total = sum(work.by_status.values())
    if not total:
        return (
            "The store tells nothing of experiments."
            if report.source != "native"
            else "No experiment ended in this time."
        )
    kinds = ", ".join(f"{number} {status}" for status, number in work.by_status.items())
    text = f"{counted(total, 'experiment')} ended ({kinds})"
    if work.per_hour is not None and report.span.seconds >= 60:
        pace = work.per_hour
        text += f", {pace:.0f} an hour" if pace >= 10 else f", {pace:.2g} an hour"
    return text + (f"; best {work.best}." if work.best else ".")


def _memory(report: Report) -> str:
    memory = report.memory
    if memory is None or memory.peak is None:
        return "Nobody measured the memory of its process."
    whose = "" if memory.name == "memory" else " by the agent's own account"
    peak = bytes_text(memory.peak)
    if memory.limit:
        peak += f", {share_text(memory.peak / memory.limit)} of {bytes_text(memory.limit)}"
        peak += f" ({memory.limit_name})" if memory.limit_name else ""
    text = f"At most {peak}{whose}, at {when_text(memory.peak_us, report)}; "
    text += f"{bytes_text(memory.first)} at first, {bytes_text(memory.last)} at the end"
    if (per_min := _steady(memory, report.span.watched_s or report.span.seconds)) is not None:
        text += (
            f", {'growing' if per_min >= 0 else 'falling'} by {bytes_text(abs(per_min))} a minute"
        )
    unaccounted = next((one for one in report.resources if one.name == "unaccounted"), None)
    if unaccounted is not None and unaccounted.peak and unaccounted.peak > memory.peak / 2:
        text += f"; at most {bytes_text(unaccounted.peak)} of it lay outside of all tiers"
    return f"{text}."


def _steady(memory: Figures, seconds: float) -> float | None:
    """Return the growth a minute where first and last differ by as much; else it was no course."""
    if memory.per_min is None or memory.first is None or memory.last is None:
        return None
    trend, change = memory.per_min * seconds / 60, memory.last - memory.first
    if abs(change) < _WORTH_A_WORD * memory.first:
        return None
    return memory.per_min if abs(trend - change) <= max(abs(trend), abs(change)) / 2 else None


def _levels(report: Report) -> str:
    if not report.span.watched_s:
        return "Not known: no guard watched."
    high = [stay for stay in report.levels if stay.name != "normal"]
    if not high:
        return "Normal all the time."
    told = ", ".join(
        f"{stay.name} {duration_text(stay.seconds)} ({times_text(stay.times)})" for stay in high
    )
    never = [
        name for name in ("hard", "emergency", "intervene") if all(s.name != name for s in high)
    ]
    text = told + (f"; never {_or(never[::-1])}" if never else "")
    return f"{text[0].upper()}{text[1:]}."


def _or(names: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _guard(report: Report) -> str:
    if not report.span.watched_s:
        return "Did nothing: there was none."
    plans = sum(row.plans for row in report.plans)
    dry = sum(row.dry for row in report.plans)
    if not plans:
        text = "Made no plan: nothing called for one"
    elif dry == plans:
        text = f"Would have made {counted(plans, 'plan')}, and sent none (shadow)"
    else:
        parts = [
            f"{number} {words}"
            for number, words in (
                (sum(row.effective for row in report.plans), "helped"),
                (sum(row.without_effect for row in report.plans), "had no effect"),
                (sum(row.worse for row in report.plans), "followed by more"),
                (sum(row.only_saved for row in report.plans), "only saved the state"),
                (sum(row.not_measured for row in report.plans), "not measured"),
            )
            if number
        ]
        text = f"Made {counted(plans, 'plan')}: {', '.join(parts)}"
    held = [stay for stay in report.holds if stay.name in _HELD_WORDS]
    if held:
        words = ", ".join(
            f"{_HELD_WORDS[stay.name]} for {duration_text(stay.seconds)} in all" for stay in held
        )
        text += f". The agent was {words}"
    people = sum(n for what, n in report.requests.items() if not what.startswith("guard mode"))
    return f"{text}." + (f" People asked {times_text(people)}." if people else "")


def _helped(report: Report) -> str:
    if report.source != "native":
        return "Nothing is done to a store: it takes no commands."
    measured = [row for row in report.deeds if row.effective + row.without_effect + row.worse]
    if not measured:
        return f"{_by_plans(report)}.{_claimed(report)}"
    least = _WORTH_A_WORD * (report.memory.peak or 0.0) if report.memory else 0.0
    best = [row for row in measured if (row.freed_bytes or 0) > least and row.effective][:_FEW]
    vain = [row for row in measured if not row.effective and _meant_to_free(row)][:_FEW]
    text = "Freed most: " + "; ".join(map(_deed, best)) if best else _by_plans(report)
    if vain:
        text += ". Without effect: " + ", ".join(
            f"{row.what} {times_text(row.without_effect + row.worse)}" for row in vain
        )
    return f"{text}."


def _by_plans(report: Report) -> str:
    """Return what plans did, where nothing was measured of their single steps."""
    best = max(report.plans, key=lambda row: row.freed_bytes or 0.0, default=None)
    if best is None or not best.freed_bytes or best.freed_bytes <= 0:
        return "Nothing that was measured freed memory"
    freed = bytes_text(best.freed_bytes)
    return f"{_plans(best)} freed {freed} in all, as the engine saw it right after each"


def _plans(row: PlanRow) -> str:
    """Return plans by what called for them: "9 escalations of warn"."""
    escalated = row.rule.endswith(".escalate")
    return f"{counted(row.plans, 'escalation' if escalated else 'plan')} of {row.level}"


def _meant_to_free(row: DeedRow) -> bool:
    """Whether somebody did it for memory: not the agent's own upkeep, nor a checkpoint."""
    if row.by == "agent":
        return False
    return "checkpoint" not in row.what and row.what not in ("resume", "read-write")


def _deed(row: DeedRow) -> str:
    unknown = f", {row.not_measured} not measured" if row.not_measured else ""
    text = f"{row.what} {bytes_text(row.freed_bytes)} ({times_text(row.times)}{unknown})"
    if row.back_s is not None:
        return f"{text}, back after {duration_text(row.back_s)}"
    return f"{text}, held" if row.held else text


def _claimed(report: Report) -> str:
    own = sum(row.freed_bytes for row in report.claims)
    times = sum(row.times for row in report.claims)
    if not times:
        return ""
    return f" The agent says that {counted(times, 'purge')} of its tiers freed {bytes_text(own)}."


def _to_do(report: Report) -> str:
    standing = [
        one for one in report.alerts if one.stands and report.state not in ("ended", "gone")
    ]
    text = (
        f"{counted(report.alert_count, 'alert')} in this time" if report.alert_count else "No alert"
    )
    if standing:
        text += f", {len(standing)} of them still: {standing[-1].text}"
    elif report.alert_count:
        text += ", all over"
    if report.advice:
        first = report.advice[0]
        text += f". First: {first.text}" + (
            f" (set {first.set})" if first.set and len(first.set) < 60 else ""
        )
        return f"{text}."
    return f"{text}. Nothing to change by what was measured."
