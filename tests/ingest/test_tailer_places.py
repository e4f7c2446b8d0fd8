"""Where reading starts again: at stored places, in files that are others by now, after races."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memwatch.domain.record import Position
from memwatch.ingest import tailer as module
from memwatch.ingest.segment_file import Listing, SegmentFile, list_segments
from tests.ingest.log_dir import LogDir, Reader, line


@pytest.fixture
def log(tmp_path: Path) -> LogDir:
    return LogDir(tmp_path / "wal")


@pytest.fixture
def reader() -> Reader:
    return Reader()


def told(reader: Reader) -> list[tuple[str, int, int | None]]:
    return [(fault.kind, fault.segment, fault.lsn) for fault in reader.faults]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ([], "truncated"),
        ([line(1, 91)], "truncated"),
        ([line(1, 91, pad=200), line(2, 92)], "replaced"),
        ([line(1, 91, pad=2 * len(line(1)) - 1)], "replaced"),
        ([line(1, 91, pad=2 * len(line(1)) - 1), line(2, 92)], "replaced"),
        ([b"x" * (3 * len(line(1)) - 1) + b"\n"], "replaced"),
    ],
)
def test_a_file_that_changed_while_we_were_away(
    log: LogDir, reader: Reader, content: list[bytes], kind: str
) -> None:
    log.fill(1, 3)
    reader.settle(log.tailer())
    log.replace(1, b"".join(content))
    reader.settle(log.tailer(reader.positions))
    assert told(reader)[0] == (kind, 1, 1), "numbers from 1 on come again"
    assert reader.lsns() == [lsn for lsn, text in enumerate(content, 1) if b"lsn" in text]
    assert all(token > 90 for token in reader.tokens())


@pytest.mark.parametrize("end", [b"", b"\n", b"{}\n\n", line(2)[:30] + line(3)])
def test_a_place_behind_any_line_is_found_again(log: LogDir, reader: Reader, end: bytes) -> None:
    log.write(1, line(1) + end)
    reader.settle(log.tailer())
    before = len(reader.faults)
    log.write(1, line(4))
    reader.settle(log.tailer(reader.positions))
    assert reader.lsns()[-1] == 4
    assert {fault.kind for fault in reader.faults[before:]} <= {"gap"}


def test_a_gap_behind_what_was_read_when_we_left(log: LogDir, reader: Reader) -> None:
    log.fill(1, 5)
    reader.settle(log.tailer())
    log.fill(9, 10)
    tailer = log.tailer(reader.positions)
    reader.poll(tailer)
    assert tailer.backfill_share == 0.0, "the account of the older one is open"
    reader.settle(tailer)
    assert told(reader) == [("gap", 1, 9)]


def test_a_new_segment_that_begins_below_what_was_read(log: LogDir, reader: Reader) -> None:
    log.fill(1, 5)
    log.fill(6, 10)
    reader.settle(log.tailer())
    log.file(6).unlink()
    log.fill(8, 9)
    reader.settle(log.tailer(reader.positions))
    assert told(reader) == [("repeated", 8, 8), ("gap", 1, 8)]


def test_the_newest_segment_went_while_we_were_away(log: LogDir, reader: Reader) -> None:
    log.fill(1, 5)
    log.fill(6, 10)
    reader.settle(log.tailer())
    log.file(6).unlink()
    reader.settle(log.tailer(reader.positions))
    assert told(reader) == [("vanished", 6, None)]
    assert len(reader.order) == 10


def test_an_older_segment_that_goes_when_only_its_torn_end_is_unread(
    log: LogDir, reader: Reader
) -> None:
    log.write(1, line(1) + line(2)[:20])
    reader.settle(log.tailer())
    log.fill(2, 4)
    tailer = log.tailer(reader.positions)
    reader.poll(tailer)
    log.file(1).unlink()
    log.fill(5, 6)
    reader.settle(tailer)
    assert reader.faults == [], "no number is missing"
    reader.settle(log.tailer(reader.positions))
    assert reader.order == [1, 2, 3, 4, 5, 6]


def test_the_newest_goes_and_the_live_end_is_one_that_was_being_caught_up_on(
    log: LogDir, reader: Reader
) -> None:
    log.fill(1, 20)
    log.fill(21, 22)
    tailer = log.tailer(chunk_bytes=300)
    reader.poll(tailer)
    reader.backfill(tailer)
    reader.backfill(tailer)
    log.file(21).unlink()
    reader.settle(tailer)
    assert tailer.position == Position(1, log.file(1).stat().st_size, 21)
    assert reader.lsns() == list(range(1, 23))
    assert told(reader) == [("vanished", 21, None)]


def test_a_successor_that_comes_while_we_look(
    log: LogDir, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.fill(1, 3)
    tailer = log.tailer()
    reader.poll(tailer)
    pending = [lambda: log.fill(4, 5), log.file(1).unlink]

    def listing_that_ages(wal_dir: Path) -> Listing:
        found = list_segments(wal_dir)
        while pending:
            pending.pop(0)()
        return found

    monkeypatch.setattr(module, "list_segments", listing_that_ages)
    reader.settle(tailer)
    assert reader.order == [1, 2, 3, 4, 5]
    assert reader.faults == []


def test_a_shorter_file_with_newer_numbers_is_read_from_its_start(
    log: LogDir, reader: Reader
) -> None:
    log.write(1, line(1, pad=50))
    tailer = log.tailer()
    reader.poll(tailer)
    log.cut(1, 0)
    log.write(1, line(2))
    reader.settle(tailer)
    assert told(reader) == [("truncated", 1, 1), ("gap", 1, 2)]
    assert reader.lsns() == [2]


def test_one_line_feed_at_the_right_place_is_no_fingerprint(log: LogDir, reader: Reader) -> None:
    log.fill(1, 4)
    tailer = log.tailer()
    reader.poll(tailer)
    size = len(line(1))
    log.cut(1, 3 * size + 20)
    reader.poll(tailer)
    log.cut(1, 10)
    log.write(1, b"\n" + line(8, pad=2 * size - 11) + line(9))
    reader.settle(tailer)
    assert reader.lsns() == [8, 9]


@pytest.mark.parametrize("what", ["link", "pipe", "directory"])
def test_what_is_put_in_a_segments_place_after_it_was_listed(log: LogDir, what: str) -> None:
    (log.path / "secret").write_bytes(line(1))
    if what == "link":
        log.file(1).symlink_to("secret")
    elif what == "pipe":
        os.mkfifo(log.file(1))
    else:
        log.file(1).mkdir()
    with pytest.raises(OSError, match=r"symbolic links|not a regular file"):
        SegmentFile(log.path, 1)
