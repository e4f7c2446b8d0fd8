"""An agent that holds much and saves it: `python -m tests.benchmarks.saving DIR MB MIX`.

Prints one JSON object: what a checkpoint cost in memory and time, and how long single puts of the
agent's own thread took with and without one going on. A process of its own, so that memory is
that of nothing else.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

from memwatch.agent.checkpoints.checkpointer import Checkpointer, Outcome
from memwatch.agent.context import Context
from memwatch.agent.files import SYSTEM_FILES
from memwatch.agent.journal import Journal
from memwatch.agent.log import LogWriter
from memwatch.agent.memory.blobs import BlobStore
from memwatch.agent.memory.entry import Entry
from memwatch.agent.memory.tiers import Tiers
from memwatch.agent.memory.values import Types, digest
from memwatch.domain.clock import SystemClock
from memwatch.domain.policy import Keep
from memwatch.wal.segment import BLOB_DIR, WAL_DIR

KEEP = {"workspace": Keep(), "recent": Keep(), "verified": Keep(), "history": Keep()}
WORDS = ["level", "ratio", "window", "block", "literal", "offset", "token", "entropy", "stream"]
LARGE_EVERY = 400
"""In the mix `mixed` one value of so many has 4 to 40 KB, and lies in a blob."""
QUIET_S = 3.0


class Holder:
    """Tiers full of values, put past the log: what is measured is what saves them."""

    def __init__(self, path: Path, size: int, mixed: bool) -> None:
        clock, rng = SystemClock(), random.Random(5)
        log = LogWriter(path / WAL_DIR, clock=clock)
        self.context = Context(path, "bench", log, clock, SYSTEM_FILES)
        types, blobs = Types(), BlobStore(path / BLOB_DIR, SYSTEM_FILES)
        self.tiers = Tiers(KEEP, self.context, types=types, blobs=blobs)
        self.bytes = self.entries = 0
        held: dict[str, dict[str, Entry]] = {name: {} for name in KEEP}
        while self.bytes < size:
            tier = held[rng.choice(list(KEEP))]
            self._add(tier, _value(rng, mixed and self.entries % LARGE_EVERY == 0), types)
        self.tiers.adopt(held, {})
        self.checkpoints = Checkpointer(
            self.context,
            self.tiers,
            types=types,
            blobs=blobs,
            journal=Journal(),
        )

    def _add(self, tier: dict[str, Entry], value: object, types: Types) -> None:
        text = types.encode(value).canonical
        self.entries += 1
        key = f"call/{self.entries}"
        tier[key] = Entry(
            key=key, lsn=self.entries, bytes=len(text), digest=digest(text), value=value
        )
        self.bytes += len(text)

    def put_while(self, going_on: Callable[[], bool]) -> list[float]:
        """Put small values as fast as it goes; returns the seconds that each took."""
        took: list[float] = []
        tier, number = self.tiers["workspace"], 0
        while going_on():
            number += 1
            began = time.perf_counter()
            tier.put(f"own/{number % 1000}", {"n": number, "ratio": 2.5, "status": "kept"})
            took.append(time.perf_counter() - began)
        return took


def _value(rng: random.Random, large: bool) -> object:
    words = rng.choices(WORDS, k=rng.randint(600, 6000) if large else rng.randint(10, 40))
    return {"text": " ".join(words), "ratio": rng.random(), "n": rng.randint(0, 1 << 30)}


def main(words: list[str]) -> int:
    """Measure."""
    path, size, mixed = Path(words[0]), int(float(words[1]) * 1e6), words[2] == "mixed"
    holder = Holder(path, size, mixed)
    rss_before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    began = time.perf_counter()
    outcome = holder.checkpoints.take("full")
    alone_s = time.perf_counter() - began
    extra = _status("VmHWM") - rss_before
    assert outcome.committed, outcome.reason
    until = time.perf_counter() + QUIET_S
    quiet = holder.put_while(lambda: time.perf_counter() < until)
    told: list[Outcome] = []
    began = time.perf_counter()
    holder.checkpoints.take("full", wait=False, tell=told.append)
    busy = holder.put_while(lambda: not told)
    busy_s = time.perf_counter() - began
    assert told[0].committed, told[0].reason
    raw_s = _raw_write_s(path / "raw", outcome.bytes)
    plain_s = _raw_write_s(path / "raw", holder.bytes)
    figures = {
        "bytes": holder.bytes,
        "entries": holder.entries,
        "written_bytes": outcome.bytes,
        "extra_bytes": extra,
        "alone_s": alone_s,
        "busy_s": busy_s,
        "stall_us": max(outcome.stall_us, told[0].stall_us),
        "raw_s": raw_s,
        "plain_s": plain_s,
        "quiet": _latencies(quiet),
        "busy": _latencies(busy),
        "files": sorted(p.name for p in (path / outcome.path).iterdir()),
    }
    print(json.dumps(figures))
    holder.checkpoints.close()
    holder.context.log.close()
    return 0


def _latencies(took: list[float]) -> dict[str, float]:
    ranked = sorted(took)
    return {
        "count": len(ranked),
        "median_ms": ranked[len(ranked) // 2] * 1e3,
        "p999_ms": ranked[len(ranked) * 999 // 1000] * 1e3,
        "max_ms": ranked[-1] * 1e3,
    }


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise LookupError(name)


def _raw_write_s(path: Path, size: int) -> float:
    piece = os.urandom(1 << 20)
    began = time.perf_counter()
    with path.open("wb", buffering=0) as file:
        for _ in range(0, size, len(piece)):
            file.write(piece)
        os.fsync(file.fileno())
    took = time.perf_counter() - began
    path.unlink()
    return took


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
