"""A guard killed while it acts is taken over: nothing twice, nothing lost, no hold for ever."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def campaign(kills: int, seed: int) -> dict[str, int]:
    options = ["--kills", str(kills), "--seed", str(seed)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.guard_kill_campaign", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    tally: dict[str, int] = json.loads(done.stdout)
    return tally


@pytest.mark.e2e
@pytest.mark.timeout(300)
def test_a_killed_guard_is_taken_over_by_the_next() -> None:
    tally = campaign(16, seed=1)
    assert tally["kills"] == 16
    assert tally["by_count"] > 4, "in the midst of acting"
    assert tally["answered"] > 4


@pytest.mark.campaign
@pytest.mark.e2e
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(100, 104))
def test_hundreds_of_kills(seed: int) -> None:
    assert campaign(200, seed)["kills"] == 200
