"""Points of the check before bed about a store that another program writes. Pure.

A guard watches such a store and tells; there is nothing that it could do about it.
"""

from __future__ import annotations

from collections.abc import Iterator

from memwatch.cli.nightly_facts import Check, NightFacts
from memwatch.domain.snapshot import PAST
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text, duration_text


def points_of_store(facts: NightFacts) -> Iterator[Check]:
    """Judge who writes it, what lies there, and whether there is room."""
    yield Check("armed", "look", f"it watches and tells, no more: {facts.no_commands}")
    if facts.status:
        yield _writer(facts)
        yield _saved(facts)
        yield _disk(facts)


def _writer(facts: NightFacts) -> Check:
    run = facts.status["run"]
    if run["state"] in PAST:
        why = inert(str(run["end_reason"]), 120)
        return Check("writer", "NO", f"the run is over: {inert(str(run['state']), 12)} ({why})")
    if not run["pid"]:
        text = "no process was seen to write: its memory is not watched"
        return Check("writer", "look", text, "it is found while it holds a file there open")
    return Check("writer", "ok", f"process {run['pid']}")


def _saved(facts: NightFacts) -> Check:
    known = facts.status["checkpoints"]
    if known["age_s"] is None:
        return Check("saved", "NO", "no complete checkpoint lies there")
    text = f"the last complete checkpoint is {duration_text(known['age_s'])} old"
    for wrong in ("damaged", "incomplete"):
        if names := ", ".join(inert(str(name), 40) for name in known[wrong][:3]):
            return Check("saved", "look", f"{text}; {wrong}: {names}")
    if known["overdue"]:
        return Check("saved", "look", f"{text}; one is overdue by its habit")
    return Check("saved", "ok", text)


def _disk(facts: NightFacts) -> Check:
    free, fits = facts.status["disk"]["free_bytes"], facts.status["checkpoints"]["next_fits"]
    if free is None:
        return Check("disk", "look", "nobody knows how much room there is")
    text = f"{bytes_text(free)} free"
    if fits is False:
        return Check("disk", "NO", f"{text}: the next does not fit", f"make room for {facts.path}")
    return Check("disk", "ok", text if fits is None else f"{text}: the next checkpoint fits")
