"""SIGKILL or a power loss at any call of log, blobs, checkpoints, pruning, spool loses nothing.

What was acknowledged survives the one, what was durable the other.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def campaign(directory: Path, kills: int, seed: int) -> dict[str, int]:
    options = ["--kills", str(kills), "--seed", str(seed)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.kill_campaign", str(directory), *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    tally: dict[str, int] = json.loads(done.stdout)
    return tally


def check(tally: dict[str, int], kills: int) -> None:
    assert tally["kills"] >= kills
    compared = tally["exact"] + tally["earlier"]
    assert compared >= 0.9 * (compared + tally["unchecked"])


@pytest.mark.e2e
@pytest.mark.timeout(300)
def test_a_killed_agent_comes_back_as_it_was(tmp_path: Path) -> None:
    check(campaign(tmp_path, 200, seed=1), 200)


@pytest.mark.campaign
@pytest.mark.e2e
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(100, 104))
def test_thousands_of_kills(tmp_path: Path, seed: int) -> None:
    check(campaign(tmp_path, 1000, seed), 1000)
