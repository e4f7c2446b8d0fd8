"""Catching up on a long log: tailer, ring and history, against decoding its lines alone.

The log is that of eight hours of an agent: mostly changes of four tiers, tool calls around them,
samples and experiments. All figures come from one run on the same files.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from memwatch.config.schema import Profile
from memwatch.domain.clock import SystemClock
from memwatch.domain.record import Batch
from memwatch.ingest.tailer import LogTailer
from memwatch.runtime.views.ring import Ring
from memwatch.store.historian import Bounds, Historian
from memwatch.wal import codec
from memwatch.wal.segment import SEGMENT_BYTES, segment_name
from tests.benchmarks.table import Row

RECORDS = 500_000
STEP_US = 57_600  # eight hours in all
T0_US = 1_800_000_000_000_000
TIERS = ("workspace", "recent", "verified", "history")
TOOLS = ("compress", "measure", "read_corpus", "verify")

Take = Callable[[Batch], object]


def run() -> list[Row]:
    """Measure; returns records a second with decoding alone as the reference."""
    with tempfile.TemporaryDirectory(prefix="memwatch-bench-") as folder:
        wal_dir = Path(folder) / "wal"
        wal_dir.mkdir()
        write_log(wal_dir)
        decoding = RECORDS / _decode_s(wal_dir)
        history = RECORDS / _catch_up(wal_dir, Path(folder) / "a" / "history.duckdb", None)[0]
        ring = Ring(Profile(name="bench"), SystemClock(), "")
        took_s, visible_s = _catch_up(wal_dir, Path(folder) / "b" / "history.duckdb", ring.take)
        visible = Row("newest segment visible after", visible_s, "s", None, "first", "first")
    asked, strive = "50,000", "150,000"
    return [
        Row(f"catch-up of {RECORDS} records: decoding alone", decoding, "records/s", None, "", ""),
        Row("catch-up into DuckDB, committed", history, "records/s", decoding, asked, strive),
        Row("… into ring and DuckDB", RECORDS / took_s, "records/s", decoding, asked, strive),
        visible,
    ]


def write_log(wal_dir: Path) -> None:
    """Write the segments of the log."""
    pending: list[bytes] = []
    first, size = 1, 0
    for lsn, (kind, members) in enumerate(_records(), 1):
        t_us = T0_US + lsn * STEP_US
        line = codec.encode(lsn, t_us, t_us - T0_US, kind, members)
        pending.append(line)
        size += len(line)
        if size >= SEGMENT_BYTES or lsn == RECORDS:
            (wal_dir / segment_name(first)).write_bytes(b"".join(pending))
            first, size, pending = lsn + 1, 0, []


def _records() -> Iterator[tuple[str, dict[str, Any]]]:
    chance = random.Random(1)
    for number in range(RECORDS):
        experiment = 1 + number // 600
        yield _record(chance, number, experiment)


def _record(chance: random.Random, number: int, experiment: int) -> tuple[str, dict[str, Any]]:
    turn = number % 100
    if turn % 13 == 0:
        call = {"id": f"t{number}", "name": TOOLS[number // 7 % 4], "x": experiment}
        return "tool.begin", call
    if turn % 13 == 7:
        return "tool.end", {"id": f"t{number}", "status": "ok", "duration_us": 1500}
    if turn == 50:
        tiers = {
            name: {"entries": number % 900, "bytes": number * 7, "tokens": number, "limit": 10**8}
            for name in TIERS
        }
        return "sample", {"tiers": tiers, "process": {"rss_bytes": 10**8, "swap_bytes": 0}}
    if number % 600 == 1:
        return "experiment.begin", {"x": experiment, "title": "lzma 6", "phase": "exploration"}
    if number % 600 == 599:
        metrics = {"ratio": 3.2, "seconds": 1.25}
        return "experiment.end", {"x": experiment, "status": "kept", "metrics": metrics}
    if turn % 13 == 3:
        return "access", {"tier": TIERS[number % 4], "counts": {"call/17": 3, "call/18": 1}}
    return _change(chance, number, experiment)


def _change(chance: random.Random, number: int, experiment: int) -> tuple[str, dict[str, Any]]:
    tier = TIERS[min(int(chance.expovariate(1.2)), 3)]
    members: dict[str, Any] = {
        "tier": tier,
        "key": f"call/compress/{number % 5000}",
        "x": experiment,
    }
    if chance.random() < 0.3:
        return "delete", members | {"bytes": 0}
    kind = "put" if chance.random() < 0.7 else "update"
    held = {"bytes": chance.randrange(200, 60_000), "tokens": 512, "rebuildable": True}
    value = {"level": number % 9, "window": 1 << 15, "ratio": 3.25, "seconds": 0.125}
    return kind, members | held | {"importance": 0.5, "value": value}


def _decode_s(wal_dir: Path) -> float:
    decode = msgspec.json.Decoder().decode
    began = time.perf_counter()
    for path in sorted(wal_dir.iterdir()):
        for line in path.read_bytes().splitlines():
            decode(line)
    return time.perf_counter() - began


def _catch_up(wal_dir: Path, path: Path, also: Take | None) -> tuple[float, float]:
    """Read all into a new history; return seconds until committed, and until the newest is read."""
    began = time.perf_counter()
    historian = Historian(path, SystemClock(), bounds=Bounds(reserve_bytes=0))
    historian.start()
    tailer = LogTailer(wal_dir, "agent", historian.positions("agent"))
    newest_s, records = 0.0, 0
    for batch in _batches(tailer):
        if also is not None:
            also(batch)
        while not historian.submit(batch):  # too much waits: let the writer catch up
            historian.flush()
            historian.positions("agent")
        records += len(batch.records)
        if batch.live:
            newest_s = time.perf_counter() - began
    historian.flush()
    took_s = time.perf_counter() - began
    if historian.error is not None or records != RECORDS:
        raise RuntimeError(f"{records} records read: {historian.error}")
    tailer.close()
    historian.close()
    return took_s, newest_s


def _batches(tailer: LogTailer) -> Iterator[Batch]:
    more = True
    while more:
        yield from tailer.poll()
        more = tailer.more
    while (batch := tailer.backfill()) is not None:
        yield batch
