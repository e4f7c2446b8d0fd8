"""After a power loss the history holds what the files hold, not what was read of them before."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memwatch.domain.record import Record
from memwatch.ingest.tailer import LogTailer
from memwatch.store.historian import Historian
from memwatch.wal.segment import segment_name
from tests.builders import line, record
from tests.store.model import (
    mixed_records,
    open_historian,
    select,
    stored_flows,
    stored_lsns,
    true_flows,
    true_lsns,
)

FIRST, SECOND = mixed_records(60), mixed_records(90, first=61)


def write(wal_dir: Path, records: list[Record]) -> Path:
    wal_dir.mkdir(exist_ok=True)
    path = wal_dir / segment_name(records[0].lsn)
    path.write_bytes(b"".join(map(line, records)))
    return path


def read_all(tailer: LogTailer, historian: Historian) -> bool:
    """Hand over all there is; False as soon as something is refused."""
    while batches := [*tailer.poll(), *filter(None, [tailer.backfill()])]:
        if not all(historian.submit(batch) for batch in batches):
            return False
    return True


def catch_up(wal_dir: Path, historian: Historian) -> None:
    """Do what a reader does that was refused: begin again where the history says."""
    for _ in range(5):
        tailer = LogTailer(wal_dir, "agent", historian.positions("agent"), chunk_bytes=3_000)
        done = read_all(tailer, historian)
        tailer.close()
        if done:
            historian.flush()
            return
    raise AssertionError("refused again and again")


def flows(*segments: list[Record]) -> Counter[tuple[Any, ...]]:
    sums: Counter[tuple[Any, ...]] = Counter()
    for records in segments:
        sums += true_flows(records)
    return sums


@pytest.mark.parametrize("restarted", [True, False])
@pytest.mark.parametrize("kept", [0, 1, 17, 60, 89])
def test_records_that_the_device_lost_are_void(tmp_path: Path, kept: int, restarted: bool) -> None:
    wal_dir, path = tmp_path / "wal", tmp_path / "r1" / "history.duckdb"
    write(wal_dir, FIRST)
    open_segment = write(wal_dir, SECOND)
    historian = open_historian(path)
    live = LogTailer(wal_dir, "agent", historian.positions("agent"))
    assert read_all(live, historian)
    historian.flush()
    assert stored_flows(historian) == flows(FIRST, SECOND)
    if restarted:
        historian.close()
        historian = open_historian(path)

    survived = SECOND[:kept]
    os.truncate(open_segment, sum(len(line(r)) for r in survived) + (7 if kept < 89 else 0))
    again = [
        record(61 + kept + 1 + i, "put", 100 + i, tier="verified", bytes=i, x=99) for i in range(9)
    ]
    write(wal_dir, again)
    if not restarted:
        read_all(live, historian)
    live.close()
    catch_up(wal_dir, historian)

    assert stored_flows(historian) == flows(FIRST, survived, again)
    assert stored_lsns(historian) == true_lsns(FIRST + survived)
    told = " ".join(text for (text,) in select(historian, "text FROM event WHERE kind = 'fault'"))
    assert "truncated" in told
    historian.close()


def test_a_log_that_was_pruned_before_it_was_read_is_a_fault_told_once(tmp_path: Path) -> None:
    wal_dir, path = tmp_path / "wal", tmp_path / "r1" / "history.duckdb"
    write(wal_dir, SECOND)
    for _ in range(3):
        historian = open_historian(path)
        catch_up(wal_dir, historian)
        assert stored_flows(historian) == true_flows(SECOND)
        assert select(historian, "count(*) FROM event WHERE text LIKE '%pruned%'") == [(1,)]
        historian.close()
