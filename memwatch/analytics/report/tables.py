"""The tables of a report."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from memwatch.analytics.report.escape import NONE, escaped, inline, table
from memwatch.analytics.report.model import DeedRow, Figures, Report
from memwatch.analytics.report.words import range_text, when_text
from memwatch.domain.checkpoint_words import kind_text, state_text
from memwatch.domain.text import inert
from memwatch.domain.units import (
    bytes_text,
    change_text,
    counted,
    duration_text,
    local_time_text,
    share_text,
)

_ROWS = 30
_LEAST_PAUSE_S = 0.1


def tables(report: Report) -> Iterator[Iterable[str]]:
    """Yield the lines of each table; of one that has no rows none."""
    yield _advice(report)
    yield _levels(report)
    yield _resources(report)
    yield _plans(report)
    yield _deeds(report)
    yield _claims(report)
    yield _checkpoints(report)
    yield _store(report)
    yield _recovery(report)
    yield _starts(report)
    yield _alerts(report)
    yield _rest(report)


def _advice(report: Report) -> Iterator[str]:
    """Yield advice as a list: a value to set is long, and is to be copied."""
    if report.advice:
        yield from ("", "## What to change", "")
    for one in report.advice:
        yield f"- **{one.kind}:** {inline(one.text)}"
        if one.set:
            command = f"memwatch policy set {shlex.quote(report.run)} {shlex.quote(one.set)}"
            yield f"  `{inert(command, 600).replace('`', chr(39))}`"


def _levels(report: Report) -> list[str]:
    total = report.span.watched_s
    rows = [
        (
            stay.name,
            duration_text(stay.seconds),
            _share(stay.seconds, total),
            str(stay.times) if stay.name != "normal" else NONE,
        )
        for stay in report.levels
    ]
    rows += [
        (
            f"agent {stay.name.replace('_', '-')}",
            duration_text(stay.seconds),
            _share(stay.seconds, report.span.seconds),
            str(stay.times),
        )
        for stay in report.holds
        if stay.name != "running"
    ]
    rows += [
        (
            f"engine {stay.name}",
            duration_text(stay.seconds),
            _share(stay.seconds, total),
            str(stay.times),
        )
        for stay in report.modes
    ]
    return table("Levels, holds and modes", ("state", "for", "of the time", "times"), rows)


def _share(part: float, whole: float) -> str:
    return share_text(part / whole) if whole else NONE


def _resources(report: Report) -> list[str]:
    known = ([report.memory] if report.memory else []) + list(report.resources)
    head = ("memory of", "first", "peak", "at", "last", "growth a minute")
    return table("Memory", head, [_figures(one, report) for one in known[:_ROWS]])


def _figures(one: Figures, report: Report) -> tuple[str, ...]:
    peak = bytes_text(one.peak)
    if one.limit and one.peak is not None:
        peak += f" ({share_text(one.peak / one.limit)})"
    return (
        escaped(one.name),
        bytes_text(one.first),
        peak,
        when_text(one.peak_us, report),
        bytes_text(one.last),
        bytes_text(one.per_min),
    )


def _plans(report: Report) -> list[str]:
    head = (
        "called for by",
        "level",
        "plans",
        "helped",
        "no effect",
        "worse",
        "only saved",
        "not measured",
        "freed right after",
        "steps that failed",
    )
    rows = [
        (
            escaped(row.rule),
            row.level,
            f"{row.plans}" + (f" ({row.dry} dry)" if row.dry else ""),
            *map(
                str,
                (row.effective, row.without_effect, row.worse, row.only_saved, row.not_measured),
            ),
            bytes_text(row.freed_bytes),
            str(row.failed_steps),
        )
        for row in report.plans[:_ROWS]
    ]
    return table("Plans of the engine", head, rows, len(report.plans) - _ROWS)


def _deeds(report: Report) -> list[str]:
    head = (
        "what",
        "by",
        "times",
        "verdicts",
        "freed in all",
        "median",
        "of what it held",
        "of the process",
        "took",
        "came back",
        "experiments before and after",
        "agent says",
    )
    rows = [_deed(row) for row in report.deeds[:_ROWS]]
    return table("Interventions by bytes really freed", head, rows, len(report.deeds) - _ROWS)


def _deed(row: DeedRow) -> tuple[str, ...]:
    words = (
        (row.effective, "effective"),
        (row.without_effect, "no effect"),
        (row.worse, "worse"),
        (row.not_measured, "not measured"),
    )
    back = f"{row.came_back}× after {duration_text(row.back_s)}" if row.came_back else ""
    held = f"{row.held}× held" if row.held else ""
    says = bytes_text(row.claimed_bytes) + (f", differs {row.differs}×" if row.differs else "")
    pause = f", paused {duration_text(row.pause_s)}" if row.pause_s >= _LEAST_PAUSE_S else ""
    return (
        escaped(row.what),
        escaped(row.by) or NONE,
        str(row.times),
        ", ".join(f"{number} {word}" for number, word in words if number) or NONE,
        bytes_text(row.freed_bytes),
        bytes_text(row.freed_median),
        share_text(row.freed_share),
        bytes_text(
            row.memory_median
            if row.memory_median is not None
            else row.freed_median
            if row.resource == "memory"
            else None
        ),
        duration_text(row.took_s) + pause,
        ", ".join(part for part in (back, held) if part) or NONE,
        _around(row),
        says,
    )


def _around(row: DeedRow) -> str:
    before_s, after_s = row.experiments_before_s, row.experiments_after_s
    if before_s is None or after_s is None:
        return NONE
    return f"{duration_text(before_s)}, then {duration_text(after_s)}"


def _claims(report: Report) -> list[str]:
    rows = [
        (
            escaped(row.tier),
            escaped(row.cause) or NONE,
            str(row.times),
            str(row.entries),
            bytes_text(row.freed_bytes),
        )
        for row in report.claims[:_ROWS]
    ]
    head = ("tier", "cause", "purges", "entries", "freed, as it says")
    return table("Purges as the agent tells them", head, rows, len(report.claims) - _ROWS)


def _checkpoints(report: Report) -> list[str]:
    saved, stats = report.checkpoints, report.checkpoints.stats
    if not saved.counted and not saved.failed:
        return []
    rows = [
        ("complete", str(saved.counted)),
        *(
            (f"{escaped(kind)}, in the log", str(number))
            for kind, number in saved.by_kind.items()
            if report.source == "native"
        ),
        *(
            (f"{escaped(kind)}, lying there", str(number))
            for kind, number in saved.by_kind.items()
            if report.source != "native"
        ),
        ("failed or incomplete", str(saved.failed)),
        (
            "took, median and p95",
            f"{duration_text(stats.duration_p50_s)}, {duration_text(stats.duration_p95_s)}",
        ),
        (
            "size of full ones, median and p95",
            f"{bytes_text(stats.full_bytes_p50)}, {bytes_text(stats.full_bytes_p95)}",
        ),
        ("a full one against the one before", bytes_text(stats.growth_bytes)),
        ("one each", duration_text(stats.every_s)),
        (
            "share of the time",
            NONE if stats.time_share is None else f"{stats.time_share * 100:.1f}%",
        ),
        ("bloat", saved.bloat.verdict),
    ]
    rows += [("why", escaped(saved.bloat.why))] if saved.bloat.why else []
    return table("Checkpoints", ("figure", "value"), rows)


def _store(report: Report) -> list[str]:
    rows = [
        (
            escaped(one.id),
            escaped(kind_text(one.kind, partial=one.partial)),
            state_text(one.state),
            bytes_text(one.bytes),
            duration_text(one.duration_s),
            local_time_text(one.committed_us or one.began_us, "%d %b %H:%M:%S"),
            escaped(one.reason) or NONE,
        )
        for one in report.checkpoints.rows[:_ROWS]
    ]
    head = ("checkpoint", "kind", "state", "size", "took", "at", "why")
    return table("Checkpoints that lie there", head, rows, len(report.checkpoints.rows) - _ROWS)


def _recovery(report: Report) -> list[str]:
    rows = [
        (
            one.t_us,
            "estimate",
            range_text(one.rto_s),
            one.grade or NONE,
            NONE,
        )
        for one in report.estimates
    ]
    for done in report.recoveries[-_ROWS:]:
        error = (
            NONE
            if done.error_share is None
            else f"{change_text(done.error_share)} against the estimate"
        )
        proof = {True: "state proved", False: "STATE DIFFERS", None: ""}[done.matches]
        rows.append((done.t_us, done.kind, duration_text(done.total_s), proof or NONE, error))
    rows.sort(key=lambda row: row[0])
    shown = [(when_text(t_us, report), *rest) for t_us, *rest in rows]
    return table("Recovery over time", ("at", "what", "back in", "grade", "error"), shown)


def _starts(report: Report) -> list[str]:
    rows = [
        (
            when_text(one.t_us, report),
            one.what,
            NONE if one.experiment is None else str(one.experiment),
            duration_text(one.redo_s),
            duration_text(one.down_s),
            escaped(one.recovered) or NONE,
            "; ".join(map(escaped, one.lost)) or ("nothing" if one.recovered else NONE),
        )
        for one in report.starts[:_ROWS]
    ]
    head = ("at", "what", "experiment", "to do again", "down", "recovered from", "lost")
    return table("Deaths and starts", head, rows, len(report.starts) - _ROWS)


def _alerts(report: Report) -> list[str]:
    rows = [
        (
            when_text(one.t_us, report),
            one.severity,
            escaped(one.text),
            "stands" if one.stands else duration_text(one.lasted_s),
        )
        for one in report.alerts[-_ROWS:]
    ]
    return table("Alerts", ("at", "severity", "what", "for"), rows, len(report.alerts) - _ROWS)


def _rest(report: Report) -> Iterator[str]:
    asked = [(escaped(what), str(number)) for what, number in report.requests.items()]
    yield from table("What people asked for", ("request", "times"), asked[:_ROWS])
    errors = [(escaped(what), str(number)) for what, number in report.errors.items()]
    yield from table("Errors that the agent told", ("error", "times"), errors[:_ROWS])
    gaps = [
        (
            when_text(one.from_us, report),
            duration_text((one.until_us - one.from_us) / 1e6),
            escaped(one.why) or NONE,
        )
        for one in report.gaps
    ]
    yield from table("Times in which nobody watched", ("from", "for", "why"), gaps[:_ROWS])
    if report.damage:
        kinds = ", ".join(counted(number, kind, kind) for kind, number in report.damage.items())
        yield from ("", f"Faults in the logs: {kinds}")
