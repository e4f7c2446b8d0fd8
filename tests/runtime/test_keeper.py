"""The keeper starts again what was killed, and knows when to give up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memwatch.runtime.runs.keeper import keeper_of, kept
from tests.waiting import wait_for

_CHILD = """
import os, sys, time
with open(sys.argv[1], "a") as file:
    file.write(f"{os.getpid()}\\n")
time.sleep(600)
"""


class Kept:
    """A keeper with a child that writes down each of its starts."""

    def __init__(self, folder: Path, most: int = 5, code: str = _CHILD) -> None:
        self.starts = folder / "starts of it; $(touch owned) `touch owned`"
        command = [sys.executable, "-c", code, str(self.starts)]
        self.popen = subprocess.Popen(
            kept(command, most=most),
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            cwd=folder,
            start_new_session=True,
        )

    def child(self, number: int = 1) -> int:
        """Return the process of the n-th start, once it is there."""
        return wait_for(lambda: self._pids()[number - 1 : number], f"start {number}")[0]

    def _pids(self) -> list[int]:
        if not self.starts.exists():
            return []
        return [int(line) for line in self.starts.read_text().splitlines()]

    def wait(self) -> tuple[int, str]:
        """Return the status of the keeper and what it said."""
        _, said = self.popen.communicate(timeout=20)
        return self.popen.returncode, said


@pytest.fixture
def keepers() -> Iterator[list[Kept]]:
    """Keepers to be ended after the test, with what they keep."""
    made: list[Kept] = []
    yield made
    for one in made:
        if one.popen.poll() is None:
            one.popen.terminate()
            one.popen.communicate(timeout=20)


def test_a_killed_one_comes_again_and_says_so(tmp_path: Path, keepers: list[Kept]) -> None:
    keeper = Kept(tmp_path)
    keepers.append(keeper)
    first = keeper.child(1)
    assert keeper_of(first) == keeper.popen.pid
    os.kill(first, signal.SIGKILL)
    second = keeper.child(2)
    assert keeper_of(second) == keeper.popen.pid
    keeper.popen.terminate()
    status, said = keeper.wait()
    assert (status, said) == (
        0,
        "memwatch: the guard was killed by signal 9 and is started again (1 of 5)\n",
    )
    wait_for(lambda: keeper_of(second) is None and not Path(f"/proc/{second}").exists(), "its end")
    assert list(tmp_path.iterdir()) == [keeper.starts], "nothing in its words was run"


@pytest.mark.parametrize("status", [0, 2])
def test_an_end_of_its_own_is_the_end(tmp_path: Path, status: int) -> None:
    keeper = Kept(tmp_path, code=f"raise SystemExit({status})")
    assert keeper.wait() == (status, "")


def test_who_is_told_to_end_before_it_listens_stays_away(
    tmp_path: Path, keepers: list[Kept]
) -> None:
    keeper = Kept(tmp_path)
    keepers.append(keeper)
    os.kill(keeper.child(1), signal.SIGTERM)
    assert keeper.wait() == (128 + signal.SIGTERM, "")


def test_a_hang_up_ends_neither(tmp_path: Path, keepers: list[Kept]) -> None:
    keeper = Kept(tmp_path)
    keepers.append(keeper)
    child = keeper.child(1)
    for pid in (child, keeper.popen.pid):
        os.kill(pid, signal.SIGHUP)
    os.kill(child, signal.SIGKILL)
    assert keeper_of(keeper.child(2)) == keeper.popen.pid
    keeper.popen.terminate()
    assert "killed by signal 9" in keeper.wait()[1], "the hang-up before it did nothing"


def test_after_too_many_it_gives_up_loudly(tmp_path: Path) -> None:
    keeper = Kept(tmp_path, most=1, code="import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    status, said = keeper.wait()
    again, given_up = said.splitlines()
    assert status == 1
    assert again == "memwatch: the guard was killed by signal 11 and is started again (1 of 1)"
    assert given_up == (
        "memwatch: the guard was killed by signal 11 again; 1 restarts in 10 min did not help: "
        "NOTHING GUARDS THIS RUN"
    )


def test_a_defect_is_tried_again_too(tmp_path: Path) -> None:
    keeper = Kept(tmp_path, most=1, code="raise SystemExit(1)")
    status, said = keeper.wait()
    assert status == 1
    assert said.startswith("memwatch: the guard ended with status 1 and is started again (1 of 1)")


def test_nobody_keeps_this_process() -> None:
    assert keeper_of(os.getpid()) is None
    assert keeper_of(1) is None
