"""Who writes in a run: the process that its `run.json` names, if it is really there.

A foreign source names nobody: who writes there is known once it is seen to hold files open.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from memwatch.host.lock import RUN_LOCK, holder
from memwatch.host.process import Identity, identity_of, identity_of_run
from memwatch.runtime.runs.meta import read_meta
from memwatch.wal.manifest import RunManifest


def writer_of(run_dir: Path, manifest: RunManifest) -> Identity | None:
    """Return the identity of a run's agent; None when no process can be writing there.

    An agent holds the lock of its directory. A copy of that directory names the same process, but
    its lock is free: what was copied is a past run, whatever its original does.
    """
    lock = run_dir / RUN_LOCK
    try:
        free = lock.exists() and holder(lock) is None
    except OSError:  # closed to us, or a file system without locks: the process decides
        free = False
    return None if free else identity_of_run(manifest)


def was_seen_to_go(home: Path) -> bool:
    """Say whether the process that a guard last knew to write in a run is no more.

    `home` is what guards keep of the run. Its number alone is known: one that is given again says
    nothing.
    """
    known = read_meta(home)
    return known is not None and known.pid > 0 and identity_of(known.pid) is None


def first_of(pids: Iterable[int]) -> Identity | None:
    """Return the process that began first of those that live: the others may be its children."""
    found = (who for pid in pids if (who := identity_of(pid)) is not None)
    return min(found, key=lambda who: who.start_ticks, default=None)
