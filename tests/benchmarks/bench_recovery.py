"""Recovery against reading the same files and decoding their lines with msgspec alone.

A run is made by the agent's own library: tool results (inline values of 1 to 2 KB) and a few larger
ones (blobs), a full checkpoint, then a chain of 5 % of it: half in increments, the rest in the
log. Each measurement has a process of its own, so that its peak of memory is its own; they take
turns, and the median counts. Both sides find the files in the page cache.

    python -m tests.benchmarks.bench_recovery --mb 1000
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from memwatch.agent import Keep, Run, RunOptions, recover
from memwatch.agent.memory import compression
from memwatch.agent.recovery.chain import Log
from memwatch.agent.recovery.place import Place
from memwatch.host.process import peak_bytes
from tests.benchmarks.table import Row, print_table

MB = 128
REPETITIONS = 3
BLOB_SHARE = 0.02
"""Of the values, by count; each is ten times as large."""
_CHAIN_SHARE = 0.05
_MODULE = "tests.benchmarks.bench_recovery"
_WORDS = [f"w{number:x}" for number in range(3_000)]


def run(megabytes: int = MB) -> list[Row]:
    """Measure; the reference is the baseline's time, where a row has one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        build(path, megabytes * 1_000_000)
        taken: dict[str, list[dict[str, float]]] = {name: [] for name in _MEASURES}
        for _ in range(REPETITIONS):
            for name in _MEASURES:
                taken[name].append(_measured(name, path))
    seconds = {name: _median(found, "seconds") for name, found in taken.items()}
    peaks = {name: _median(found, "peak_mb") for name, found in taken.items()}
    read_mb = _median(taken["baseline"], "mb")
    what = f"{read_mb:,.0f} MB full + chain ({_median(taken['baseline'], 'text_mb'):,.0f} MB text)"
    base = seconds["baseline"]
    return [
        Row(
            f"recover {what}, against read + decode", seconds["recover"], "s", base, "2.5x", "1.3x"
        ),
        Row("recover, then decode every value", seconds["decode"], "s", base, "", ""),
        Row("recover, blobs only looked for", seconds["lazy"], "s", base, "", ""),
        Row("peak memory of recover", peaks["recover"], "MB", peaks["baseline"], "", ""),
    ]


def build(path: Path, size: int, chain_bytes: int | None = None) -> None:
    """Make a run with values of so many bytes, saved, and a chain behind: half of it in increments.

    Without `chain_bytes` one entry of twenty is changed.
    """
    draw = random.Random(7)
    options = RunOptions(
        agent="bench", durability="os", keep={"recent": Keep(), "verified": Keep()}
    )
    with Run.open(path, options) as made:
        keys = list(_fill(made, draw, size))
        if not made.checkpoints.take("full").committed:
            raise RuntimeError("no full checkpoint")
        quarter = int(size * _CHAIN_SHARE if chain_bytes is None else chain_bytes) // 4
        for part in range(4):
            _change(made, draw, keys, quarter)
            if quarter and part < 2 and not made.checkpoints.take("incremental").committed:
                raise RuntimeError("no increment")


def _change(made: Run, draw: random.Random, keys: list[str], size: int) -> None:
    """Put values of so many bytes: of entries that are there, then of new ones."""
    known = draw.sample(keys, len(keys))
    written = 0
    while written < size:
        value = _value(draw)
        key = known.pop() if known else f"late/{made.log.last_lsn}"
        made.tiers["recent"].put(key, value)
        written += len(msgspec.json.encode(value))


def _fill(made: Run, draw: random.Random, size: int) -> Iterator[str]:
    written = number = 0
    while written < size:
        number += 1
        large = draw.random() < BLOB_SHARE
        value = _value(draw, 10 if large else 1)
        made.tiers["verified" if large else "recent"].put(f"call/{number}", value)
        written += len(msgspec.json.encode(value))
        if not large:
            yield f"call/{number}"


def _value(draw: random.Random, times: int = 1) -> dict[str, Any]:
    return {
        "tool": draw.choice(("compress", "search", "run_tests")),
        "ok": draw.random() < 0.9,
        "metrics": {f"m{i}": draw.random() * 100 for i in range(12 * times)},
        "lines": [
            {"at": draw.randrange(5_000), "text": " ".join(draw.choices(_WORDS, k=12))}
            for _ in range(draw.randrange(8, 22) * times)
        ],
    }


def _recover(path: Path) -> dict[str, float]:
    _, report = recover(path)
    if report.lossy or report.verified is None:
        raise RuntimeError(str(report))
    return {}


def _lazy(path: Path) -> dict[str, float]:
    recover(path, verify_blobs=False)
    return {}


def _recover_and_decode(path: Path) -> dict[str, float]:
    state, _ = recover(path, verify_blobs=False)
    return {"values": sum(1 for values in state.values() for _ in values.values())}


def _baseline(path: Path) -> dict[str, float]:
    """Read the files that a recovery reads, and decode each line and each blob; keep nothing."""
    log = Log(Place(path), None)
    full = next(log.fulls())
    deltas = [c for c in log.commits.values() if c.is_delta and c.first_lsn > full.last_lsn]
    files = [file for file in path.joinpath(*full.parts).iterdir() if file.name != "MANIFEST.json"]
    files += [path.joinpath(*delta.parts) for delta in deltas]
    files += [path / "wal" / f"{first:020d}.wal" for first in log.segments if first > full.last_lsn]
    read = text = 0
    decode = msgspec.json.Decoder().decode_lines
    for file in files:
        stream = compression.decompressor(file.suffix if file.suffix in (".gz", ".zst") else "")
        rest = b""
        with file.open("rb", buffering=0) as source:
            while chunk := source.read(1 << 20):
                read += len(chunk)
                for piece in stream.feed(chunk):
                    block, feed, rest = (rest + piece).rpartition(b"\n")
                    decode(block + feed)
                    text += len(block)
    for file in (path / "blobs").iterdir():
        data = file.read_bytes()
        read += len(data)
        msgspec.json.decode(compression.unpack(data, 1 << 30))
    return {"mb": read / 1e6, "text_mb": text / 1e6}


_MEASURES: dict[str, Callable[[Path], dict[str, float]]] = {
    "baseline": _baseline,
    "recover": _recover,
    "decode": _recover_and_decode,
    "lazy": _lazy,
}


def _measured(name: str, path: Path) -> dict[str, float]:
    command = [sys.executable, "-m", _MODULE, "--measure", name, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _median(found: list[dict[str, float]], name: str) -> float:
    return statistics.median(one[name] for one in found)


def main() -> None:
    """Run for a size, or measure one thing and print it as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=int, default=MB)
    parser.add_argument("--measure", nargs=2, metavar=("NAME", "RUN"))
    options = parser.parse_args()
    if options.measure is None:
        print_table(run(options.mb))
        return
    name, path = options.measure
    gc.disable()  # on both sides: how often it runs depends on what is kept
    began = time.perf_counter()
    more = _MEASURES[name](Path(path))
    seconds = time.perf_counter() - began
    peak_mb = peak_bytes() / 1e6  # not ru_maxrss: that remembers the process that started us
    print(json.dumps({"seconds": seconds, "peak_mb": peak_mb, **more}))


if __name__ == "__main__":
    main()
