"""A log of many small segments is read in about the time that its bytes take."""

from __future__ import annotations

from pathlib import Path

import pytest

from memwatch.ingest.segment_file import Listing, list_segments
from tests.ingest.log_dir import LogDir, Reader


class Counted(int):
    """A number that counts how often it is compared."""

    comparisons = 0

    def __lt__(self, other: int) -> bool:
        Counted.comparisons += 1
        return int(self) < int(other)

    def __gt__(self, other: int) -> bool:
        Counted.comparisons += 1
        return int(self) > int(other)

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return isinstance(other, int) and int(self) == int(other)

    __hash__ = int.__hash__


def test_many_small_segments_cost_no_more_each_than_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counted(wal_dir: Path) -> Listing:
        return Listing([Counted(lsn) for lsn in list_segments(wal_dir).regular], [])

    def cost(count: int) -> int:
        log, reader = LogDir(tmp_path / f"wal-{count}"), Reader()
        for lsn in range(1, count + 1):
            log.fill(lsn, lsn)
        Counted.comparisons = 0
        reader.settle(log.tailer())
        assert reader.lsns() == list(range(1, count + 1))
        return Counted.comparisons

    monkeypatch.setattr("memwatch.ingest.tailer.list_segments", counted)
    assert cost(800) < 12 * cost(100), "8 times as many, each with a few comparisons more"
