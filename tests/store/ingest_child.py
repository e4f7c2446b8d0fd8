"""A process that reads a log into a history, to be killed at any instant: `LOG_DIR HISTORY`.

It says before each commit that it waits for a line, and commits when it has one.
"""

from __future__ import annotations

import sys
from pathlib import Path

from memwatch.domain.clock import SystemClock
from memwatch.ingest.tailer import LogTailer
from memwatch.store.historian import Bounds, Historian


def main() -> None:
    """Read all there is, a few chunks and a commit at a time."""
    wal_dir, path = map(Path, sys.argv[1:])
    historian = Historian(path, SystemClock(), period_s=3600, bounds=Bounds(reserve_bytes=0))
    historian.start()
    tailer = LogTailer(wal_dir, "agent", historian.positions("agent"), chunk_bytes=4_000)
    more = True
    while more:
        batches = tailer.poll()
        older = tailer.backfill()
        for batch in [*batches, older] if older else batches:
            assert historian.submit(batch)
        more = tailer.more or older is not None
        print("ready", flush=True)
        sys.stdin.readline()
        historian.flush()
    print("done", flush=True)


if __name__ == "__main__":
    main()
