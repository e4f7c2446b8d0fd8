"""An agent killed while it obeys: nothing destructive is done twice, nothing is lost (F1)."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from memwatch.domain.clock import SystemClock
from tests.agent.control.sending import a_command, ack_of, publish
from tests.faults.killing_files import MOMENTS, Moment
from tests.faults.obedient_agent import EFFECTS
from tests.faults.obeying import prepared, serving

KILLS = 12
"""At random in CI; the campaign kills 150 times at random, and at every edge."""
STRIDE = 4
"""Calls between two edges in CI: fewer than between an effect and its answer."""
LONGEST = 200
"""More calls than an agent makes for the two commands."""


def obey(path: Path, *options: str) -> int:
    """Start the agent and wait for its end; returns its exit status."""
    command = [sys.executable, "-m", "tests.faults.obedient_agent", str(path), *options]
    return subprocess.run(command, check=False, timeout=50).returncode


def effects(path: Path) -> Counter[str]:
    """Return how often each command had an effect."""
    return Counter(file.name.split(".")[0] for file in (path / EFFECTS).iterdir())


def check(path: Path, ids: list[str]) -> None:
    """Hold every command to what it was promised."""
    counted = effects(path)
    for command_id in ids:
        ack = ack_of(path, command_id)
        assert ack is not None, f"{command_id} is lost"
        count = counted[command_id]
        if command_id.startswith("destroy"):
            assert count <= 1, f"{command_id} was done {count} times"
        if ack["state"] == "done":
            assert count >= 1, f"{command_id} is called done"
        else:
            assert ack["state"] == "failed"
            assert "interrupted: its effect is unknown" in ack["detail"]
            assert command_id.startswith("destroy"), "what is harmless is simply run again"


def killed_once(path: Path, at: int, moment: Moment) -> bool:
    """Kill an agent at a call, let the next one go on, check; false when it had ended before."""
    prepared(path)
    died = obey(path, "--at", str(at), "--moment", moment) == -signal.SIGKILL
    assert obey(path) == 0
    check(path, ["repeat", "destroy"])
    return died


def test_a_kill_at_some_edges_repeats_nothing_destructive(tmp_path: Path) -> None:
    kills = [killed_once(tmp_path / str(at), at, "after") for at in range(2, 62, STRIDE)]
    assert sum(kills) > len(kills) // 2


@pytest.mark.campaign
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_at_every_edge_repeats_nothing_destructive(tmp_path: Path, moment: Moment) -> None:
    for at in range(1, LONGEST):
        if not killed_once(tmp_path / str(at), at, moment):
            break
    assert 30 < at < LONGEST - 1


@pytest.mark.parametrize(
    "kills", [KILLS, pytest.param(150, marks=[pytest.mark.campaign, pytest.mark.timeout(900)])]
)
def test_kills_at_random_under_a_stream_of_commands(tmp_path: Path, kills: int) -> None:
    prepared(tmp_path)
    chance, ids = random.Random(kills), ["repeat", "destroy"]
    for n in range(kills):
        with serving(tmp_path) as process:
            for m in range(4):
                op = chance.choice(("repeat", "destroy"))
                ids.append(f"{op}-{n}-{m}")
                publish(tmp_path, a_command(SystemClock(), ids[-1], op=op))
            again = chance.choice(ids)  # delivered twice, or long after its end
            with suppress(FileExistsError):
                publish(tmp_path, a_command(SystemClock(), again, op=again.split("-")[0]))
            with suppress(subprocess.TimeoutExpired):
                process.wait(chance.random() * 0.2)
    assert obey(tmp_path) == 0
    check(tmp_path, ids)
