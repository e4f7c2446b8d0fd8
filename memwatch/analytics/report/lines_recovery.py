"""Three of the ten lines: checkpoints, what a crash would cost, what was lost."""

from __future__ import annotations

from memwatch.analytics.report.agent_fold import DIED
from memwatch.analytics.report.model import Report, Start
from memwatch.analytics.report.words import range_text, when_text
from memwatch.domain.units import bytes_text, change_text, counted, duration_text, times_text

_FEW = 3


def checkpoints_line(report: Report) -> str:
    """Return how many checkpoints there were, how they did, and whether they are bloated."""
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


def recovery_line(report: Report) -> str:
    """Return what a crash would cost at the end, at worst, and how sure that is."""
    if report.source != "native":
        return _of_store(report)
    rto = report.rto_s
    over = report.state in ("ended", "crashed", "killed")
    if rto is None:
        text = "No estimate: no checkpoint that a recovery could start from was seen"
    else:
        back = range_text(rto)
        grade = f", {report.grade}" if report.grade and not report.over_budget else ""
        text = f"Back in {back}{grade}, {'from where it ended' if over else 'as of now'}"
    text += "".join(f"; {over}" for over in report.over_budget)
    worst = max(report.estimates, key=lambda one: one.rto_s.likely, default=None)
    if worst is not None and rto is not None and worst.rto_s.likely > 1.2 * rto.likely:
        text += (
            f"; at worst {duration_text(worst.rto_s.likely)}, at {when_text(worst.t_us, report)}"
        )
    errors = [one.error_share for one in report.recoveries if one.error_share is not None]
    if errors:
        low, high = map(change_text, (min(errors), max(errors)))
        span = low if len(errors) == 1 else f"{low} … {high}"
        text += f"; {counted(len(errors), 'recovery', 'recoveries')}: {span} against the estimate"
    else:
        text += "; never tried (memwatch drill)"
    return f"{text}."


def _of_store(report: Report) -> str:
    """Say which checkpoint a foreign program would go on from: more its files do not tell."""
    complete = next((one for one in report.checkpoints.rows if one.state == "committed"), None)
    if complete is None:
        return "Its program would begin anew: no checkpoint there is complete."
    when = when_text(complete.committed_us or complete.began_us, report)
    text = f"Its program could go on from {complete.id} of {when} ({bytes_text(complete.bytes)})"
    newest = report.checkpoints.rows[0]
    if newest is not complete:
        state = "is being written" if newest.state == "begun" else f"is {newest.state}"
        text += f"; the newest, {newest.id}, {state}"
    return f"{text}. How long that takes is not known."


def lost_line(report: Report) -> str:
    """Return what deaths, damage and unwatched times cost, as far as somebody wrote it down."""
    deaths = [one for one in report.starts if one.what.startswith(DIED)]
    again = [one for one in report.starts if one not in deaths]
    text = ""
    if deaths:
        redo_s = sum(one.redo_s or 0.0 for one in deaths)
        text = f"The process died {times_text(len(deaths))} ({_deaths(report)})"
        text += f": {duration_text(redo_s)} of unfinished experiments to do again" if redo_s else ""
        text += f"; {_cost(report, deaths)}"
    elif report.span.agent_s:
        text = "Nothing: no death of its process was seen"
    else:
        text = "Not known: there is no log"
    if again:
        text += f"; it was stopped and started again {times_text(len(again))}"
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
    told, again = (
        sum(bool(one.recovered) for one in deaths),
        sum("not started" not in one.what for one in deaths),
    )
    if not again:
        return "it was not started again"
    if max(told, len(back)) < again:
        return "what was lost is not in the log any more"
    slowest_s = max((one.total_s for one in back), default=None)
    down_s = sum(one.down_s or 0.0 for one in deaths)
    down = f", down for {duration_text(down_s)}" if down_s else ""
    took = "" if slowest_s is None else f", each recovery within {duration_text(slowest_s)}"
    return f"no record lost{down}{took}"


def _deaths(report: Report) -> str:
    deaths = [one for one in report.starts if one.what.startswith(DIED)]
    told = [when_text(_died_us(one), report) for one in deaths[:_FEW]]
    return ", ".join(told) + (", …" if len(deaths) > _FEW else "")


def _died_us(one: Start) -> int:
    """Return when a process died: a start that the agent logged is of when it was there again."""
    again = one.what.endswith("started again") and one.down_s is not None
    return one.t_us - round((one.down_s or 0.0) * 1e6) if again else one.t_us
