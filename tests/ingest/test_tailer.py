"""Each thing that can befall a log, one by one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memwatch.domain.record import Position
from memwatch.ingest.tailer import CHUNKS_PER_POLL
from memwatch.wal import codec
from memwatch.wal.segment import segment_name
from tests.ingest.log_dir import LogDir, Reader, line


@pytest.fixture
def log(tmp_path: Path) -> LogDir:
    return LogDir(tmp_path / "wal")


@pytest.fixture
def reader() -> Reader:
    return Reader()


def test_the_newest_segment_comes_first_then_older_ones_backwards(
    log: LogDir, reader: Reader
) -> None:
    for first in (1, 11, 21, 31):
        log.fill(first, first + 9)
    tailer = log.tailer()
    assert tailer.backfill() is None, "nothing is known before the first look"
    reader.poll(tailer)
    assert reader.order == list(range(31, 41))
    shares = [tailer.backfill_share]
    while reader.backfill(tailer):
        shares.append(tailer.backfill_share)
    assert reader.order == [*range(31, 41), *range(21, 31), *range(11, 21), *range(1, 11)]
    assert shares[0] == 0.0
    assert shares[-1] is None
    known = [share for share in shares if share is not None]
    assert known == sorted(set(known))
    assert reader.faults == []


def test_what_is_appended_later_comes_once(log: LogDir, reader: Reader) -> None:
    tailer = log.tailer()
    for upto in range(3, 30, 3):
        log.write(1, b"".join(line(lsn) for lsn in range(upto - 2, upto + 1)))
        reader.poll(tailer)
        assert not tailer.more
    assert reader.order == list(range(1, 28))
    assert tailer.poll() == []


def test_a_poll_is_bounded_and_says_that_there_is_more(log: LogDir, reader: Reader) -> None:
    log.fill(1, 200)
    tailer = log.tailer(chunk_bytes=500)
    batches = tailer.poll()
    assert len(batches) == CHUNKS_PER_POLL
    assert tailer.more
    for batch in batches:
        reader.take(batch)
    reader.settle(tailer)
    assert reader.order == list(range(1, 201))


def test_rotation_goes_on_in_the_next_segment(log: LogDir, reader: Reader) -> None:
    log.fill(1, 10)
    tailer = log.tailer()
    reader.poll(tailer)
    log.write(1, line(11) + line(12))
    log.fill(13, 20)
    log.fill(21, 22)
    reader.poll(tailer)
    assert reader.order == list(range(1, 23))
    assert reader.faults == []
    assert tailer.position == Position(21, log.file(21).stat().st_size, 23)
    assert reader.positions[1] == Position(1, log.file(1).stat().st_size, 13)
    assert tailer.backfill_share is None


def test_a_torn_end_waits_while_the_segment_is_open(log: LogDir, reader: Reader) -> None:
    whole = line(2)
    log.write(1, line(1) + whole[:9])
    tailer = log.tailer()
    reader.poll(tailer)
    assert (reader.order, tailer.torn_bytes, reader.faults) == ([1], 9, [])
    log.write(1, whole[9:])
    reader.poll(tailer)
    assert (reader.order, tailer.torn_bytes, reader.faults) == ([1, 2], 0, [])


def test_a_torn_end_is_reported_once_the_writer_began_anew(log: LogDir, reader: Reader) -> None:
    log.write(1, line(1) + line(2)[:9])
    tailer = log.tailer()
    reader.poll(tailer)
    log.fill(2, 3)
    reader.poll(tailer)
    assert reader.order == [1, 2, 3]
    assert [(f.kind, f.offset, f.length) for f in reader.faults] == [("torn", len(line(1)), 9)]
    again = log.tailer(reader.positions)
    reader.settle(again)
    assert reader.kinds() == ["torn"], "a position behind the torn end tells that it was said"


@pytest.mark.parametrize("read_before", ["nothing", "the live end", "the torn end"])
def test_a_torn_end_that_the_writer_cuts_off_is_no_damage(
    log: LogDir, reader: Reader, read_before: str
) -> None:
    log.write(1, line(1) + line(2)[:9])
    tailer = log.tailer()
    if read_before == "the live end":
        reader.poll(tailer)
    log.fill(2, 3)
    if read_before == "the torn end":
        reader.settle(tailer)
    log.cut(1, len(line(1)))
    reader.settle(tailer)
    reader.settle(log.tailer(dict(reader.positions)))
    assert reader.lsns() == [1, 2, 3]
    assert reader.kinds() == ["torn"] * (read_before == "the torn end")
    assert reader.positions[1] == Position(1, len(line(1)), 2)


def test_numbers_missing_between_segments_are_a_gap(log: LogDir, reader: Reader) -> None:
    log.fill(1, 5)
    log.fill(9, 10)
    reader.settle(log.tailer())
    (fault,) = reader.faults
    assert (fault.kind, fault.segment, fault.missing, fault.lsn) == ("gap", 1, 3, 9)


def test_numbers_that_come_again_after_a_power_loss(log: LogDir, reader: Reader) -> None:
    log.fill(1, 10)
    tailer = log.tailer()
    reader.poll(tailer)
    log.cut(1, len(line(1)) * 6 + 20)
    log.fill(7, 8)
    reader.settle(tailer)
    assert reader.kinds() == ["truncated", "torn"]
    assert reader.faults[0].lsn == 7
    assert reader.lsns() == list(range(1, 9))


def test_a_shorter_file_goes_on_behind_its_last_line(log: LogDir, reader: Reader) -> None:
    log.fill(1, 10)
    tailer = log.tailer()
    reader.poll(tailer)
    log.cut(1, len(line(1)) * 4 + 5)
    reader.poll(tailer)
    (fault,) = reader.faults
    assert (fault.kind, fault.offset, fault.lsn) == ("truncated", len(line(1)) * 4, 5)
    assert reader.lsns() == [1, 2, 3, 4]
    log.write(1, line(5) + line(6))
    reader.poll(tailer)
    assert reader.kinds() == ["truncated", "fused"], "the first bytes of a line were left over"
    assert reader.lsns() == [1, 2, 3, 4, 5, 6]


def test_a_file_cut_within_the_torn_end_only(log: LogDir, reader: Reader) -> None:
    log.write(1, line(1) + line(2)[:30])
    tailer = log.tailer()
    reader.poll(tailer)
    log.cut(1, len(line(1)))
    log.write(1, codec.encode(2, 9, 9, "note", {"token": 77}))
    reader.settle(tailer)
    assert reader.kinds() == ["truncated"]
    assert reader.tokens() == {1, 77}


def test_a_file_rewritten_in_place_with_the_same_size(log: LogDir, reader: Reader) -> None:
    log.fill(1, 3)
    tailer = log.tailer()
    reader.poll(tailer)
    log.cut(1, 0)
    log.write(1, b"".join(line(lsn, lsn + 4) for lsn in (1, 2, 3)))
    reader.settle(tailer)
    assert [(f.kind, f.lsn) for f in reader.faults] == [("replaced", 1)]
    assert reader.tokens() == {5, 6, 7}


def test_a_copy_under_the_same_name_costs_no_record(log: LogDir, reader: Reader) -> None:
    log.fill(1, 5)
    tailer = log.tailer()
    reader.poll(tailer)
    log.replace(1, log.file(1).read_bytes() + line(6))
    reader.settle(tailer)
    assert reader.order == [1, 2, 3, 4, 5, 6]
    assert [(f.kind, f.lsn) for f in reader.faults] == [("replaced", None)]


def test_another_file_under_the_same_name_is_read_from_its_start(
    log: LogDir, reader: Reader
) -> None:
    log.fill(1, 5)
    tailer = log.tailer()
    reader.poll(tailer)
    log.write(1, line(6))  # not read yet: comes from the file that has lost its name
    log.replace(1, line(1, 91) + line(2, 92))
    batches = [batch for _ in range(3) for batch in tailer.poll()]
    for batch in batches:
        reader.take(batch)
    assert any(record.lsn == 6 for batch in batches for record in batch.records)
    assert [(f.kind, f.lsn) for f in reader.faults] == [("replaced", 1)]
    assert reader.tokens() == {91, 92}


def test_the_directory_vanishes_and_comes_back(log: LogDir, reader: Reader) -> None:
    log.fill(1, 3)
    tailer = log.tailer()
    reader.poll(tailer)
    aside = log.path.rename(log.path.with_name("aside"))
    for _ in range(3):
        reader.poll(tailer)
        assert tailer.error
        assert "not" in tailer.error
        assert "No such file" in tailer.error
    assert reader.kinds() == ["vanished"], "said once"
    aside.rename(log.path)
    log.write(1, line(4))
    log.fill(5, 6)
    reader.settle(tailer)
    assert tailer.error is None
    assert reader.order == [1, 2, 3, 4, 5, 6]


def test_before_there_is_a_directory_nothing_has_vanished(tmp_path: Path, reader: Reader) -> None:
    log = LogDir(tmp_path / "wal")
    log.path.rmdir()
    tailer = log.tailer()
    reader.poll(tailer)
    assert tailer.error
    assert (reader.faults, tailer.position, tailer.backfill_share) == ([], None, None)
    LogDir(log.path).fill(1, 2)
    reader.poll(tailer)
    assert tailer.error is None
    assert reader.order == [1, 2]


def test_the_open_segment_vanishes(log: LogDir, reader: Reader) -> None:
    log.fill(1, 3)
    log.fill(4, 5)
    tailer = log.tailer()
    reader.settle(tailer)
    log.write(4, line(6))
    log.file(4).unlink()
    reader.settle(tailer)
    assert reader.lsns() == [1, 2, 3, 4, 5, 6], "the open file is read to its end"
    assert reader.kinds() == ["vanished"]
    log.fill(7, 8)
    reader.settle(tailer)
    assert reader.lsns() == list(range(1, 9))
    assert reader.kinds() == ["vanished"]


def test_what_was_pruned_before_we_came_is_said_once(log: LogDir, reader: Reader) -> None:
    log.fill(21, 25)
    log.fill(26, 30)
    reader.settle(log.tailer())
    (fault,) = reader.faults
    assert (fault.kind, fault.missing, fault.lsn) == ("pruned", 20, 21)
    reader.settle(log.tailer(reader.positions))
    assert len(reader.faults) == 1


def test_what_was_pruned_while_we_were_away(log: LogDir, reader: Reader) -> None:
    for first in (1, 11, 21):
        log.fill(first, first + 9)
    tailer = log.tailer()
    reader.poll(tailer)
    tailer.close()
    log.fill(31, 40)
    for first in (1, 11, 21):
        log.file(first).unlink()
    reader.settle(log.tailer(reader.positions))
    (fault,) = reader.faults
    assert (fault.kind, fault.missing, fault.lsn) == ("pruned", 20, 21)
    assert reader.lsns() == list(range(21, 41))


def test_what_is_pruned_while_older_segments_are_read(log: LogDir, reader: Reader) -> None:
    for first in (1, 11, 21, 31):
        log.fill(first, first + 9)
    tailer = log.tailer(chunk_bytes=200)
    reader.poll(tailer)
    reader.backfill(tailer)
    reader.backfill(tailer)
    for first in (1, 11, 21):
        log.file(first).unlink()
    reader.settle(tailer)
    assert [f.missing for f in reader.faults] == [10, 10]
    assert set(reader.kinds()) == {"pruned"}
    assert reader.lsns() == list(range(21, 41)), "the one that was open is read to its end"
    assert tailer.backfill_share is None


def test_segments_that_came_and_went_between_two_looks(log: LogDir, reader: Reader) -> None:
    log.fill(1, 10)
    tailer = log.tailer()
    reader.poll(tailer)
    log.fill(31, 35)
    log.file(1).unlink()
    reader.settle(tailer)
    assert [(f.kind, f.missing, f.lsn) for f in reader.faults] == [("pruned", 20, 31)]


@pytest.mark.parametrize("what", ["link", "pipe", "directory"])
def test_only_regular_files_are_opened(
    log: LogDir, reader: Reader, tmp_path: Path, what: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(line(5))
    log.fill(1, 2)
    path = log.file(3)
    if what == "link":
        path.symlink_to(secret)
    elif what == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    tailer = log.tailer()
    reader.settle(tailer)
    reader.settle(tailer)
    assert reader.order == [1, 2]
    assert [(f.kind, f.segment) for f in reader.faults] == [("refused", 3)]
    path.rename(tmp_path / "away")
    log.fill(3, 4)
    reader.settle(tailer)
    assert reader.order == [1, 2, 3, 4]
    assert len(reader.faults) == 1


def test_other_names_are_left_alone(log: LogDir, reader: Reader) -> None:
    log.fill(1, 2)
    for name in ("1.wal", "x" + segment_name(3), segment_name(3) + ".tmp", "9" * 20 + ".wal"):
        (log.path / name).write_bytes(line(3))
    (log.path / segment_name(3)).with_suffix(".bak").write_bytes(line(3))
    reader.settle(log.tailer())
    assert reader.order == [1, 2]
    assert reader.faults == []
