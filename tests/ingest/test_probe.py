"""What a tree uses: on made-up machines to the byte, on this one against the kernel's own sums."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memwatch.domain.clock import ManualClock, SystemClock
from memwatch.domain.sample import TreeSample
from memwatch.host.process import Identity, identity_of
from memwatch.ingest.probe import TreeProbe
from tests.host.fake_proc import BOOT_ID, FakeProc

KIB = 1024
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    made = FakeProc(tmp_path)
    made.add(100, 1, rss_kib=5000, swap_kib=70, threads=4, arguments=b"/usr/bin/agent\0--fast\0")
    (made.path / "100" / "fd").mkdir()
    for number in range(3):
        (made.path / "100" / "fd" / str(number)).touch()
    return made


def probe(proc: FakeProc, clock: ManualClock | None = None) -> TreeProbe:
    return TreeProbe(Identity(BOOT_ID, 100, 1000), clock or ManualClock(), proc.path, ())


def test_sums_and_members(proc: FakeProc) -> None:
    proc.add(101, 100, rss_kib=9000, threads=2, arguments=b"python3\0/srv/tool.py\0")
    proc.add(102, 101, rss_kib=100, swap_kib=None, command=b"helper", arguments=b"")
    clock = ManualClock(boot_us=60_000_000)
    sample = probe(proc, clock).sample()
    assert sample.alive
    assert (sample.t_us, sample.m_us) == (clock.wall_us(), clock.boot_us())
    assert sample.rss_bytes == 14_100 * KIB
    assert sample.swap_bytes == 70 * KIB
    assert sample.used_bytes == 14_170 * KIB
    assert (sample.processes, sample.threads, sample.orphans, sample.fds) == (3, 7, 0, 3)
    assert [(m.pid, m.name) for m in sample.members] == [
        (101, "tool.py"),
        (100, "agent"),
        (102, "helper"),
    ]
    assert sample.members[1].age_s == pytest.approx(60 - 1000 / TICKS_PER_S)


def test_an_orphan_is_one_whose_parent_left(proc: FakeProc) -> None:
    proc.add(101, 100)
    proc.add(102, 101, rss_kib=3000)
    it = probe(proc)
    assert it.sample().orphans == 0
    proc.remove(101)
    proc.add(102, 1, rss_kib=3000)
    sample = it.sample()
    assert (sample.processes, sample.orphans) == (2, 1)
    assert [m.pid for m in sample.members if m.orphan] == [102]


def test_when_the_agent_is_gone_its_children_still_count(proc: FakeProc) -> None:
    proc.add(101, 100, rss_kib=3000)
    it = probe(proc)
    it.sample()
    for file in (proc.path / "100" / "fd").iterdir():
        file.unlink()
    (proc.path / "100" / "fd").rmdir()
    proc.remove(100)
    proc.add(101, 1, rss_kib=3000)
    sample = it.sample()
    assert (sample.alive, sample.processes, sample.orphans, sample.fds) == (False, 1, 1, None)
    assert sample.rss_bytes == 3000 * KIB


def test_only_the_largest_are_named(proc: FakeProc) -> None:
    for pid in range(200, 240):
        proc.add(pid, 100, rss_kib=pid)
    sample = probe(proc).sample()
    assert sample.processes == 41
    assert [m.pid for m in sample.members] == [100, *range(239, 230, -1)]


@pytest.mark.parametrize(
    "status", [b"", b"VmRSS: 1", b"\nVmRSS:\nVmSwap:\n", b"\nVmRSS:\t-5 kB\nVmSwap: x kB\n"]
)
def test_a_process_that_vanishes_while_it_is_read(proc: FakeProc, status: bytes) -> None:
    proc.add(101, 100)
    (proc.path / "101" / "status").write_bytes(status)
    (proc.path / "101" / "cmdline").unlink()
    sample = probe(proc).sample()
    assert sample.rss_bytes == 5000 * KIB
    assert sample.processes == 2
    (proc.path / "101" / "cmdline").touch()


@pytest.mark.parametrize(
    "arguments",
    [
        b"\x1b]0;owned\x07/x\x1b[2J\0", b"python3\0/tmp/\x1b[31m[red]x[/red]\0", b"\xff\xfe\0",
        b"a\nb\rc\0", "\u202egpj.exe\0".encode(), b"/" * 500 + b"\0", b"x" * 70_000,
    ],
)  # fmt: skip
def test_hostile_names_are_inert(proc: FakeProc, arguments: bytes) -> None:
    proc.add(100, 1, arguments=arguments, command=b"\x1b[2J")
    (member,) = probe(proc).sample().members
    assert member.name.isprintable()
    assert 0 < len(member.name) <= 60


def test_no_proc_at_all(tmp_path: Path) -> None:
    it = TreeProbe(Identity("b", 1, 1), ManualClock(), tmp_path / "none")
    assert it.sample() == TreeSample(t_us=it.sample().t_us, m_us=it.sample().m_us, alive=False)


# On this machine.

HOLDER = """
import sys
held = bytearray(int(sys.argv[1])) ; held[::4096] = b"x" * len(held[::4096])
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def begin(code: str, *arguments: str) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(child)
        return child

    yield begin
    for child in started:
        child.kill()
        child.communicate(timeout=10)


