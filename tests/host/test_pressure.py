"""Pressure is told by the group of the agent, else by the machine, else by nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from memwatch.domain.control import Pressure
from memwatch.host.pressure import io_pressure, memory_pressure
from tests.host.fake_proc import FakeProc

V2 = "/ /sys/fs/cgroup cgroup2 rw"
GROUP = "sys/fs/cgroup/user.slice/agent.scope"
PSI = (
    "some avg10=12.50 avg60=3.25 avg300=0.01 total=815\n"
    "full avg10=1.75 avg60=0.50 avg300=0.00 total=99\n"
)


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    proc = FakeProc(tmp_path)
    proc.mounts(V2)
    proc.groups(7, "0::/user.slice/agent.scope")
    return proc


def write(proc: FakeProc, path: str, text: str) -> None:
    file = proc.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def of_machine(proc: FakeProc, text: str) -> None:
    (proc.path / "pressure").mkdir()
    (proc.path / "pressure" / "memory").write_text(text)


def test_the_group_of_the_agent_goes_first(proc: FakeProc) -> None:
    of_machine(proc, PSI.replace("12.50", "99.00"))
    write(proc, f"{GROUP}/memory.pressure", PSI)
    write(proc, f"{GROUP}/memory.events", "low 0\nhigh 5\nmax 40\noom 2\noom_kill 1\nodd\n")
    expected = Pressure(
        scope="cgroup", some_avg10=12.5, some_avg60=3.25, full_avg10=1.75, events=42
    )
    assert memory_pressure(7, proc.path, proc.root) == expected


@pytest.mark.parametrize("pid", [7, None])
def test_without_one_it_is_the_machine(proc: FakeProc, pid: int | None) -> None:
    of_machine(proc, PSI)
    expected = Pressure(scope="system", some_avg10=12.5, some_avg60=3.25, full_avg10=1.75)
    assert memory_pressure(pid, proc.path, proc.root) == expected


def test_the_top_group_is_the_machine(proc: FakeProc) -> None:
    proc.groups(7, "0::/")
    write(proc, "sys/fs/cgroup/memory.pressure", PSI)  # it tells pressure, and has no events
    of_machine(proc, PSI)
    found = memory_pressure(7, proc.path, proc.root)
    assert found is not None
    assert found.scope == "system"


@pytest.mark.parametrize("text", ["", "some avg10=1.00", "full avg10=x avg60=1", "\xff\n\n"])
def test_what_is_no_pressure_is_unknown(proc: FakeProc, text: str) -> None:
    of_machine(proc, text)
    assert memory_pressure(7, proc.path, proc.root) is None


def test_a_machine_that_does_not_tell(proc: FakeProc) -> None:
    assert memory_pressure(7, proc.path, proc.root) is None


def test_waiting_for_disks_is_told_by_the_machine(proc: FakeProc) -> None:
    assert io_pressure(proc.path) is None
    of_machine(proc, "")
    (proc.path / "pressure" / "io").write_text(PSI)
    assert io_pressure(proc.path) == 12.5
