"""Rates of a disk: measured with a file that leaves nothing, told only when it came cold."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from memwatch.agent.files import SYSTEM_FILES
from memwatch.domain.clock import ManualClock
from memwatch.host import disk_rate
from memwatch.host.disk_rate import measure, measure_reading
from tests.faults.failing_files import FailingFiles

CLOCK = ManualClock(wall_us=7)
MB = 1_000_000


class Counting(FailingFiles):
    """Keeps what was opened, and how much was written."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[tuple[Path, int]] = []
        self.written = 0
        opens, writes = self.open, self.write

        def open_(path: Path, flags: int, mode: int = 0o777) -> int:
            self.opened.append((path, mode))
            return opens(path, flags, mode)

        def write(fd: int, data: bytes) -> int:
            count = writes(fd, data)
            self.written += count
            return count

        self.open, self.write = open_, write  # type: ignore[assignment] # it is a fake


def test_a_scratch_file_gives_both_rates_and_is_gone(tmp_path: Path) -> None:
    files = Counting()
    rate = measure(tmp_path, CLOCK, files, most_bytes=2 * MB)
    assert rate is not None
    assert rate.t_us == 7
    assert rate.write_bytes_per_s is not None
    assert rate.write_bytes_per_s > 0
    assert files.written == 2 * MB
    assert files.calls.count("fsync") == 1
    assert [mode for _, mode in files.opened] == [0o600]
    assert list(tmp_path.iterdir()) == []
    cold = rate.read_bytes_per_s is not None  # not on a file system in memory
    assert rate.how.endswith("read cold") == cold


def test_where_no_file_can_be_without_a_name_it_loses_it_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_TMPFILE")
    files = Counting()
    assert measure(tmp_path, CLOCK, files, most_bytes=MB) is not None
    assert files.calls[:2] == ["open", "unlink"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", ["open", "write", "fsync"])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_refuses_gives_none_and_keeps_nothing(
    tmp_path: Path, call: str, error: int
) -> None:
    files = FailingFiles()
    files.error = error
    files.fail_all(call)
    assert measure(tmp_path, CLOCK, files, most_bytes=MB) is None
    assert list(tmp_path.iterdir()) == []


def test_what_stays_in_memory_tells_no_rate_of_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(2 * MB))
    for share in (1.0, 0.5, None):
        monkeypatch.setattr(disk_rate, "forget_open", lambda *_, share=share: share)
        found = measure(tmp_path, CLOCK, SYSTEM_FILES, most_bytes=MB)
        assert found is not None
        assert found.read_bytes_per_s is None
        assert measure_reading(path, CLOCK) is None


def test_a_file_of_ours_is_read_as_far_as_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_rate, "forget_open", lambda *_: 0.0)
    path = tmp_path / "file"
    path.write_bytes(bytes(3 * MB))
    before = path.stat().st_mtime_ns
    rate = measure_reading(path, CLOCK, most_bytes=2 * MB)
    assert rate is not None
    assert rate.read_bytes_per_s is not None
    assert rate.write_bytes_per_s is None
    assert rate.how == "2.0M of a checkpoint, read cold"
    assert path.stat().st_mtime_ns == before


def test_what_is_no_file_of_ours_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_rate, "forget_open", lambda *_: 0.0)
    os.mkfifo(tmp_path / "pipe")
    real = tmp_path / "real"
    real.write_bytes(bytes(2 * MB))
    (tmp_path / "link").symlink_to(real)
    (tmp_path / "short").write_bytes(b"x")
    for name in ("pipe", "link", "short", "none", "."):
        assert measure_reading(tmp_path / name, CLOCK) is None
    monkeypatch.setattr(os, "geteuid", lambda: real.stat().st_uid + 1)
    assert measure_reading(real, CLOCK) is None


def test_of_a_huge_file_only_what_is_read_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def forgotten(_: int, length: int) -> float:
        asked.append(length)
        return 0.0

    monkeypatch.setattr(disk_rate, "forget_open", forgotten)
    path = tmp_path / "huge"
    path.write_bytes(bytes(3 * MB))
    assert measure_reading(path, CLOCK, most_bytes=2 * MB) is not None
    assert asked == [2 * MB]
    os.truncate(path, 1 << 40)  # what was never written is not read from a disk
    assert measure_reading(path, CLOCK, most_bytes=2 * MB) is None
