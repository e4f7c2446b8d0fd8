"""The guard: how soon a record is seen, what watching costs, how fast `status` answers."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from memwatch.agent import Run, RunOptions
from memwatch.domain.command import Command
from memwatch.runtime.runs.attach import Attachment
from tests.benchmarks.load import agent_at_work, append, own_home
from tests.benchmarks.table import Row
from tests.benchmarks.terminal import cpu_s

RATE = 1000
SECONDS = 15.0
WARM_S = 12.0
COST_S = 30.0
RUNS = 15


def run() -> list[Row]:
    """Measure all."""
    with own_home():
        return [*_latency(), *_cost(), *_status()]


@contextlib.contextmanager
def guarded(path: Path) -> Iterator[Attachment]:
    """Start a guard on a run; end it afterwards."""
    attachment = Attachment(path)
    attachment.ensure().close()
    try:
        yield attachment
    finally:
        session = attachment.connect()
        session.submit(Command(op="guard.stop"))
        session.close()
        while attachment.guard_pid is not None:
            time.sleep(0.02)


def _latency() -> list[Row]:
    """Append in this process, so that both instants are read from one clock."""
    appended: list[tuple[int, float]] = []
    stop = threading.Event()
    with tempfile.TemporaryDirectory(prefix="memwatch-bench-") as folder:
        path = Path(folder) / "run"
        with Run.open(path, RunOptions(agent="load")) as agent, guarded(path) as attachment:
            writer = threading.Thread(target=_write, args=(agent, appended, stop))
            writer.start()
            waits = _seen(attachment, appended)
            stop.set()
            writer.join()
    cuts = statistics.quantiles(waits, n=100)
    asked, strive = "p99 ≤ 1200 ms", "p99 ≤ 150 ms"
    what = f"record appended → in latest, {RATE}/s"
    return [
        Row(f"{what}, p50", cuts[49] * 1000, "ms", None, "", ""),
        Row(f"{what}, p99", cuts[98] * 1000, "ms", None, asked, strive),
    ]


def _write(agent: Run, appended: list[tuple[int, float]], stop: threading.Event) -> None:
    began, count = time.monotonic(), 0
    while not stop.is_set():
        while count < (time.monotonic() - began) * RATE:
            count += 1
            appended.append((append(agent, count), time.monotonic()))
        time.sleep(0.005)


def _seen(attachment: Attachment, appended: list[tuple[int, float]]) -> list[float]:
    """Return how long each record took to show in a snapshot."""
    session = attachment.connect()
    waits: list[float] = []
    next_one, seq, end = 0, 0, time.monotonic() + SECONDS
    while (now := time.monotonic()) < end:
        snapshot = session.latest(seq, 1.0)
        now = time.monotonic()
        if snapshot is None:
            continue
        seq = snapshot.seq
        while next_one < len(appended) and appended[next_one][0] <= snapshot.source.last_lsn:
            waits.append(now - appended[next_one][1])
            next_one += 1
    session.close()
    return waits


def _cost() -> list[Row]:
    with agent_at_work(100) as path, guarded(path) as attachment:
        guard = psutil.Process(attachment.guard_pid)
        time.sleep(WARM_S)
        cpu, began = cpu_s(guard), time.monotonic()
        time.sleep(COST_S)
        percent = (cpu_s(guard) - cpu) / (time.monotonic() - began) * 100
        rss = guard.memory_info().rss / 1e6
    return [
        Row("guard CPU at 100 records/s", percent, "%", None, "≤ 3 %", "≤ 1 %"),
        Row("guard memory", rss, "MB", None, "≤ 130 MB", "≤ 95 MB"),
    ]


def _status() -> list[Row]:
    with agent_at_work(100) as path, guarded(path):
        time.sleep(2.0)
        status = [str(Path(sys.executable).parent / "memwatch"), "status", str(path), "--json"]
        bare = [sys.executable, "-c", "pass"]
        pairs = [(_took(status), _took(bare)) for _ in range(RUNS)]
    ours, python = (statistics.median(column) * 1000 for column in zip(*pairs, strict=True))
    return [
        Row("status --json, whole process", ours, "ms", python, "≤ +150 ms", "≤ +60 ms"),
        Row("status --json beyond python -c pass", ours - python, "ms", None, "≤ 150", "≤ 60"),
    ]


def _took(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began
