"""A running guard takes a changed policy over; a wrong one changes nothing and is said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from memwatch.config.locations import run_home
from tests.e2e.stage import Stage

pytestmark = pytest.mark.e2e


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


def test_a_changed_policy_is_taken_over_while_the_guard_runs(stage: Stage) -> None:
    puppet = stage.puppet()
    guard = stage.guard(puppet.run_dir)
    run = str(puppet.run_dir)

    def warn(status: dict[str, Any]) -> Any:
        return status["limits"]["warn"]

    assert warn(stage.status(puppet.run_dir)) == 0.6
    done = stage.cli("policy", "set", run, "thresholds.warn=0.65")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"guard {guard.pid} takes it over within 2 s" in done.stdout
    stage.wait_status(puppet.run_dir, lambda s: warn(s) == 0.65, "the new threshold")

    path = run_home(puppet.run_id) / "policy.yaml"
    path.write_text("thresholds: {wran: 0.5}\n")
    broken = stage.wait_status(
        puppet.run_dir, lambda s: s["engine"]["policy_error"], "the error to be said"
    )
    assert "policy.yaml line 1: unknown key 'wran'" in broken["engine"]["policy_error"]
    assert warn(broken) == 0.65, "what was in force stays"

    path.write_text("phases: {accumulation: {thresholds: {warn: 0.62}}}\n")
    mended = stage.wait_status(
        puppet.run_dir, lambda s: not s["engine"]["policy_error"], "the mended file"
    )
    assert warn(mended) == 0.6
    shown = json.loads(stage.cli("policy", run, "--phase", "accumulation", "--json").stdout)
    assert shown["values"]["thresholds.warn"] == {"value": 0.62, "source": f"{path} line 1"}


def test_a_mode_that_a_person_gave_is_not_hidden_behind_the_policys(stage: Stage) -> None:
    puppet = stage.puppet()
    stage.guard(puppet.run_dir)
    run = str(puppet.run_dir)
    assert "said, not the policy's" not in stage.cli("policy", run).stdout
    assert stage.cli("ctl", run, "mode", "act").returncode == 0
    page = stage.cli("policy", run).stdout
    assert "note: mode and allow are what ctl said, not the policy's: WILL ACT (" in page


def test_a_run_that_nobody_watches_is_shown_by_its_policy(stage: Stage) -> None:
    puppet = stage.puppet()
    run = str(puppet.run_dir)
    assert stage.cli("policy", "set", run, "thresholds.warn=0.65").returncode == 0
    status = json.loads(stage.cli("status", run, "--json").stdout)
    assert status["limits"]["warn"] == 0.65
