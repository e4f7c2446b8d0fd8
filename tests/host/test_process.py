"""A process is known by more than its number."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from memwatch.domain.clock import ManualClock
from memwatch.host.process import (
    Identity,
    age_us,
    boot_id,
    identity_of,
    identity_of_run,
    is_alive,
    waited_s,
)
from memwatch.host.procfs import read_stat
from memwatch.wal.manifest import RunManifest
from tests.host.fake_proc import BOOT_ID, FakeProc


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path)


def test_we_are_alive_and_a_child_is_until_it_ends() -> None:
    me = identity_of(os.getpid())
    assert me is not None
    assert me.exe == str(Path("/proc/self/exe").readlink())
    assert me.uid == os.getuid()
    assert is_alive(me)
    code = "import sys; sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as child:
        it = identity_of(child.pid)
        assert it is not None
        assert is_alive(it)
        assert it != me
        assert child.stdin is not None
        child.stdin.close()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not is_alive(it), "a zombie is dead"
        assert identity_of(child.pid) is None
    assert not is_alive(it)


def test_a_number_given_again_is_another_process(proc: FakeProc) -> None:
    proc.add(7, start_ticks=500)
    it = identity_of(7, proc.path)
    assert it == Identity(BOOT_ID, 7, 500, "", 1000)
    assert is_alive(it, proc.path)
    proc.add(7, start_ticks=501)
    assert not is_alive(it, proc.path)


@pytest.mark.parametrize(
    "change", [{"boot_id": "another"}, {"start_ticks": 0}, {"uid": 0}, {"pid": 8}, {"boot_id": ""}]
)
def test_each_part_of_an_identity_counts(proc: FakeProc, change: dict[str, object]) -> None:
    proc.add(7, start_ticks=500)
    it = identity_of(7, proc.path)
    assert it is not None
    assert not is_alive(replace(it, **change), proc.path)


def test_the_executable_counts_where_it_is_known(proc: FakeProc) -> None:
    proc.add(7, start_ticks=500)
    (proc.path / "7" / "exe").symlink_to("/usr/bin/python3 (deleted)")
    it = identity_of(7, proc.path)
    assert it is not None
    assert it.exe == "/usr/bin/python3", "an upgrade makes no other process of it"
    assert is_alive(it, proc.path)
    (proc.path / "7" / "exe").unlink()
    (proc.path / "7" / "exe").symlink_to("/usr/bin/ssh")
    assert not is_alive(it, proc.path)


@pytest.mark.parametrize("name", [b"a) S 1 1 1", b"((", b"x\n) Z 9", b"\xff\xfe", b""])
def test_a_name_cannot_pretend_to_be_fields(proc: FakeProc, name: bytes) -> None:
    proc.add(7, ppid=3, start_ticks=500, command=name)
    stat = read_stat(proc.path, 7)
    assert stat is not None
    assert (stat.command, stat.state, stat.ppid, stat.start_ticks) == (name, "S", 3, 500)


@pytest.mark.parametrize("text", [b"", b"7 (x", b"7 (x) S", b"7 (x) S a b c" + b" d" * 30])
def test_a_broken_stat_is_no_process(proc: FakeProc, text: bytes) -> None:
    proc.add(7)
    (proc.path / "7" / "stat").write_bytes(text)
    assert read_stat(proc.path, 7) is None
    assert identity_of(7, proc.path) is None


def test_the_process_that_a_run_registered() -> None:
    run = RunManifest(format=1, run_id="r", agent="a", pid=7, start_ticks=500, boot_id=BOOT_ID)
    assert identity_of_run(run) == Identity(BOOT_ID, 7, 500)
    for change in ({"pid": 0}, {"pid": -1}, {"start_ticks": 0}, {"boot_id": ""}):
        assert identity_of_run(replace(run, **change)) is None


def test_boot_id_is_stable() -> None:
    assert boot_id() == boot_id() != ""
    assert boot_id(Path("/nowhere")) == ""


def test_the_age_of_this_process(proc: FakeProc) -> None:
    tick_us = 1_000_000 // os.sysconf("SC_CLK_TCK")
    proc.add(os.getpid(), start_ticks=500)
    assert age_us(ManualClock(boot_us=500 * tick_us + 7), proc.path) == 7
    assert age_us(ManualClock(boot_us=499 * tick_us), proc.path) is None, "not begun yet"
    assert age_us(ManualClock(), Path("/nowhere")) is None


def test_how_long_others_had_the_processor(proc: FakeProc) -> None:
    assert waited_s(proc.path) is None
    (proc.path / "self").mkdir(exist_ok=True)
    for text, expected in ((b"5 1500000000 9\n", 1.5), (b"5 x 9", None), (b"", None)):
        (proc.path / "self" / "schedstat").write_bytes(text)
        assert waited_s(proc.path) == expected
