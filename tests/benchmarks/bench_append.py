"""Appending records: our log writer against SQLite, same payload, in the same run.

Both number a record, read both clocks, encode the members with msgspec and survive the death of
the process: the log with each record, SQLite with each transaction of 256. Repetitions alternate,
so that a busy machine slows both; the figure is the median.
"""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from pathlib import Path

import msgspec

from memwatch.agent.log import LogWriter
from memwatch.domain.clock import SystemClock
from tests.benchmarks.table import Row

RECORDS = 40_000
REPETITIONS = 7
PER_TRANSACTION = 256
PAYLOAD = {
    "tier": "workspace",
    "key": "call/compress/17",
    "bytes": 48_211,
    "rebuildable": False,
    "importance": 0.5,
    "x": 412,
    "diff": "-12,7 +12,9 the window was doubled and the level lowered by one",
}
_TABLE = "CREATE TABLE log (lsn INTEGER PRIMARY KEY, t INTEGER, m INTEGER, k TEXT, members BLOB)"


def run() -> list[Row]:
    """Measure; returns records a second of the log writer, SQLite's as the reference."""
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(REPETITIONS):
        with tempfile.TemporaryDirectory() as folder:
            ours.append(RECORDS / _log_s(Path(folder)))
            theirs.append(RECORDS / _sqlite_s(Path(folder)))
    reached, reference = statistics.median(ours), statistics.median(theirs)
    what = f"append, batch, {RECORDS} records, against SQLite (WAL, NORMAL, {PER_TRANSACTION}/tx)"
    return [Row(what, reached, "records/s", reference, "0.8x", "1.3x")]


def _log_s(folder: Path) -> float:
    with LogWriter(folder / "wal", durability="batch") as log:
        began = time.perf_counter()
        for _ in range(RECORDS):
            log.append("put", PAYLOAD)
        return time.perf_counter() - began


def _sqlite_s(folder: Path) -> float:
    clock, encode = SystemClock(), msgspec.json.Encoder().encode
    connection = sqlite3.connect(folder / "log.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(_TABLE)
    insert = connection.cursor().execute
    began = time.perf_counter()
    for lsn in range(1, RECORDS + 1):
        if lsn % PER_TRANSACTION == 1:
            insert("BEGIN")
        row = (lsn, clock.wall_us(), clock.boot_us(), "put", encode(PAYLOAD))
        insert("INSERT INTO log VALUES (?, ?, ?, ?, ?)", row)
        if lsn % PER_TRANSACTION == 0 or lsn == RECORDS:
            insert("COMMIT")
    took = time.perf_counter() - began
    connection.close()
    return took
