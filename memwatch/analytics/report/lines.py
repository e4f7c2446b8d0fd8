"""The ten lines that tell a night: plainly, and each with its figures."""

from __future__ import annotations

from memwatch.analytics.report.agent_fold import DIED
from memwatch.analytics.report.model import DeedRow, Line, Report, Start, Stay
from memwatch.domain.recovery import Span
from memwatch.domain.units import bytes_text, duration_text, local_time_text, share_text

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
        Line("Checkpoints", _checkpoints(report)),
        Line("If it crashed", _recovery(report)),
        Line("Lost", _lost(report)),
        Line("To do", _to_do(report)),
    )


def counted(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun.

    >>> counted(1, "plan"), counted(3, "loss", "losses")
    ('1 plan', '3 losses')
    """
    return f"{count} {one if count == 1 else many or one + 's'}"


def when_text(t_us: int, report: Report) -> str:
    """Return a wall time: with its day where the report spans more than one."""
    first, last = (local_time_text(t, "%d %b") for t in (report.span.from_us, report.span.until_us))
    short = report.span.seconds < 1800
    return local_time_text(
        t_us, ("" if first == last else "%d %b ") + ("%H:%M:%S" if short else "%H:%M")
    )


def span_text(span: Span) -> str:
    """Return a duration as a range.

    >>> span_text(Span(low=18, likely=21, high=26))
    '21s (18s–26s)'
    """
    low, likely, high = map(duration_text, (span.low, span.likely, span.high))
    return f"{likely} ({low}–{high})"


def _run(report: Report) -> str:
    span = report.span
    day = local_time_text(span.from_us, "%d %b %Y")
    text = f"{report.run}" + (f" ({report.agent} on {report.host})" if report.agent else "")
    state = {"gone": "its directory is gone"}.get(report.state, report.state.replace("_", "-"))
    if report.state == "ended" and report.end:
        state += f" ({report.end})"
    text += f": {state}; told of {duration_text(span.seconds)} from {day}, "
    text += f"{when_text(span.from_us, report)}, to {when_text(span.until_us, report)}"
    if span.begun_us:
        text += f" (it began at {when_text(span.begun_us, report)})"
    return f"{text}. {_watched(report)}"


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
    text += f"{bytes_text(memory.last)} at the end"
    if memory.per_min is not None:
        grew = "grew" if memory.per_min >= 0 else "fell"
        text += f"; over all it {grew} by {bytes_text(abs(memory.per_min))} a minute"
    unaccounted = next((one for one in report.resources if one.name == "unaccounted"), None)
    if unaccounted is not None and unaccounted.peak and unaccounted.peak > memory.peak / 2:
        text += f"; at most {bytes_text(unaccounted.peak)} of it lay outside of all tiers"
    return f"{text}."


def _levels(report: Report) -> str:
    if not report.span.watched_s:
        return "Not known: no guard watched."
    high = [stay for stay in report.levels if stay.name != "normal"]
    if not high:
        return "Never over warn."
    told = ", ".join(f"{stay.name} {duration_text(stay.seconds)} ({_times(stay)})" for stay in high)
    never = [
        name for name in ("hard", "emergency", "intervene") if all(s.name != name for s in high)
    ]
    text = told + (f"; never {_or(never[::-1])}" if never else "")
    return f"{text[0].upper()}{text[1:]}."


def _or(names: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _times(stay: Stay) -> str:
    return "once" if stay.times == 1 else f"{stay.times} times"


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
    return f"{text}." + (f" People asked {counted(people, 'time')}." if people else "")


def _helped(report: Report) -> str:
    measured = [row for row in report.deeds if row.effective + row.without_effect + row.worse]
    if not measured:
        return f"{_by_plans(report)}.{_claimed(report)}"
    least = _WORTH_A_WORD * (report.memory.peak or 0.0) if report.memory else 0.0
    best = [row for row in measured if (row.freed_bytes or 0) > least and row.effective][:_FEW]
    vain = [row for row in measured if not row.effective and _meant_to_free(row)][:_FEW]
    plans = max((row.freed_bytes or 0.0 for row in report.plans), default=0.0)
    by_steps = best and sum(row.freed_bytes or 0.0 for row in best) >= plans
    text = "Freed most: " + "; ".join(map(_deed, best)) if by_steps else _by_plans(report)
    if vain:
        text += ". Without effect: " + ", ".join(
            f"{row.what} {counted(row.without_effect + row.worse, 'time')}" for row in vain
        )
    return f"{text}."


def _by_plans(report: Report) -> str:
    """Return what plans did, where nothing was measured of their single steps."""
    best = max(report.plans, key=lambda row: row.freed_bytes or 0.0, default=None)
    if best is None or not best.freed_bytes or best.freed_bytes <= 0:
        return "Nothing that was measured freed memory"
    plans = counted(best.plans, "plan")
    freed = bytes_text(best.freed_bytes)
    return f"{plans} of {best.rule} freed {freed} in all; no single step was seen to free as much"


def _meant_to_free(row: DeedRow) -> bool:
    """Whether somebody did it for memory: not the agent's own upkeep, nor a checkpoint."""
    if row.by == "agent":
        return False
    return "checkpoint" not in row.what and row.what not in ("resume", "read-write")


def _deed(row: DeedRow) -> str:
    text = f"{row.what} {bytes_text(row.freed_bytes)} in {counted(row.times, 'time')}"
    if row.back_s is not None:
        return f"{text}, back after {duration_text(row.back_s)}"
    return f"{text}, held" if row.held else text


def _claimed(report: Report) -> str:
    own = sum(row.freed_bytes for row in report.claims)
    times = sum(row.times for row in report.claims)
    if not times:
        return ""
    return f" The agent says that {counted(times, 'purge')} of its tiers freed {bytes_text(own)}."


def _checkpoints(report: Report) -> str:
    saved = report.checkpoints
    stats = saved.stats
    if not saved.counted:
        return "None was complete." + (f" {saved.failed} failed." if saved.failed else "")
    kinds = ", ".join(f"{number} {kind}" for kind, number in saved.by_kind.items())
    listed = sum(saved.by_kind.values())
    text = f"{saved.counted} complete"
    text += f" ({kinds})" if listed == saved.counted else f"; in the log {kinds}"
    text += f"; {saved.failed} failed" if saved.failed else "; none failed"
    if stats.duration_p95_s is not None:
        text += f"; p95 {duration_text(stats.duration_p95_s)}"
    if stats.full_bytes_p50 is not None:
        text += f", a full one {bytes_text(stats.full_bytes_p50)}"
    if saved.bloat.verdict in ("bloat", "watching"):
        word = "bloat" if saved.bloat.verdict == "bloat" else "bloat, perhaps"
        return f"{text}; {word}: {saved.bloat.why}."
    return f"{text}; no bloat." if saved.bloat.verdict == "stable" else f"{text}."


def _recovery(report: Report) -> str:
    rto = report.rto_s
    over = report.state in ("ended", "crashed", "killed")
    if rto is None:
        text = "No estimate: no checkpoint that a recovery could start from was seen"
    else:
        back = span_text(rto)
        grade = f", {report.grade}" if report.grade else ""
        text = f"Back in {back}{grade}, {'from where it ended' if over else 'as of now'}"
    worst = max(report.estimates, key=lambda one: one.rto_s.likely, default=None)
    if worst is not None and rto is not None and worst.rto_s.likely > 1.2 * rto.likely:
        text += (
            f"; at worst {duration_text(worst.rto_s.likely)}, at {when_text(worst.t_us, report)}"
        )
    errors = [one.error_share for one in report.recoveries if one.error_share is not None]
    if errors:
        low, high = (f"{error * 100:+.0f} %" for error in (min(errors), max(errors)))
        span = low if len(errors) == 1 else f"{low} … {high}"
        text += f"; {counted(len(errors), 'recovery', 'recoveries')}: {span} against the estimate"
    elif report.source == "native":
        text += "; never tried (memwatch drill)"
    return f"{text}."


def _lost(report: Report) -> str:
    deaths = [one for one in report.starts if one.what.startswith(DIED)]
    again = [one for one in report.starts if one not in deaths]
    text = ""
    if deaths:
        redo_s = sum(one.redo_s or 0.0 for one in deaths)
        text = f"The process died {_count_times(len(deaths))} ({_deaths(report)})"
        text += f": {duration_text(redo_s)} of unfinished experiments to do again" if redo_s else ""
        text += f"; {_cost(report, deaths)}"
    elif report.span.agent_s:
        text = "Nothing: no death of its process was seen"
    else:
        text = "Not known: there is no log"
    if again:
        text += f"; it was stopped and started again {_count_times(len(again))}"
    damage = {
        kind: number for kind, number in report.damage.items() if kind not in ("torn", "pruned")
    }
    if damage:
        text += "; damage in the log: " + ", ".join(f"{n} {kind}" for kind, n in damage.items())
    unseen_s = sum(max(gap.until_us - gap.from_us, 0) for gap in report.gaps) / 1e6
    if unseen_s:
        text += f"; nobody watched for {duration_text(unseen_s)}"
    return f"{text}."


def _cost(report: Report, deaths: list[Start]) -> str:
    """Return what deaths cost, as far as somebody wrote it down."""
    back = [one for one in report.recoveries if one.kind == "restart"]
    losses = sum(len(one.lost) for one in deaths)
    if losses or any(one.lossy for one in back):
        return f"{counted(losses, 'entry', 'entries')} lost" if losses else "something was lost"
    told = sum(bool(one.recovered) for one in deaths)
    if max(told, len(back)) < sum("not started" not in one.what for one in deaths):
        return "what was lost is not in the log any more"
    slowest_s = max((one.total_s for one in back), default=None)
    took = "" if slowest_s is None else f", back within {duration_text(slowest_s)}"
    return f"no record lost{took}"


def _deaths(report: Report) -> str:
    deaths = [one for one in report.starts if one.what.startswith(DIED)]
    told = [when_text(one.t_us, report) for one in deaths[:_FEW]]
    return ", ".join(told) + (", …" if len(deaths) > _FEW else "")


def _count_times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


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
