"""One real event turns each of the five lights."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.stage import Puppet, Stage, light, memory
from tests.waiting import wait_for

pytestmark = pytest.mark.e2e

MB = 1_000_000
LIMIT = 250 * MB


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


def profile(name: str, more: str = "") -> str:
    return f"""
name: {name}
windows: {{growth_s: [8, 20, 600], chart_s: 60}}
probe: {{period_s: 0.2, disk_s: 0.2}}
policy: {{exit: {{dwell_s: 1}}}}
{more}
"""


def watched(stage: Stage, name: str, more: str = "", **options: object) -> Puppet:
    """Start an agent with a profile of its own, and its guard."""
    stage.profile(name, profile(name, more))
    puppet = stage.puppet(name, profile=name, **options)
    stage.guard(puppet.run_dir)
    return puppet


def turn(stage: Stage, puppet: Puppet, name: str, word: str) -> str:
    """Wait until a light shows a word; returns its meaning."""
    shown = stage.wait_status(
        puppet.run_dir, lambda s: light(s, name)["word"] == word, f"{name} {word}"
    )
    return str(light(shown, name)["meaning"])


def step_until_ok(stage: Stage, puppet: Puppet) -> None:
    """Let the agent make steps until the light sees one in time, however slow this machine is."""

    def seen() -> bool:
        puppet.ask("step")
        return bool(light(stage.status(puppet.run_dir), "STEP")["word"] == "ok")

    wait_for(seen, "STEP ok")


def test_memory(stage: Stage) -> None:
    puppet = watched(stage, "memory", memory_limit_bytes=LIMIT)
    turn(stage, puppet, "MEMORY", "ok")
    for share, word, level in (
        (0.67, "WARN", "warn"),
        (0.82, "ACT", "intervene"),
        (0.925, "CRIT", "emergency"),
    ):
        used = memory(stage.status(puppet.run_dir))["used"]
        puppet.ask("hold", round(share * LIMIT - used))
        turn(stage, puppet, "MEMORY", word)
        status = recorded(stage, puppet, level)
        assert status["level"] == level
        assert memory(status)["share"] == pytest.approx(share, abs=0.04)
        assert stage.cli("status", str(puppet.run_dir), "--line").returncode == (word != "WARN")
    puppet.ask("release")
    turn(stage, puppet, "MEMORY", "ok")
    recorded(stage, puppet, "normal")


def recorded(stage: Stage, puppet: Puppet, level: str) -> dict[str, Any]:
    """Wait until a level stands in the guard's own log."""

    def told(status: dict[str, Any]) -> bool:
        return any(event["text"].startswith(f"memory {level}: ") for event in status["events"])

    return stage.wait_status(puppet.run_dir, told, f"the record of {level}")


def test_disk(stage: Stage) -> None:
    """The file system really loses the bytes; the threshold stands relative to what is free now.

    Others may use the disk as well: the threshold is far from now, and the file larger still.
    """
    room = os.statvfs(stage.folder)
    free = room.f_bavail * room.f_frsize
    size = min(4_000 * MB, free // 3)
    thresholds = f"lights: {{disk_warn_bytes: {free - size // 4}, disk_act_bytes: {MB}, "
    puppet = watched(stage, "disk", thresholds + "disk_critical_bytes: 1000}")
    turn(stage, puppet, "DISK", "ok")
    filler = stage.folder / "filler"
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)
    turn(stage, puppet, "DISK", "WARN")
    filler.unlink()
    turn(stage, puppet, "DISK", "ok")


def test_processes(stage: Stage) -> None:
    puppet = watched(stage, "processes")
    turn(stage, puppet, "PROCS", "ok")
    pids = puppet.ask("child")
    stage.wait_status(puppet.run_dir, lambda s: s["processes"]["count"] == 3, "both children")
    puppet.ask("leave", pids["parent"])
    try:
        assert turn(stage, puppet, "PROCS", "watch") == "1 left behind by a parent"
        status = stage.status(puppet.run_dir)
        (orphan,) = (p for p in status["processes"]["members"] if p["orphan"])
        assert (orphan["pid"], orphan["name"]) == (pids["sleeper"], "sleep")
    finally:
        os.kill(pids["sleeper"], signal.SIGKILL)
    turn(stage, puppet, "PROCS", "ok")


def test_checkpoints(stage: Stage) -> None:
    cadence = {"incremental_experiments": 1000, "incremental_s": 1.5}
    puppet = watched(stage, "checkpoints", "lights: {checkpoint_grace: 1.2}", cadence=cadence)
    assert turn(stage, puppet, "CKPT", "no data") == "none yet"
    assert puppet.ask("checkpoint", "full")["committed"]
    turn(stage, puppet, "CKPT", "ok")
    assert turn(stage, puppet, "CKPT", "WARN") == "overdue"
    puppet.ask("experiments", 1)
    puppet.ask("checkpoint", "incremental")
    turn(stage, puppet, "CKPT", "ok")
    _put_a_file_in_the_way(puppet.run_dir / "checkpoints")
    puppet.ask("experiments", 1)
    outcome = puppet.ask("checkpoint", "full")
    assert not outcome["committed"]
    meaning = turn(stage, puppet, "CKPT", "WARN")
    assert meaning in ("the newest one failed", "full is missing on disk", "overdue")
    failed = stage.status(puppet.run_dir)["interventions"][0]
    assert (failed["state"], failed["why"]) == ("failed", outcome["reason"])


def test_steps(stage: Stage) -> None:
    puppet = watched(stage, "steps", "lights: {step_watch_s: 1.5, step_warn_s: 3}")
    turn(stage, puppet, "STEP", "no data")
    step_until_ok(stage, puppet)
    os.kill(puppet.pid, signal.SIGSTOP)
    try:
        turn(stage, puppet, "STEP", "watch")
        assert turn(stage, puppet, "STEP", "WARN") == "no progress"
    finally:
        os.kill(puppet.pid, signal.SIGCONT)
    step_until_ok(stage, puppet)
    puppet.kill()
    assert turn(stage, puppet, "STEP", "CRIT") == "puppet crashed"
    assert stage.status(puppet.run_dir)["run"]["state"] == "crashed"


def test_a_guard_that_cannot_record_turns_the_disk_light(stage: Stage) -> None:
    """See tests/faults/test_disk_full.py for what is recorded, and what is not."""
    from tests.faults.small_disk import forbid_growth

    puppet = watched(stage, "recording")
    guard_pid = stage.status(puppet.run_dir)["guard"]["pid"]
    with forbid_growth(guard_pid):
        meaning = turn(stage, puppet, "DISK", "CRIT")
        assert meaning.startswith("not recording: ")
    turn(stage, puppet, "DISK", "ok")
    wait_for(lambda: stage.status(puppet.run_dir)["guard"]["recording"], "recording again")


def _put_a_file_in_the_way(folder: Path) -> None:
    folder.rename(folder.with_name("checkpoints.aside"))
    folder.write_text("no directory")
