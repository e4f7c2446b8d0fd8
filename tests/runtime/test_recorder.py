"""What the guard records survives a disk that refuses: said since when, resumed, the gap told."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from memwatch.agent.log import LogWriter
from memwatch.domain.clock import ManualClock
from memwatch.domain.record import Record
from memwatch.ingest.tailer import LogTailer
from memwatch.runtime.guard.recorder import RETRY_US, Recorder
from tests.faults.failing_files import FailingFiles

RETRY_S = RETRY_US / 1e6


class Bench:
    """A recorder on a disk that the test rules."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.files = FailingFiles()
        self.folder = folder / "wal"
        self.gaps: list[Record] = []

    def open(self) -> Recorder:
        recorder = Recorder(self.folder, self.clock, self._log)
        recorder.on_gap = self.gaps.append
        return recorder

    def records(self) -> list[Record]:
        tailer = LogTailer(self.folder, "guard")
        found = [record for batch in tailer.poll() for record in batch.records]
        while (older := tailer.backfill()) is not None:
            found += older.records
        tailer.close()
        return sorted(found, key=lambda record: record.lsn)

    def _log(self) -> LogWriter:
        return LogWriter(self.folder, clock=self.clock, files=self.files, durability="os")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_records_are_numbered_and_written(bench: Bench) -> None:
    recorder = bench.open()
    first = recorder.append("probe", {"alive": True})
    second = recorder.append("note", {"text": "hello"}, sync=True)
    assert (first.lsn, second.lsn, recorder.last_lsn) == (1, 2, 2)
    assert recorder.since_us is None
    recorder.close()
    assert [(r.lsn, r.kind) for r in bench.records()] == [(1, "probe"), (2, "note")]
    assert bench.records()[1].members["text"] == "hello"


@pytest.mark.parametrize("failing_append", range(6))
@pytest.mark.parametrize("short", [False, True])
def test_a_full_disk_at_any_append(bench: Bench, failing_append: int, short: bool) -> None:
    recorder = bench.open()
    bench.files.short = short
    for number in range(6):
        if number == failing_append:
            bench.files.fail_all("write", "truncate")
            failed_us = bench.clock.wall_us()
        record = recorder.append("probe", {"n": number})
        assert record.members == {"n": number}, "the live view goes on"
        assert (record.lsn == 0) == (number >= failing_append)
        bench.clock.advance_s(1)
    assert recorder.since_us == failed_us
    why = "the device took only a part of a record" if short else "No space left on device"
    assert recorder.why == f"guard.wal: {why}"
    bench.files.heal()
    bench.clock.advance_s(RETRY_S)
    healed_us = bench.clock.wall_us()
    assert recorder.append("probe", {"n": 6}).lsn > 0
    assert recorder.since_us is None
    assert recorder.why == ""
    recorder.close()
    written = bench.records()
    numbers = [r.members["n"] for r in written if r.kind == "probe"]
    assert numbers == [*range(failing_append), 6], "nothing acknowledged is lost"
    (gap,) = (r for r in written if r.kind == "gap")
    assert gap.members["from_us"] == failed_us
    assert gap.members["until_us"] == healed_us
    assert gap.members["why"]
    (told,) = bench.gaps
    assert (told.lsn, told.kind) == (gap.lsn, "gap")
    assert told.members.items() <= gap.members.items()


def test_a_disk_that_refuses_is_left_alone_for_a_while(bench: Bench) -> None:
    recorder = bench.open()
    bench.files.fail_all("write", "open")
    recorder.append("probe", {})
    asked = len(bench.files.calls)
    for _ in range(100):
        recorder.append("probe", {})
        recorder.heal()
    assert len(bench.files.calls) == asked, "no call can hang, and none is wasted"
    bench.clock.advance_s(RETRY_S)
    recorder.append("probe", {})
    assert len(bench.files.calls) > asked


def test_it_begins_on_a_full_disk_and_resumes(bench: Bench) -> None:
    bench.files.fail_all("open")
    began_us = bench.clock.wall_us()
    recorder = bench.open()
    assert recorder.since_us == began_us
    assert recorder.append("probe", {}).lsn == 0
    assert recorder.last_lsn == 0
    bench.clock.advance_s(RETRY_S)
    assert recorder.append("probe", {}).lsn == 0, "still full"
    bench.files.heal()
    bench.clock.advance_s(RETRY_S)
    assert recorder.append("probe", {}).lsn > 0
    recorder.close()
    assert bench.gaps[0].members["from_us"] == began_us


def test_it_heals_though_nothing_is_appended(bench: Bench) -> None:
    recorder = bench.open()
    bench.files.fail_all("write")
    recorder.append("process", {"text": "the last thing to say"})
    recorder.heal()
    assert recorder.since_us is not None, "not yet due"
    bench.files.heal()
    bench.clock.advance_s(RETRY_S)
    recorder.heal()
    assert recorder.since_us is None
    recorder.heal()
    assert len(bench.gaps) == 1
    recorder.close()


def test_a_device_that_fails_to_sync_is_told_and_left(bench: Bench) -> None:
    recorder = bench.open()
    recorder.append("probe", {})
    bench.files.error = errno.EIO
    bench.files.fail_all("fsync", "sync_data")
    assert recorder.append("intervention", {"id": "a"}, sync=True).lsn == 0
    assert recorder.why == "guard.wal: Input/output error"
    bench.files.heal()
    bench.clock.advance_s(RETRY_S)
    assert recorder.append("probe", {}).lsn > 0
    assert len(bench.gaps) == 1
    recorder.close()


def test_closing_on_a_failing_device_does_not_raise(bench: Bench) -> None:
    recorder = bench.open()
    recorder.append("probe", {})
    bench.files.fail_all("fsync", "sync_data")
    recorder.close()
    assert recorder.why


def test_a_later_recorder_goes_on_with_the_numbers(bench: Bench) -> None:
    first = bench.open()
    first.append("probe", {})
    first.close()
    second = bench.open()
    assert second.append("probe", {}).lsn == 2
    second.close()
