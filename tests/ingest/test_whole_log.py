"""A log is given once, in order, whatever is wrong in it; nothing of it is changed."""

from __future__ import annotations

import os
from pathlib import Path

from memwatch.ingest.whole_log import WholeLog
from tests.ingest.log_dir import LogDir, line


def test_segments_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    log = LogDir(tmp_path / "wal")
    for segment, upto in ((100, 130), (1, 40), (41, 99)):
        log.fill(segment, upto)
    whole = WholeLog(log.path, chunk_bytes=200)
    assert [record.lsn for record in whole.records()] == list(range(1, 131))
    assert (whole.first_lsn, dict(whole.faults)) == (1, {})


def test_what_is_damaged_missing_or_torn_is_counted_and_the_rest_is_given(tmp_path: Path) -> None:
    log = LogDir(tmp_path / "wal")
    log.write(7, line(7) + b"rubbish\n" + line(9))
    log.fill(20, 22)
    log.write(20, line(23)[:-9])
    whole = WholeLog(log.path)
    assert [record.lsn for record in whole.records()] == [7, 9, 20, 21, 22]
    assert whole.first_lsn == 7
    assert set(whole.faults) == {"damaged", "gap"}, "an unfinished line at the end is none"


def test_a_folder_that_is_none_and_a_pipe_in_it_keep_nobody_waiting(tmp_path: Path) -> None:
    missing = WholeLog(tmp_path / "none")
    assert list(missing.records()) == []
    assert missing.first_lsn is None
    log = LogDir(tmp_path / "wal")
    log.fill(1, 3)
    os.mkfifo(log.file(9))
    assert [record.lsn for record in WholeLog(log.path).records()] == [1, 2, 3]


def test_a_segment_that_goes_while_the_log_is_read_ends_nothing(tmp_path: Path) -> None:
    log = LogDir(tmp_path / "wal")
    log.fill(1, 3)
    log.fill(4, 6)
    log.fill(7, 9)
    whole = WholeLog(log.path)
    records = whole.records()
    assert next(records).lsn == 1
    log.file(4).unlink()
    assert [record.lsn for record in records] == [2, 3, 7, 8, 9]
    assert dict(whole.faults) == {}
