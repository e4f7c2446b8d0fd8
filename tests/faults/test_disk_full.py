"""A disk that fills up: said since when, the live view goes on, recording resumes, the gap told."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memwatch.runtime.runs.attach import Attachment
from tests.e2e.stage import Process, Puppet, Stage, light, memory
from tests.faults.small_disk import forbid_growth, tmpfs
from tests.waiting import wait_for

pytestmark = pytest.mark.e2e

MB = 1_000_000
TMPFS_BYTES = 3 * MB


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


def watched(stage: Stage) -> tuple[Puppet, Process]:
    puppet = stage.puppet()
    guard = stage.guard(puppet.run_dir)
    stage.wait_status(puppet.run_dir, lambda s: s["guard"]["recording"], "recording")
    return puppet, guard


def not_recording(stage: Stage, puppet: Puppet) -> dict[str, Any]:
    return stage.wait_status(
        puppet.run_dir, lambda s: not s["guard"]["recording"], "the loss to be told"
    )


def live_goes_on(stage: Stage, puppet: Puppet) -> None:
    puppet.ask("hold", 40 * MB)
    before = memory(stage.status(puppet.run_dir))["used"]
    puppet.ask("hold", 40 * MB)
    stage.wait_status(
        puppet.run_dir, lambda s: memory(s)["used"] > before + 20 * MB, "news of the agent"
    )
    lsn = puppet.ask("note", "still here")
    stage.wait_status(puppet.run_dir, lambda s: s["source"]["last_lsn"] >= lsn, "the agent's log")


def told_on_every_screen(stage: Stage, puppet: Puppet, why: str) -> None:
    shown = stage.cli("status", str(puppet.run_dir))
    assert shown.returncode == 1
    assert "NOT RECORDING since " in shown.stdout
    assert why in shown.stdout
    assert "NOT RECORDING" in stage.cli("status", str(puppet.run_dir), "--line").stdout
    found = light(stage.status(puppet.run_dir), "DISK")
    assert found["word"] == "CRIT"
    assert why in found["meaning"]


def recording_resumed(stage: Stage, puppet: Puppet, lost: dict[str, Any]) -> None:
    """Wait until all is recorded again, and look at the gap that was written down."""
    status = stage.wait_status(
        puppet.run_dir, lambda s: s["guard"]["recording"], "recording to resume by itself"
    )
    assert status["guard"]["not_recording_since_us"] is None
    since_us = lost["guard"]["not_recording_since_us"]
    session = stage.session(puppet.run_dir)
    gaps = wait_for(
        lambda: [e for e in session.events(0, 1000) if e.kind == "gap"], "the gap to be told"
    )
    assert len(gaps) == 1
    assert gaps[0].text.startswith("nothing recorded for ")
    assert gaps[0].t_us >= since_us
    session.close()
    assert stage.cli("status", str(puppet.run_dir)).returncode == 0


def history_is_whole(stage: Stage, puppet: Puppet, guard: Process) -> None:
    """After a restart only the history can know: experiments, and the gap."""
    assert stage.cli("guard", "--stop", str(puppet.run_dir)).returncode == 0
    guard.wait()
    stage.guard(puppet.run_dir)
    session = stage.session(puppet.run_dir)
    texts = [event.text for event in session.events(0, 1000)]
    assert sum(text.startswith("nothing recorded for ") for text in texts) == 1
    assert stage.status(puppet.run_dir)["progress"]["experiments"] == {"kept": 4}
    session.close()


def test_files_that_cannot_grow(stage: Stage) -> None:
    """The same for any user: a limit on the size of files makes every append fail."""
    puppet, guard = watched(stage)
    puppet.ask("experiments", 2)
    with forbid_growth(guard.pid):
        lost = not_recording(stage, puppet)
        puppet.ask("experiments", 2)
        live_goes_on(stage, puppet)
        told_on_every_screen(stage, puppet, os.strerror(errno.EFBIG))
        assert guard.alive
    recording_resumed(stage, puppet, lost)
    history_is_whole(stage, puppet, guard)


def test_it_heals_though_the_agent_has_gone(stage: Stage) -> None:
    """With nothing left to append, recording must still find out that it can."""
    puppet, guard = watched(stage)
    with forbid_growth(guard.pid):
        not_recording(stage, puppet)
        puppet.ask("close")
        puppet.end()
        stage.wait_status(puppet.run_dir, lambda s: s["run"]["state"] == "ended", "the end")
    stage.wait_status(puppet.run_dir, lambda s: s["guard"]["recording"], "recording to resume")


def test_a_full_file_system(stage: Stage) -> None:
    stage.home.mkdir(mode=0o700)
    with tmpfs(stage.home, TMPFS_BYTES) as refusal:
        if refusal:
            pytest.skip(refusal)
        puppet, guard = watched(stage)
        puppet.ask("experiments", 2)
        filler = stage.home / "filler"
        _fill(filler)
        lost = not_recording(stage, puppet)
        puppet.ask("experiments", 2)
        live_goes_on(stage, puppet)
        _until_the_log_is_full(stage, puppet, filler)
        told_on_every_screen(stage, puppet, "guard.wal: ")
        assert guard.alive
        filler.unlink()
        recording_resumed(stage, puppet, lost)
        history_is_whole(stage, puppet, guard)
        for process in stage.processes:
            process.end()


def test_a_guard_on_a_full_disk_is_one_sentence(stage: Stage) -> None:
    stage.home.mkdir(mode=0o700)
    puppet = stage.puppet()
    with tmpfs(stage.home, TMPFS_BYTES) as refusal:
        if refusal:
            pytest.skip(refusal)
        _fill(stage.home / "filler")
        done = stage.cli("guard", str(puppet.run_dir), "--detach")
        if done.returncode == 0:  # a directory needs no room here: then it begins, and says so
            not_recording(stage, puppet)
            assert stage.cli("guard", "--stop", str(puppet.run_dir)).returncode == 0
        else:
            assert done.returncode == 2
            assert done.stderr.count("\n") == 1
            assert Attachment(puppet.run_dir).guard_pid is None


def _fill(path: Path) -> None:
    """Write until nothing fits any more."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        for size in (1 << 16, 1 << 12, 1):
            while True:
                try:
                    os.write(fd, b"x" * size)
                except OSError:
                    break
    finally:
        os.close(fd)


def _until_the_log_is_full(stage: Stage, puppet: Puppet, filler: Path) -> None:
    """The open page of the guard's log takes some records yet: wait until it does not."""

    def full() -> bool:
        _fill(filler)
        why = str(stage.status(puppet.run_dir)["guard"]["not_recording_why"])
        return why.startswith("guard.wal: ")

    wait_for(full, "the guard's own log to be refused", 40.0)