def watched(child: subprocess.Popen[str]) -> TreeProbe:
    identity = identity_of(child.pid)
    assert identity is not None
    return TreeProbe(identity, SystemClock())


def eventually(it: TreeProbe, holds: Callable[[TreeSample], bool]) -> TreeSample:
    """Sample until the condition holds, at most 20 s."""
    until = time.monotonic() + 20
    while True:
        sample = it.sample()
        if holds(sample):
            return sample
        assert time.monotonic() < until, sample
        time.sleep(0.01)


@pytest.mark.e2e
def test_memory_agrees_with_the_kernels_own_sum(
    start: Callable[..., subprocess.Popen[str]],
) -> None:
    child = start(HOLDER, str(60_000_000))
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    sample = watched(child).sample()
    rollup = Path(f"/proc/{child.pid}/smaps_rollup").read_text()
    words = dict(line.split(":", 1) for line in rollup.splitlines()[1:])
    rss, swap = (int(words[name].split()[0]) * KIB for name in ("Rss", "Swap"))
    assert sample.alive
    assert sample.used_bytes > 60_000_000
    assert sample.used_bytes == pytest.approx(rss + swap, rel=0.10)
    assert sample.fds is not None
    assert sample.fds >= 3
    assert 0 <= sample.members[0].age_s < 60


DOUBLE_FORK = """
import os, signal, sys
print("ready", flush=True)
sys.stdin.readline()
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        held = b"x" * 30_000_000
        os.write(write, b"1")
        signal.pause()
    os.read(read, 1)
    sys.stdin.readline()
    os._exit(0)
os.wait()
print("forked", flush=True)
sys.stdin.readline()
"""


@pytest.mark.e2e
def test_an_orphan_stays_ours_until_it_ends(start: Callable[..., subprocess.Popen[str]]) -> None:
    child = start(DOUBLE_FORK)
    assert child.stdout is not None
    assert child.stdin is not None
    assert child.stdout.readline() == "ready\n"
    it = watched(child)
    assert it.sample().processes == 1
    child.stdin.write("fork\n")
    child.stdin.flush()
    sample = eventually(it, lambda s: s.processes == 3 and s.rss_bytes > 30_000_000)
    assert sample.orphans == 0
    orphan = max(sample.members, key=lambda member: member.pid).pid
    child.stdin.write("leave\n")
    child.stdin.flush()
    try:
        sample = eventually(it, lambda s: s.processes == 2)
        assert sample.orphans == 1
        assert [m.pid for m in sample.members if m.orphan] == [orphan]
        assert sample.rss_bytes > 30_000_000
        child.kill()
        sample = eventually(it, lambda s: not s.alive)
        assert (sample.processes, sample.orphans) == (1, 1)
    finally:
        os.kill(orphan, 9)
    assert eventually(it, lambda s: s.processes == 0).rss_bytes == 0
