"""Room on a disk is told, or is unknown: a disk that does not answer holds up nobody."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from memwatch.domain.clock import ManualClock
from memwatch.host import deadline
from memwatch.host.deadline import ask
from memwatch.host.disk import directory_bytes, disk_sample


def test_room_agrees_with_the_system(tmp_path: Path) -> None:
    clock = ManualClock()
    (tmp_path / "a").write_bytes(b"x" * 100_000)
    sample = disk_sample(tmp_path, clock)
    assert sample is not None
    room = os.statvfs(tmp_path)
    assert sample.t_us == clock.wall_us()
    assert sample.total_bytes == room.f_blocks * room.f_frsize
    assert 0 < sample.free_bytes <= sample.total_bytes
    assert sample.run_bytes is not None
    assert sample.run_bytes >= 100_000


def test_what_a_directory_occupies(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert directory_bytes(tmp_path) == 0
    (inner / "file").write_bytes(b"x" * 50_000)
    (tmp_path / "other name").hardlink_to(inner / "file")
    (tmp_path / "link").symlink_to("/usr")
    (tmp_path / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    size = directory_bytes(tmp_path)
    assert size is not None
    assert 50_000 <= size < 100_000


def test_what_somebody_counted_is_not_counted_again(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").write_bytes(bytes(100_000))
    sample = disk_sample(tmp_path / "store.sqlite", ManualClock(), counted=7)
    assert sample is not None
    assert (sample.run_bytes, sample.total_bytes > 0) == (7, True)


def test_what_is_not_there_is_unknown_and_no_zero(tmp_path: Path) -> None:
    assert directory_bytes(tmp_path / "none") is None
    assert disk_sample(tmp_path / "none", ManualClock()) is None


def test_counting_ends_at_its_deadline(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    assert directory_bytes(tmp_path, -1.0) is None


def test_a_dead_disk_costs_one_thread_and_no_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    alive = threading.Event()
    calls = []

    def hang(path: Path) -> os.statvfs_result:
        calls.append(path)
        alive.wait(30)
        return statvfs(path)

    statvfs = os.statvfs
    monkeypatch.setattr(os, "statvfs", hang)
    for _ in range(5):
        assert disk_sample(tmp_path, ManualClock(), 0.01) is None
    assert len(calls) == 1
    alive.set()
    waiting = deadline._hanging[f"room of {tmp_path}"]
    assert waiting.wait(10)
    assert disk_sample(tmp_path, ManualClock(), 10) is not None, (
        "it is asked again once it answered"
    )


def test_an_answer_none_and_a_failure() -> None:
    assert ask("none", lambda: None, 10) is None
    assert ask("one", lambda: 1, 10) == 1

    def fail() -> int:
        raise OSError("broken")

    assert ask("failure", fail, 10) is None
    assert ask("failure", lambda: 2, 10) == 2
