"""Processes that really free a known amount, late or at once, and really take it back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memwatch.domain.command import Command
from memwatch.domain.intervention import Intervention, ResourceEffect
from memwatch.runtime.protocol.client import GuardSession
from tests.e2e.night import agent_records, guard_records
from tests.e2e.stage import PERIOD_S, Process, Puppet, Stage, still
from tests.waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

MB = 1_000_000
TRUTH = Path(__file__).with_name("truth.py")
BEFORE_S, SETTLE_S, LATE_S = 3.0, 2.0, 8.0
SOON = f"""
name: soon
probe: {{period_s: {PERIOD_S}, disk_s: 0.5}}
windows:
  growth_s: [8, 20, 600]
  chart_s: 60
  before_s: {BEFORE_S}
  settle_s: {SETTLE_S}
  late_s: {LATE_S}
  rebound_s: 40
"""
"""The same windows on a shorter clock."""


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        stage.profile("soon", SOON)
        yield stage


class Watched:
    """An agent of known truth under a guard."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.agent = self.start()
        self.guard = self.watch()

    def start(self) -> Puppet:
        return self.stage.play(TRUTH, "truth", {"profile": "soon"})

    def watch(self) -> Process:
        guard = self.stage.guard(self.agent.run_dir)
        self.session: GuardSession = self.stage.session(self.agent.run_dir)
        return guard

    def ask(self, op: str) -> str:
        """Ask for an operation, and let the agent come by a safe point."""
        name = self.session.submit(Command(op=op, by="test"))
        wait_for(lambda: self.session.command(name).state == "accepted", "the agent to take it")
        self.agent.ask("safe_point")
        return name

    def rest(self) -> None:
        """Let pass what is measured before."""
        with still(BEFORE_S + 1):
            pass

    def row(self, name: str, holds: Callable[[Intervention], object], what: str) -> Intervention:
        def look() -> Intervention | None:
            rows = self.session.rows("interventions", 100)
            found = next((row for row in rows if row.id.startswith(name)), None)
            seen.append(found)
            return found if found is not None and holds(found) else None

        seen: list[Intervention | None] = []
        try:
            return wait_for(look, what, 45)
        except AssertionError as error:
            raise AssertionError(f"{error}; last: {seen[-1]}") from None

    def done_m_us(self, name: str) -> int:
        """Return when the agent had carried out a request, by the clock of its log."""
        records = agent_records(self.agent.run_dir, "command")
        ended = (r for r in records if r.text("id") == name and r.text("state") == "done")
        return next(ended).m_us


def of(row: Intervention, resource: str) -> ResourceEffect:
    return next(one for one in row.effects if one.resource == resource)


def test_what_was_freed_and_when_it_was_back(stage: Stage) -> None:
    watched = Watched(stage)
    watched.agent.ask("truth", 120 * MB, 0.0, 4.0, 10.0)
    watched.rest()
    name = watched.ask("reclaim")
    row = watched.row(name, lambda row: row.verdict == "effective", "an effect")
    assert (row.rebound_s, row.origin, row.by) == (None, "operator", "test")
    assert row.held_s is not None
    row = watched.row(name, lambda row: row.rebound_s is not None, "its return")
    truth = watched.agent.ask("account")
    assert row.freed_bytes == pytest.approx(truth["freed"], rel=0.05)
    back_s = (truth["back_m_us"] - watched.done_m_us(name)) / 1e6
    assert row.rebound_s == pytest.approx(back_s, rel=0.10)
    assert row.held_s is None
    assert {"cache truth", "garbage", "allocator"} <= {stage.name for stage in row.stages}
    wait_for(lambda: written(stage, watched, name) >= {"10s", "10min"}, "its records")


def written(stage: Stage, watched: Watched, name: str) -> set[str]:
    """Return how far the guards wrote down what became of an intervention."""
    records = guard_records(stage, watched.agent.run_dir, "efficacy")
    return {record.text("at") for record in records if record.text("id") == name}


def test_what_is_freed_late_is_no_effect_at_first_and_one_later(stage: Stage) -> None:
    watched = Watched(stage)
    watched.agent.ask("truth", 120 * MB, 4.0, 60.0, 0.0)
    watched.rest()
    name = watched.ask("reclaim")
    soon = watched.row(name, lambda row: row.after_10s is not None, "the first look")
    assert soon.verdict == "none"
    assert soon.freed_share == pytest.approx(0, abs=0.02)
    guard = watched.guard
    guard.end()
    watched.session.close()
    watched.watch()
    row = watched.row(name, lambda row: row.after_10min is not None, "the second look")
    truth = watched.agent.ask("account")
    assert row.verdict == "effective"
    assert row.freed_bytes == pytest.approx(truth["freed"], rel=0.05)
    assert row.after_10s == soon.after_10s, "the guard before this one measured that"
    assert (row.rebound_s, row.held_s is not None) == (None, True)


def test_compaction_frees_tokens_and_no_memory_of_the_process_a_restart_does(stage: Stage) -> None:
    watched = Watched(stage)
    watched.agent.ask("converse")
    watched.agent.ask("hold", 100 * MB)
    watched.rest()
    name = watched.ask("compact")
    row = watched.row(name, lambda row: row.after_10s is not None, "the first look")
    tokens = of(row, "tokens:recent")
    assert (row.effects[0], tokens.verdict, tokens.unit) == (tokens, "effective", "tokens")
    assert (tokens.before, tokens.after_10s) == (10_000, 2_500)
    assert (row.claimed, row.differs) == (7_500, False)
    assert of(row, "memory").verdict == "none"
    watched.agent.kill()
    watched.agent.wait()
    watched.agent = watched.start()
    row = watched.row("restart-", lambda row: row.after_10s is not None, "the restart")
    assert (row.verdict, row.why) == ("effective", "after a crash")
    assert of(row, "memory").freed == pytest.approx(100 * MB, rel=0.15), "and what else it held"
    assert row.effects[0].resource == "memory"
