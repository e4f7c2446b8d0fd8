"""`memwatch RUN` on a terminal: attaches or starts the guard, and leaves it watching."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from memwatch.runtime.runs.attach import Attachment
from tests.e2e.stage import Stage, demo_run, files, processes_of
from tests.e2e.terminal import OnTerminal
from tests.waiting import wait_for

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


def test_it_starts_a_guard_that_stays_when_it_quits(stage: Stage) -> None:
    puppet = stage.puppet("stays")
    viewer = OnTerminal(stage, str(puppet.run_dir))
    viewer.read_until(puppet.run_id)
    attachment = Attachment(puppet.run_dir)
    pid = wait_for(lambda: attachment.guard_pid, "the guard")
    viewer.read_until("nobody has said yet")  # what it may do: asked of every new run
    viewer.press("\r")
    viewer.read_until("quit")
    viewer.press("q")
    viewer.read_until(f"guard {pid} goes on watching {puppet.run_id}: WILL NOT ACT (")
    assert viewer.wait() == 0
    assert attachment.guard_pid == pid
    again = OnTerminal(stage, puppet.run_id, "--view")
    again.read_until(puppet.run_id)
    assert attachment.guard_pid == pid, "the one that is there is used"
    again.press("q")
    assert again.wait() == 0
    assert stage.cli("guard", "--stop", puppet.run_id).returncode == 0


def test_a_terminal_that_vanishes_takes_the_viewer_only(stage: Stage) -> None:
    puppet = stage.puppet("vanishes")
    viewer = OnTerminal(stage, str(puppet.run_dir))
    viewer.read_until(puppet.run_id)
    attachment = Attachment(puppet.run_dir)
    pid = wait_for(lambda: attachment.guard_pid, "the guard")
    viewer.hang_up()
    viewer.wait(seconds=10.0)
    assert attachment.guard_pid == pid
    assert stage.status(puppet.run_dir)["guard"]["recording"]
    assert stage.cli("guard", "--stop", puppet.run_id).returncode == 0


def test_a_viewer_finds_the_guard_that_comes_again(stage: Stage) -> None:
    puppet = stage.puppet("returns")
    guard = stage.guard(puppet.run_dir)
    viewer = OnTerminal(stage, str(puppet.run_dir), "--view")
    viewer.read_until(puppet.run_id)
    guard.kill()
    guard.wait()
    viewer.read_until("guard gone since ")
    viewer.read_until(f"memwatch guard {puppet.run_id} --detach")
    stage.guard(puppet.run_dir)
    puppet.ask("note", "and-on-it-goes")
    viewer.press("7")  # the log
    viewer.read_until("and-on-it-goes")
    viewer.press("q")
    assert viewer.wait() == 0


def test_a_demo_ends_with_its_dashboard() -> None:
    with Stage() as stage:
        viewer = OnTerminal(stage, "demo")
        viewer.read_until("demo clock")
        assert len(processes_of(stage.home)) == 4, "both keepers, engine and guard"
        viewer.press("q")
        viewer.read_until("the demo is over; all that stays is host.json")
        assert viewer.wait() == 0
        assert processes_of(stage.home) == []
        assert files(stage.home) == []


def test_a_demo_outlives_a_terminal_that_vanishes() -> None:
    with Stage() as stage:
        viewer = OnTerminal(stage, "demo")
        viewer.read_until("demo clock")
        run_dir = demo_run(stage)
        assert run_dir is not None
        viewer.hang_up()
        viewer.wait(seconds=10.0)
        seq = stage.status(run_dir)["seq"]
        stage.wait_status(run_dir, lambda s: s["seq"] > seq + 1, "the demo to go on")
        back = OnTerminal(stage)
        back.read_until("demo clock")
        back.press("q")
        back.wait()
        (keeper,) = (pid for pid in processes_of(stage.home) if "demo.keeper" in _command(pid))
        os.kill(keeper, signal.SIGTERM)
        wait_for(lambda: processes_of(stage.home) == [], "all processes gone")
        assert files(stage.home) == []


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


@pytest.mark.parametrize("name", ["missing", "\x1b]0;x\x07"])
def test_a_wrong_path_is_one_sentence_and_starts_nothing(stage: Stage, name: str) -> None:
    viewer = OnTerminal(stage, f"./{name}")
    assert viewer.wait() == 2
    said = viewer.rest()
    assert said.startswith("memwatch: ")
    assert said.count("\n") == 1
    assert said.rstrip("\r\n").isprintable()


def test_without_a_run_it_says_what_to_do(stage: Stage) -> None:
    with Stage() as alone:
        viewer = OnTerminal(alone)
        assert viewer.wait() == 2
        assert viewer.rest() == (
            "memwatch: no run is alive here; name a run directory, or try `memwatch demo` "
            "(`memwatch --help` says more)\r\n"
        )
        assert not alone.home.exists()


def test_a_screen_that_would_go_into_a_file_is_refused(stage: Stage) -> None:
    viewer = OnTerminal(stage, errors_apart=True)
    _, err = viewer.popen.communicate(timeout=30)
    assert viewer.popen.returncode == 2
    assert err.startswith("memwatch: the dashboard needs a terminal")
