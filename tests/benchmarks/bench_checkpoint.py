"""Full checkpoints of 64 and 256 MB: memory and time of their own, and what the agent feels.

The agent puts small values as fast as it can, with and without a checkpoint going on; the longest
put of each is its stall. Each size runs in a process of its own (`tests.benchmarks.saving`); what
a plain write and sync of the same bytes takes was measured there as well.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.benchmarks.table import Row

SIZES_MB = (64, 256)
MIXES = ("small", "mixed")


def run() -> list[Row]:
    """Measure each size with each mix of values."""
    return [row for size in SIZES_MB for mix in MIXES for row in _rows(size, mix)]


def _rows(size_mb: int, mix: str) -> list[Row]:
    found = _measure(size_mb, mix)
    size, quiet, busy = found["bytes"], found["quiet"], found["busy"]
    what = f"full checkpoint of {size_mb} MB, {mix} ({found['entries']:,} entries)"
    return [
        Row(
            f"{what}: memory on top, share of what is saved",
            found["extra_bytes"] / size,
            "",
            None,
            "0.25",
            "constant",
        ),
        Row(f"{what}: capture", found["stall_us"] / 1e3, "ms", None, "50 ms", "5 ms"),
        Row(
            f"{what}: longest put meanwhile, against without",
            busy["max_ms"],
            "ms",
            quiet["max_ms"],
            "50 ms",
            "5 ms",
        ),
        Row(
            f"{what}: put in 999 of 1000 cases, against without",
            busy["p999_ms"],
            "ms",
            quiet["p999_ms"],
            "",
            "",
        ),
        Row(
            f"{what}: speed, agent idle ({found['method']}), against a plain write of as much",
            size / found["alone_s"] / 1e6,
            "MB/s",
            size / found["plain_s"] / 1e6,
            "",
            "",
        ),
    ]


def _measure(size_mb: int, mix: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="memwatch-bench-") as folder:
        command = [sys.executable, "-m", "tests.benchmarks.saving", str(Path(folder) / "run")]
        command += [str(size_mb), mix]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    suffixes = {name.rpartition(".jsonl")[2] for name in found["files"] if ".jsonl" in name}
    found["method"] = ", ".join(sorted(s.removeprefix(".") or "plain" for s in suffixes))
    return found
