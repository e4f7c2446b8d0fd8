"""What the system refuses is said and tried again; nothing is lost and nothing raised."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memwatch.wal.segment import segment_name
from tests.ingest.log_dir import LogDir, Reader, line


@pytest.fixture
def log(tmp_path: Path) -> LogDir:
    return LogDir(tmp_path / "wal")


@pytest.fixture
def reader() -> Reader:
    return Reader()


class Refusals:
    """Makes system calls of the reader fail while `error` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.error: int | None = None
        self.of = ""
        self._monkeypatch = monkeypatch

    def arm(self, name: str) -> None:
        real: Callable[..., Any] = getattr(os, name)

        def call(first: Any, *rest: Any) -> Any:
            if self.error is not None and (not self.of or str(first).endswith(self.of)):
                raise OSError(self.error, os.strerror(self.error), str(first))
            return real(first, *rest)

        self._monkeypatch.setattr(os, name, call)


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> Refusals:
    return Refusals(monkeypatch)


@pytest.mark.parametrize("name", ["open", "pread", "fstat"])
@pytest.mark.parametrize("error", [errno.EIO, errno.EACCES, errno.ESTALE])
def test_a_failing_disk_costs_no_record(
    log: LogDir, reader: Reader, refusals: Refusals, name: str, error: int
) -> None:
    log.fill(1, 10)
    log.fill(11, 15)
    tailer = log.tailer(chunk_bytes=200)
    refusals.arm(name)
    reader.poll(tailer)
    refusals.error = error
    for _ in range(3):
        reader.poll(tailer)
        assert tailer.error or name == "open", "an open file needs no opening"
        reader.backfill(tailer)
        assert tailer.error
        assert os.strerror(error) in tailer.error
    log.write(11, line(16))
    refusals.error = None
    reader.settle(tailer)
    assert tailer.error is None
    assert reader.lsns() == list(range(1, 17))
    assert reader.faults == []


def test_an_unreadable_segment_holds_up_no_other(
    log: LogDir, reader: Reader, refusals: Refusals
) -> None:
    for first in (1, 4, 7, 10):
        log.fill(first, first + 2)
    refusals.arm("open")
    refusals.of, refusals.error = segment_name(4), errno.EACCES
    tailer = log.tailer()
    reader.settle(tailer)
    assert reader.lsns() == [1, 2, 3, *range(7, 13)]
    assert tailer.error == f"cannot read the log: Permission denied ({segment_name(4)})"
    assert tailer.backfill_share is not None
    refusals.error = None
    reader.settle(tailer)
    assert reader.lsns() == list(range(1, 13))
    assert tailer.backfill_share is None
    assert reader.faults == []


def test_an_unreadable_new_segment_is_read_as_soon_as_it_can_be(
    log: LogDir, reader: Reader, refusals: Refusals
) -> None:
    log.fill(1, 3)
    tailer = log.tailer()
    reader.settle(tailer)
    refusals.arm("open")
    refusals.of, refusals.error = segment_name(4), errno.EACCES
    log.fill(4, 6)
    reader.settle(tailer)
    assert tailer.error
    log.fill(7, 9)
    reader.settle(tailer)
    assert reader.lsns() == [1, 2, 3, 7, 8, 9], "newer ones are read meanwhile"
    refusals.error = None
    reader.settle(tailer)
    assert reader.lsns() == list(range(1, 10))
    assert reader.faults == []


def test_a_directory_that_cannot_be_listed(log: LogDir, reader: Reader, refusals: Refusals) -> None:
    log.fill(1, 3)
    tailer = log.tailer()
    reader.settle(tailer)
    refusals.arm("scandir")
    refusals.error = errno.EACCES
    log.write(1, line(4))
    log.fill(5, 6)
    reader.settle(tailer)
    assert tailer.error == "cannot read the log: Permission denied (wal)"
    assert reader.lsns() == [1, 2, 3, 4], "what is open is read on"
    refusals.error = None
    reader.settle(tailer)
    assert reader.lsns() == [1, 2, 3, 4, 5, 6]
    assert reader.faults == []


def test_files_are_given_back(log: LogDir, reader: Reader) -> None:
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = count()
    for first in range(1, 60, 3):
        log.fill(first, first + 2)
    tailer = log.tailer()
    reader.settle(tailer)
    for first in range(61, 120, 3):
        log.fill(first, first + 2)
        reader.settle(tailer)
    assert count() == before + 1
    tailer.close()
    tailer.close()
    assert count() == before
