"""What a look at checkpoints costs a guard: a store of 100,000 files, a run with as many values.

The reference is a plain walk of the same files (`os.scandir`, a `stat` of each) in the same run.
Processor time of the whole process counts, as a look may use a thread; the files are in the
system's cache on both sides. Each does its looks in turns, and the median counts.

    python -m tests.benchmarks.bench_checkpoint_scan --files 100000
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from memwatch.ingest.blob_scan import Blobs
from memwatch.ingest.checkpoint_scan import OnDisk, scan_checkpoints
from memwatch.ingest.stores.directory import look_directory
from memwatch.wal.segment import BLOB_DIR, CHECKPOINT_DIR, delta_name
from tests.benchmarks.table import Row, print_table

FILES = 100_000
REPETITIONS = 5
DELTAS = 500
_SHARDS = 100
_DEADLINE_S = 60.0


def run(files: int = FILES) -> list[Row]:
    """Measure; seconds of processor time a look."""
    with tempfile.TemporaryDirectory() as folder:
        store, native = Path(folder) / "store", Path(folder) / "run"
        _fill_store(store, files)
        _fill_run(native, files)
        return [*_store_rows(store, files), *_native_rows(native, files)]


def _store_rows(store: Path, files: int) -> list[Row]:
    first = look_directory(store, deadline_s=_DEADLINE_S)
    assert (first.count, first.why) == (files // _SHARDS, ""), first.why
    taken = _in_turns(
        lambda: _walk(store),
        lambda: look_directory(store, deadline_s=_DEADLINE_S),
        lambda: look_directory(store, first, deadline_s=_DEADLINE_S),
    )
    what = f"look at a store of {files:,} files"
    return [
        Row(f"{what}, the first", taken[1], "s CPU", taken[0], "", "2x"),
        Row(f"{what}, again", taken[2], "s CPU", taken[0], "", "2x"),
        Row("its memory while it lasts", _peak_mb(store), "MB", None, "50", ""),
    ]


def _native_rows(native: Path, files: int) -> list[Row]:
    before: list[OnDisk | None] = [None]

    def first() -> None:
        before[0] = scan_checkpoints(native, 0, _DEADLINE_S)

    def changed() -> None:
        held = before[0]
        assert held is not None
        older = OnDisk(held.known_lsn, held.fulls, held.deltas, Blobs())
        scan_checkpoints(native, 0, _DEADLINE_S, older)

    taken = _in_turns(
        lambda: _walk(native),
        first,
        changed,
        lambda: scan_checkpoints(native, 0, _DEADLINE_S, before[0]),
    )
    found = before[0]
    assert found is not None
    assert (found.blobs.count, len(found.deltas)) == (files, DELTAS)
    what = f"look at a run of {files:,} values, {DELTAS} increments"
    return [
        Row(f"{what}, the first", taken[1], "s CPU", taken[0], "", "0.5x"),
        Row(f"{what}, values changed", taken[2], "s CPU", taken[0], "", "0.5x"),
        Row(f"{what}, none changed", taken[3], "s CPU", taken[0], "", "0.05x"),
    ]


def _in_turns(*looks: Callable[[], object]) -> list[float]:
    taken: list[list[float]] = [[] for _ in looks]
    for _ in range(REPETITIONS):
        for place, look in enumerate(looks):
            began = time.process_time()
            look()
            taken[place].append(time.process_time() - began)
    return [statistics.median(some) for some in taken]


def _walk(folder: Path) -> int:
    """Return the bytes of all files: what any look has to do at least."""
    total, waiting = 0, [os.fspath(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    total += entry.stat(follow_symlinks=False).st_size
    return total


def _peak_mb(store: Path) -> float:
    tracemalloc.start()
    try:
        look_directory(store, deadline_s=_DEADLINE_S)
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def _fill_store(store: Path, files: int) -> None:
    """Make checkpoints of a trainer, of so many files each; the mark comes last."""
    for number in range(1, files // _SHARDS + 1):
        place = store / f"checkpoint-{number}"
        place.mkdir(parents=True)
        for part in range(_SHARDS - 1):
            (place / f"rng_state_{part}.bin").write_bytes(b"x")
        (place / "trainer_state.json").write_bytes(b"{}")


def _fill_run(native: Path, files: int) -> None:
    (native / BLOB_DIR).mkdir(parents=True)
    (native / CHECKPOINT_DIR).mkdir()
    for number in range(files):
        (native / BLOB_DIR / f"{number:064x}").write_bytes(b"x")
    for number in range(DELTAS):
        name = delta_name(10 * number + 1, 10 * number + 10)
        (native / CHECKPOINT_DIR / name).write_bytes(b"x\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=FILES)
    print_table(run(parser.parse_args().files))
