"""What looking costs: reading a log alone, a look at the live end, a process tree, a hint."""

from __future__ import annotations

import gc
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from memwatch.domain.clock import SystemClock
from memwatch.host.process import identity_of
from memwatch.host.procfs import PROC, list_pids
from memwatch.ingest.probe import TreeProbe
from memwatch.ingest.tailer import LogTailer
from memwatch.ingest.watcher import Watcher
from memwatch.wal import codec
from memwatch.wal.segment import SEGMENT_BYTES, segment_name
from tests.benchmarks.bench_append import PAYLOAD
from tests.benchmarks.table import Row

RECORDS = 300_000
HOST_PROCESSES = 200
WRITES_PER_S = 100
WATCHED_S = 30
_LOOKS = 200
_WRITER = """
import sys, time
file, rate, seconds = open(sys.argv[1], "ab", buffering=0), int(sys.argv[2]), int(sys.argv[3])
due = time.monotonic()
for _ in range(rate * seconds):
    file.write(b"x" * 200)
    due += 1 / rate
    time.sleep(max(due - time.monotonic(), 0))
"""


def run() -> list[Row]:
    """Measure all."""
    with tempfile.TemporaryDirectory() as folder:
        return [*_reading(Path(folder)), *_probing(), *_watching(Path(folder))]


def _reading(folder: Path) -> list[Row]:
    wal_dir = folder / "wal"
    wal_dir.mkdir()
    lines = _write(wal_dir)
    decode = msgspec.json.Decoder().decode
    plain = _best(lambda: [decode(line) for line in lines])
    read = _best(lambda: _read_all(LogTailer(wal_dir, "agent")))
    tailer = LogTailer(wal_dir, "agent")
    _read_all(tailer)
    idle = _best(lambda: [tailer.poll() for _ in range(_LOOKS)]) / _LOOKS
    what = f"read {RECORDS} records of a log, against msgspec alone"
    return [
        Row(what, RECORDS / read, "records/s", RECORDS / plain, "50 k/s", "150 k/s"),
        Row("a look at a live end where nothing is new", idle * 1e6, "µs", None, "", ""),
    ]


def _write(wal_dir: Path) -> list[bytes]:
    lines, open_bytes, first = [], 0, 1
    pending: list[bytes] = []
    for lsn in range(1, RECORDS + 1):
        line = codec.encode(lsn, lsn, lsn, "put", PAYLOAD)
        lines.append(line)
        pending.append(line)
        open_bytes += len(line)
        if open_bytes >= SEGMENT_BYTES or lsn == RECORDS:
            (wal_dir / segment_name(first)).write_bytes(b"".join(pending))
            pending, open_bytes, first = [], 0, lsn + 1
    return lines


def _read_all(tailer: LogTailer) -> None:
    found = 0
    while True:
        found += sum(len(batch.records) for batch in tailer.poll())
        if tailer.more:
            continue
        older = tailer.backfill()
        if older is None:
            break
        found += len(older.records)
    if found != RECORDS:
        raise RuntimeError(f"read {found} of {RECORDS} records")


def _probing() -> list[Row]:
    missing = max(HOST_PROCESSES - len(list_pids(PROC)), 0)
    others = [subprocess.Popen(["sleep", "600"], start_new_session=True) for _ in range(missing)]
    try:
        identity = identity_of(os.getpid())
        if identity is None:
            raise RuntimeError("no process of our own in /proc")
        probe = TreeProbe(identity, SystemClock(), exclude=())
        many = _median_s(probe.sample)
        members = len(probe.sample().members)
        agent = identity_of(others[0].pid) if others else identity
        lone = _median_s(TreeProbe(agent or identity, SystemClock(), exclude=()).sample)
    finally:
        for other in others:
            other.kill()
            other.wait()
    host = f"on a host of {HOST_PROCESSES} processes or more"
    return [
        Row(f"sample of a tree of 1, {host}", lone * 1e3, "ms", None, "2 ms", "1 ms"),
        Row(f"sample of a tree of {missing} ({members} named)", many * 1e3, "ms", None, "", ""),
    ]


def _watching(folder: Path) -> list[Row]:
    wake = threading.Event()
    wal_dir = folder / "watched"
    wal_dir.mkdir()
    watcher = Watcher([folder, wal_dir], wake)
    watcher.start()
    arguments = [str(wal_dir / "a"), str(WRITES_PER_S), str(WATCHED_S)]
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, *arguments])
    cpu, began = _cpu_s(), time.monotonic()
    writer.wait()
    share = (_cpu_s() - cpu) / (time.monotonic() - began)
    watcher.stop()
    what = f"watcher at {WRITES_PER_S} writes/s for {WATCHED_S} s"
    return [Row(what, share * 100, "% of a core", None, "1 %", "0.5 %")]


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _best(work: Callable[[], object], times: int = 3) -> float:
    found = []
    for _ in range(times):
        gc.collect()
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return min(found)


def _median_s(work: Callable[[], object]) -> float:
    work()
    found = []
    for _ in range(_LOOKS):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return statistics.median(found)
