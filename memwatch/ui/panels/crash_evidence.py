"""Where the figures of interventions and of the recovery come from."""

from __future__ import annotations

from collections.abc import Iterator

from memwatch.domain.recovery import PastRecovery, RecoveryTerm
from memwatch.domain.snapshot import Snapshot
from memwatch.domain.text import inert
from memwatch.domain.units import (
    bytes_text,
    change_text,
    duration_text,
    estimate_text,
    rough_text,
    span_text,
)
from memwatch.ui.format import clock_text, moment_text
from memwatch.ui.panels.effect import what_words, who_words
from memwatch.ui.panels.facts import Fact
from memwatch.ui.panels.interventions import verdict_words

_SHOWN = 6


def acts_facts(snapshot: Snapshot) -> list[Fact]:
    """Return how interventions are measured, and the newest with their verdicts."""
    facts = [
        ("before", "median of the 30 s before, of the tier for a purge of one, else of the tree;"
                   " where that rose or fell all the time, what it had come to"),
        ("after", "measured 10 s and 10 min after, by the guard"),
        ("freed", "before − after 10 s (10 min where it came later), and its share of before; t is"
                  " tokens"),
        ("no effect", "less than 2 % of before, or than the noise before; a rise by as much is"
                      " worse"),
        ("then", "back: usage was where it had been; held: so far it was not"),
        ("took", "from accepted to done; of a series, from its first purge to its last"),
        ("×n", "purges by retention that follow each other in one tier are one row; before is"
               " before the first, after behind the last, claimed the mean"),
        ("overlaps", "another one lies within what was measured"),
        ("asked", "handed over; accepted, running, done are the agent's own words, from its"
                  " answer or its log, whichever came first"),
        ("plan", "ordered steps that the guard asks for one after another (p: policy)"),
        ("all of them", "i lists them; Enter there shows every resource, stage and confounder"),
    ]  # fmt: skip
    facts += [
        (
            clock_text(one.asked_at_us),
            f"{what_words(one)} by {who_words(one)}, {inert(one.why, 100)}: {verdict_words(one)}",
        )
        for one in snapshot.interventions[:_SHOWN]
    ]
    facts += [
        ("request", f"{inert(one.op, 20)} {one.state} (id {inert(one.id, 40)}) {inert(one.detail)}")
        for one in snapshot.commands[:_SHOWN]
    ]
    return facts


def recovery_facts(snapshot: Snapshot) -> list[Fact]:
    """Return what the estimate rests on, term by term, and how past ones did."""
    found = snapshot.recovery
    facts: list[Fact] = [
        ("estimate", "the sum of its terms; each from real restarts, from drills, or assumed"),
    ]
    facts += [(term.name, _term(term)) for term in found.terms]
    if found.plain_s is not None:
        facts.append(("formula", f"{duration_text(found.plain_s)} = {inert(found.plain, 300)}:"
                                 " the plain formula, for comparison"))  # fmt: skip
    facts.append(("disk", _disk(snapshot)))
    if found.memory_bytes is not None:
        facts.append(("memory", f"{found.memory_bytes:,} bytes: {inert(found.memory_how, 200)}"))
    facts += [("past" if not index else "", text) for index, text in enumerate(_past(snapshot))]
    facts += [
        ("lose", "the experiment in progress is done again; the log holds the rest"),
        ("at risk", "work that no checkpoint holds: a damaged log means to do it again"),
    ]
    full, last = snapshot.checkpoints.last_recoverable_full, snapshot.checkpoints.last
    if full is not None:
        text = f"{inert(full.id, 60)}, lsn {full.first_lsn}–{full.last_lsn}, {full.entries} entries"
        facts.append(("full", text))
    if last is not None:
        facts.append(("last", f"{inert(last.id, 60)} {last.state}, lsn to {last.last_lsn}"))
    facts.append(("tail", f"{found.tail_bytes:,} bytes, {_records(found.tail_records)}"))
    return facts


def _records(count: int) -> str:
    return f"{count:,} record{'' if count == 1 else 's'}"


def _disk(snapshot: Snapshot) -> str:
    """Return how fast the disk is, and when that was measured: a figure of last week is old."""
    disk = snapshot.recovery.disk
    if disk is None or (disk.read_bytes_per_s is None and disk.write_bytes_per_s is None):
        return "not measured: its rates are assumed"
    reads, writes = (
        "unknown" if rate is None else f"{bytes_text(rate)}/s"
        for rate in (disk.read_bytes_per_s, disk.write_bytes_per_s)
    )
    age = rough_text(max(snapshot.t_us - disk.t_us, 0) / 1e6)
    return f"reads {reads}, writes {writes}, measured {age} ago: {inert(disk.how, 100)}"


def _term(term: RecoveryTerm) -> str:
    age = "" if term.age_s is None else f" {rough_text(term.age_s)} ago"
    of = "" if term.bytes is None else f" for {term.bytes:,} bytes"
    of += "" if term.records is None else f", {_records(term.records)}"
    spread = span_text(term.low_s, term.high_s)
    how = f": {inert(term.how, 200)}" if term.how else ""
    rests = inert(term.how, 200) if term.how.startswith(term.basis) else f"{term.basis}{age}{how}"
    return f"{duration_text(term.seconds)} ({spread}){of}, {rests}"


def _past(snapshot: Snapshot) -> Iterator[str]:
    """Return the newest drills and restarts, each against what was estimated just before."""
    for one in snapshot.recovery.past:
        when = moment_text(one.t_us, snapshot.t_us)
        yield f"{when} {one.kind} took {duration_text(one.total_s)}{_against(one)}{_terms(one)}"


def _against(one: PastRecovery) -> str:
    if one.estimate is None:
        return ", nothing was estimated before"
    span, error = one.estimate, one.error_share
    off = "" if error is None else f": {change_text(error)}"
    return f", estimated {estimate_text(span.low, span.likely, span.high)}{off}"


def _terms(one: PastRecovery) -> str:
    named = ", ".join(f"{inert(it.name, 16)} {duration_text(it.seconds)}" for it in one.terms)
    return f" ({named})" if named else ""
