"""Caches that an agent registers are emptied when memory is reclaimed, and each is told of."""

from __future__ import annotations

import json
from pathlib import Path

from memwatch.agent import Run, RunOptions
from memwatch.domain.clock import SystemClock
from tests.agent.control.sending import a_command, publish, state_of
from tests.waiting import until


def test_reclaim_drops_what_the_agent_registered_and_says_what_failed(tmp_path: Path) -> None:
    cache = {"page": "x" * 1_000}

    def fail() -> None:
        raise RuntimeError("it is in use")

    with Run.open(tmp_path / "run", RunOptions(agent="t")) as run:
        run.register_cache("pages", cache.clear)
        run.register_cache("stuck", fail)
        publish(run.path, a_command(SystemClock(), "r", op="reclaim", run_id=run.id))

        def answered() -> bool:
            run.safe_point()
            return state_of(run.path, "r") == "done"

        until(answered)
        ack = json.loads((run.path / "control/ack/r.json").read_text())
    assert cache == {}
    steps = {step["name"]: step for step in ack["result"]["steps"]}
    assert list(steps) == ["cache pages", "cache stuck", "garbage", "allocator"]
    assert "error" not in steps["cache pages"]
    assert steps["cache stuck"]["error"] == "it is in use"
