"""A full disk does not keep the guard from writing down what it does."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from memwatch.agent.log import LogWriter
from memwatch.domain.clock import ManualClock
from memwatch.runtime.guard.recorder import Recorder
from memwatch.runtime.guard.reserve import RESERVE_FILE, DiskReserve
from tests.faults.failing_files import FailingFiles

SIZE = 300_000


@pytest.fixture
def files() -> FailingFiles:
    return FailingFiles()


@pytest.fixture
def reserve(tmp_path: Path, files: FailingFiles) -> DiskReserve:
    reserve = DiskReserve(tmp_path, files)
    reserve.wanted_bytes = SIZE
    return reserve


def test_its_room_is_really_allocated(reserve: DiskReserve, tmp_path: Path) -> None:
    assert reserve.look() == ""
    found = (tmp_path / RESERVE_FILE).stat()
    assert found.st_size == SIZE
    assert found.st_blocks * 512 >= SIZE
    assert reserve.held_bytes == SIZE


def test_it_is_given_up_once_and_made_again(reserve: DiskReserve, files: FailingFiles) -> None:
    reserve.look()
    assert reserve.give_up()
    assert reserve.held_bytes == 0
    assert not reserve.give_up(), "there is no more to give"
    files.fail_all("allocate")
    assert "full" in reserve.look()
    assert reserve.look() == "", "told once"
    assert reserve.held_bytes == 0, "half of it would only take what is needed"
    files.heal()
    assert "again" in reserve.look()
    assert reserve.held_bytes == SIZE


def test_it_follows_the_policy(reserve: DiskReserve) -> None:
    reserve.look()
    reserve.wanted_bytes = 2 * SIZE
    reserve.look()
    assert reserve.held_bytes == 2 * SIZE
    reserve.wanted_bytes = 0
    assert reserve.look() == ""
    assert reserve.held_bytes == 0


def test_it_does_not_fill_a_disk_itself(reserve: DiskReserve, tmp_path: Path) -> None:
    room = os.statvfs(tmp_path)
    reserve.wanted_bytes = room.f_bavail * room.f_frsize // 2
    assert "full" in reserve.look()
    assert reserve.held_bytes == 0


def recorder_of(folder: Path, files: FailingFiles, reserve: DiskReserve) -> Recorder:
    clock = ManualClock()
    recorder = Recorder(
        folder, clock, lambda: LogWriter(folder, clock=clock, files=files, durability="os")
    )
    recorder.make_room = reserve.give_up
    return recorder


@pytest.mark.parametrize("short", [False, True])
def test_a_full_disk_forbids_no_record_while_there_is_a_reserve(
    reserve: DiskReserve, files: FailingFiles, tmp_path: Path, short: bool
) -> None:
    reserve.look()
    recorder = recorder_of(tmp_path / "wal", files, reserve)
    recorder.append("probe", {})
    files.short = short
    files.fail = lambda _, name: name == "write" and reserve.held_bytes > 0
    assert recorder.append("intervention", {"id": "a"}, sync=True, acting=True).lsn == 2
    assert recorder.since_us is None
    assert reserve.held_bytes == 0
    files.fail_all("write")
    assert recorder.append("probe", {}).lsn == 0, "full again, with nothing left to give"
    recorder.close()


def test_samples_on_a_full_disk_leave_the_reserve_to_what_is_done(
    reserve: DiskReserve, files: FailingFiles, tmp_path: Path
) -> None:
    reserve.look()
    recorder = recorder_of(tmp_path / "wal", files, reserve)
    files.fail = lambda _, name: name == "write" and reserve.held_bytes > 0
    assert recorder.append("probe", {}).lsn == 0
    assert recorder.since_us is not None
    assert reserve.held_bytes == SIZE
    assert recorder.append("intervention", {"id": "a"}, acting=True).lsn > 0, "and at once"
    assert recorder.since_us is None
    recorder.close()


def test_a_broken_device_costs_no_reserve(
    reserve: DiskReserve, files: FailingFiles, tmp_path: Path
) -> None:
    reserve.look()
    recorder = recorder_of(tmp_path / "wal", files, reserve)
    files.error = errno.EIO
    files.fail_all("write", "truncate")
    assert recorder.append("probe", {}, acting=True).lsn == 0
    assert reserve.held_bytes == SIZE
    recorder.close()
