"""An agent that appends records at a steady rate: `python -m tests.benchmarks.load DIR RATE`."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from memwatch.agent import Run, RunOptions

_BURST_S = 0.02


def main(words: list[str]) -> int:
    """Append until killed, or until our parent is gone."""
    path, rate = Path(words[0]), float(words[1])
    parent = os.getppid()
    with Run.open(path, RunOptions(agent="load")) as run:
        began = time.monotonic()
        count = 0
        while os.getppid() == parent:
            due = int((time.monotonic() - began) * rate)
            while count < due:
                count += 1
                append(run, count)
            time.sleep(_BURST_S)
    return 0


def append(run: Run, count: int) -> int:
    """Append one record as an agent at work would; returns its lsn."""
    key, tool = f"call/{count % 500}", f"t{count}"
    match count % 10:
        case 0:
            return run.record("tool.begin", {"id": tool, "name": "compress"})
        case 1:
            return run.record("tool.end", {"id": tool, "status": "ok", "duration_us": 1500})
        case 2:
            return run.record("delete", {"tier": "workspace", "key": key, "bytes": 0})
        case _:
            members = {"tier": "workspace", "key": key, "bytes": 4096, "rebuildable": True}
            return run.record("put", members | {"value": {"ratio": 3.25, "level": count % 9}})


@contextlib.contextmanager
def agent_at_work(rate: float) -> Iterator[Path]:
    """Run such an agent in a process of its own; yields its run directory."""
    with tempfile.TemporaryDirectory(prefix="memwatch-bench-") as folder:
        path = Path(folder) / "run"
        command = [sys.executable, "-m", "tests.benchmarks.load", str(path), str(rate)]
        agent = subprocess.Popen(command)
        try:
            while not (path / "run.json").exists():
                time.sleep(0.02)
            yield path
        finally:
            agent.terminate()
            agent.wait()


@contextlib.contextmanager
def own_home() -> Iterator[Path]:
    """Keep everything that guards write in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="memwatch-bench-") as folder:
        before = os.environ.get("MEMWATCH_HOME")
        os.environ["MEMWATCH_HOME"] = folder
        try:
            yield Path(folder)
        finally:
            if before is None:
                del os.environ["MEMWATCH_HOME"]
            else:
                os.environ["MEMWATCH_HOME"] = before


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
