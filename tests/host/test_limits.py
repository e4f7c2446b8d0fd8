"""The limit that binds is found wherever the process really is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memwatch.domain.snapshot import Limit
from memwatch.host.limits import binding, host_memory, memory_limits
from tests.host.fake_proc import FakeProc

MIB = 1 << 20
UNLIMITED_V1 = 9223372036854771712
V2 = "/ /sys/fs/cgroup cgroup2 rw,nsdelegate"
V1 = "/ /sys/fs/cgroup/memory cgroup rw,memory"


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path)


def found(proc: FakeProc, pid: int = 7) -> list[tuple[str, int, bool]]:
    limits = memory_limits(pid, proc.path, proc.root)
    return [(limit.name, limit.bytes, limit.in_force) for limit in limits]


def test_version_2_counts_each_group_up_to_the_top(proc: FakeProc) -> None:
    proc.mounts(V2)
    proc.groups(7, "0::/user.slice/agent.scope/inner")
    top = "/sys/fs/cgroup/user.slice"
    proc.limit(f"{top}/memory.max", "max")
    proc.limit(f"{top}/memory.high", 900 * MIB)
    proc.limit(f"{top}/agent.scope/memory.max", 500 * MIB)
    proc.limit(f"{top}/agent.scope/memory.high", "max")
    proc.limit(f"{top}/agent.scope/inner/memory.max", 700 * MIB)
    proc.limit(f"{top}/other/memory.max", 1)
    assert found(proc) == [
        ("cgroup /user.slice/agent.scope/inner memory.max", 700 * MIB, True),
        ("cgroup /user.slice/agent.scope memory.max", 500 * MIB, True),
        ("cgroup /user.slice memory.high", 900 * MIB, True),
    ]
    smallest = binding(memory_limits(7, proc.path, proc.root))
    assert smallest is not None
    assert smallest.name == "cgroup /user.slice/agent.scope memory.max"


def test_version_1_ignores_the_huge_numbers_that_mean_no_limit(proc: FakeProc) -> None:
    proc.mounts("/ /sys/fs/cgroup/cpu cgroup rw,cpu", V1)
    proc.groups(7, "3:cpu:/elsewhere", "2:memory:/box/agent", "1:name=systemd:/x", "0::/")
    top = "/sys/fs/cgroup/memory"
    for group in ("", "/box", "/box/agent"):
        proc.limit(f"{top}{group}/memory.limit_in_bytes", UNLIMITED_V1)
        proc.limit(f"{top}{group}/memory.soft_limit_in_bytes", UNLIMITED_V1)
        proc.limit(f"{top}{group}/memory.use_hierarchy", 1)
    assert found(proc) == []
    proc.limit(f"{top}/box/memory.limit_in_bytes", 300 * MIB)
    proc.limit(f"{top}/box/memory.memsw.limit_in_bytes", 400 * MIB)
    proc.limit(f"{top}/box/agent/memory.soft_limit_in_bytes", 100 * MIB)
    assert found(proc) == [
        ("cgroup /box/agent memory.soft_limit_in_bytes", 100 * MIB, False),
        ("cgroup /box memory.limit_in_bytes", 300 * MIB, True),
        ("cgroup /box memory.memsw.limit_in_bytes", 400 * MIB, True),
    ]
    smallest = binding(memory_limits(7, proc.path, proc.root))
    assert smallest is not None
    assert smallest.bytes == 300 * MIB, "a soft limit binds nothing"


def test_a_version_1_group_without_hierarchy_does_not_bind_those_below(proc: FakeProc) -> None:
    proc.mounts(V1)
    proc.groups(7, "2:memory:/box/agent")
    proc.limit("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", 300 * MIB)
    proc.limit("/sys/fs/cgroup/memory/box/memory.use_hierarchy", 0)
    proc.limit("/sys/fs/cgroup/memory/box/agent/memory.limit_in_bytes", 500 * MIB)
    proc.limit("/sys/fs/cgroup/memory/box/agent/memory.use_hierarchy", 0)
    assert found(proc) == [
        ("cgroup /box/agent memory.limit_in_bytes", 500 * MIB, True),
        ("cgroup /box memory.limit_in_bytes", 300 * MIB, False),
    ]


def test_both_versions_side_by_side(proc: FakeProc) -> None:
    proc.mounts(V1, "/ /sys/fs/cgroup/unified cgroup2 rw")
    proc.groups(7, "4:memory:/a", "0::/b")
    proc.limit("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", 300 * MIB)
    proc.limit("/sys/fs/cgroup/unified/b/memory.max", 200 * MIB)
    assert [limit for _, limit, _ in found(proc)] == [300 * MIB, 200 * MIB]


def test_a_container_sees_a_part_of_the_tree(proc: FakeProc) -> None:
    proc.mounts("/docker/abc /sys/fs/cgroup/memory cgroup rw,memory")
    proc.groups(7, "2:memory:/docker/abc/inner")
    proc.limit("/sys/fs/cgroup/memory/memory.limit_in_bytes", 300 * MIB)
    proc.limit("/sys/fs/cgroup/memory/inner/memory.limit_in_bytes", 200 * MIB)
    assert found(proc) == [
        ("cgroup /inner memory.limit_in_bytes", 200 * MIB, True),
        ("cgroup / memory.limit_in_bytes", 300 * MIB, True),
    ]


@pytest.mark.parametrize("group", ["/../../elsewhere", "/other/place"])
def test_a_group_that_we_cannot_see_leaves_the_top(proc: FakeProc, group: str) -> None:
    proc.mounts("/box /sys/fs/cgroup cgroup2 rw")
    proc.groups(7, f"0::{group}")
    proc.limit("/sys/fs/cgroup/memory.max", 300 * MIB)
    proc.limit("/elsewhere/memory.max", 1 * MIB)
    assert found(proc) == [("cgroup / memory.max", 300 * MIB, True)]


@pytest.mark.parametrize("text", ["max", "0", "-1", "", "12 MB", str(UNLIMITED_V1)])
def test_what_is_no_limit(proc: FakeProc, text: str) -> None:
    proc.mounts(V2)
    proc.groups(7, "0::/a")
    proc.limit("/sys/fs/cgroup/a/memory.max", text)
    assert found(proc) == []
    assert binding([]) is None


def test_a_hostile_name_of_a_group_is_inert(proc: FakeProc) -> None:
    proc.mounts(V2)
    proc.groups(7, "0::/a\x1b[2Jb")
    proc.limit("/sys/fs/cgroup/a\x1b[2Jb/memory.max", MIB)
    ((name, _, _),) = found(proc)
    assert name == "cgroup /a\ufffd[2Jb memory.max"


def test_nothing_to_be_read_is_no_limit(proc: FakeProc) -> None:
    assert found(proc) == []
    proc.mounts(V2)
    assert found(proc) == []
    proc.groups(7, "nonsense", "0::/a")
    assert found(proc) == []


def test_binding_is_the_smallest_in_force() -> None:
    limits = [
        Limit(name="a", bytes=3),
        Limit(name="b", bytes=1, in_force=False),
        Limit(name="c", bytes=2),
    ]
    assert binding(limits) == limits[2]
    assert binding(limits[1:2]) is None


def test_host_memory(proc: FakeProc) -> None:
    assert host_memory(proc.path) is None
    (proc.path / "meminfo").write_text("MemTotal:  2000 kB\nMemFree: 1 kB\nMemAvailable: 900 kB\n")
    assert host_memory(proc.path) == (2000 * 1024, 900 * 1024)


def test_this_machine() -> None:
    memory = host_memory()
    assert memory is not None
    assert 0 < memory.available_bytes <= memory.total_bytes
    for limit in memory_limits(os.getpid()):
        assert limit.bytes > 0
