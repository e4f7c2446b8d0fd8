"""The demo leaks for real under a small limit: with the engine it lives, without it dies."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from memwatch.demo.results import TYPES
from tests.e2e.enforced import EnforcedLimit, enforced_limit
from tests.e2e.night import (
    MB,
    agent_records,
    ask,
    is_over,
    mode_of,
    nothing_lost,
    short_policy,
    steps_of,
    viewer,
    wait_mode,
    wait_plan,
)
from tests.e2e.stage import Process, Stage, still
from tests.waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

LIMIT = 200 * MB
RATE = 500
ROOMY = 1_000 * MB
"""What the demo itself goes by where the kernel enforces the limit: it would stop before."""

EARLY = """
thresholds: {warn: 0.5, intervene: 0.6}
exit: {warn: 0.45, intervene: 0.55, emergency: 0.45, dwell_s: 1}
soft: {window_s: 20, step_s: 10, floor: 0.45, forecast: []}
levels: {intervene: {escalate: []}}
"""
"""Room for what the experiment in progress still leaks, while it drains; and nothing but the end of
the leak frees what it took."""
NO_PAUSE_BEFORE = """
thresholds: {emergency: 0.85, hard: 0.98}
levels:
  warn: {escalate: []}
  intervene: {steps: [{op: checkpoint}], escalate: []}
  emergency: {cooldown_s: 5}
"""
"""Nothing holds the leak up before it is an emergency; a second of it is 5% of the limit."""


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


class Demo:
    """The demo engine under a limit that is enforced: by the kernel where that can be had."""

    def __init__(self, stage: Stage, group: EnforcedLimit | None, *options: str) -> None:
        self.stage, self.group = stage, group
        self.run_dir = stage.folder / "demo"
        words = ["-m", "memwatch.demo", str(self.run_dir), *options]
        words += ["--limit", str(LIMIT if group is None else ROOMY)]
        self.process: Process = stage.start(words if group is None else group.within(words))
        wait_for((self.run_dir / "control" / "state.json").exists, "the demo")

    def watch(self, policy: str) -> Process:
        short_policy(self.stage, self.run_dir, policy)
        return self.stage.guard(self.run_dir)

    @property
    def experiments(self) -> int:
        """Begun so far, by the agent's own log."""
        return len(agent_records(self.run_dir, "experiment.begin"))

    def outcomes(self) -> list[str]:
        return [r.text("status") for r in agent_records(self.run_dir, "experiment.end")]

    def how_it_died(self) -> str:
        """Return what ended it, once it has ended."""
        code = self.process.wait(60)
        if self.group is not None and self.group.kills and code == -signal.SIGKILL:
            return "killed by the kernel"
        return "its own hard stop" if code == 137 else f"exit {code}"

    def end_whole(self) -> Any:
        """Kill it at last, and find that nothing is lost."""
        assert self.process.alive
        assert self.group is None or self.group.kills == 0
        self.process.kill()
        self.process.wait()
        return nothing_lost(self.run_dir, TYPES)


@pytest.fixture
def group() -> Iterator[EnforcedLimit | None]:
    with enforced_limit(LIMIT) as group:
        yield group


@pytest.mark.parametrize(
    "rate",
    [RATE, pytest.param(50, marks=[pytest.mark.campaign, pytest.mark.timeout(400)])],
    ids=lambda rate: f"{rate} MB/min",
)
def test_a_leak_is_warned_of_then_held_and_the_run_goes_on_when_it_is_mended(
    group: EnforcedLimit | None, stage: Stage, rate: int
) -> None:
    demo = Demo(stage, group, "--leak", str(rate))
    patience_s = 15_000 / rate  # the slow one takes minutes to get there
    demo.watch(EARLY)
    session = viewer(stage, demo.run_dir, "ann")

    warned = wait_plan(stage, demo.run_dir, "warn", is_over, "what is done at warn", patience_s)
    assert steps_of(warned) == {"checkpoint": "done", "purge": "done"}
    assert "memory" in warned.text("why")
    held = wait_plan(
        stage, demo.run_dir, "intervene", is_over, "what is done at intervene", patience_s
    )
    assert steps_of(held) == {"pause": "done", "checkpoint": "done", "purge": "done"}

    wait_mode(demo.run_dir, "paused")
    before = demo.experiments
    with still(3.0):
        pass
    assert (demo.experiments, mode_of(demo.run_dir)) == (before, "paused")
    status = stage.status(demo.run_dir)
    assert [(hold["op"], hold["owner"]) for hold in status["holds"]] == [("pause", "engine")]
    assert status["level"] == "intervene"
    assert status["limits"]["binding"]["bytes"] == pytest.approx(LIMIT, abs=65_536)
    assert group is None or status["limits"]["binding"]["name"] != "stated by the agent"

    assert ask(session, "leak", args={"mb_per_min": 0}).state == "done"
    wait_mode(demo.run_dir, "running", seconds=30)
    wait_for(lambda: demo.experiments > before, "the next experiment")
    stage.wait_status(demo.run_dir, lambda s: s["level"] == "normal", "level normal")
    assert "aborted" not in demo.outcomes()
    state = demo.end_whole()
    assert state.experiments >= before


def test_an_emergency_costs_one_experiment_and_not_the_run(
    group: EnforcedLimit | None, stage: Stage
) -> None:
    demo = Demo(stage, group, "--leak", str(RATE), "--leak-in", "cache")
    demo.watch(NO_PAUSE_BEFORE)
    plan = wait_plan(stage, demo.run_dir, "emergency", is_over, "what is done in an emergency")
    assert steps_of(plan) == {
        "abort_experiment": "done",
        "pause": "done",
        "purge": "done",
        "reclaim": "done",
    }
    measured = wait_plan(
        stage,
        demo.run_dir,
        "emergency",
        lambda plan: plan.text("effect") in ("effective", "none", "worse"),
        "what that gained",
    )
    assert measured.text("effect") == "effective"
    assert measured.members["before_bytes"] - measured.members["after_bytes"] > 30 * MB
    assert demo.outcomes().count("aborted") <= 1, "none where it ended by itself just then"
    before = demo.experiments
    wait_mode(demo.run_dir, "running", seconds=30)
    wait_for(lambda: demo.experiments > before, "the next experiment")
    demo.end_whole()


def test_without_the_engine_the_same_run_dies_of_its_limit(
    group: EnforcedLimit | None, stage: Stage
) -> None:
    demo = Demo(stage, group, "--leak", str(RATE), "--leak-in", "cache")
    demo.watch("mode: 'off'")
    died = demo.how_it_died()
    assert died == ("its own hard stop" if group is None else "killed by the kernel")
    assert stage.status(demo.run_dir)["holds"] == []
    assert agent_records(demo.run_dir, "command", "mode") == [], "nobody asked it for anything"
    nothing_lost(demo.run_dir, TYPES)
