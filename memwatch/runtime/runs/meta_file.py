"""Keeps a run's `meta.json` true: each minute, at each change of state, and at the end."""

from __future__ import annotations

import contextlib
from pathlib import Path

from memwatch.config.locations import socket_path
from memwatch.domain.clock import Clock
from memwatch.domain.snapshot import Snapshot
from memwatch.runtime.runs.meta import Meta, read_meta, write_meta

_EVERY_US = 60_000_000
_ENDS = {"ended": "done", "crashed": "crashed", "killed": "killed"}


class MetaFile:
    """Writes what `memwatch ls` shows. A disk that refuses is told elsewhere."""

    def __init__(self, home: Path, run_key: str, clock: Clock) -> None:
        self._home = home
        self._run_key = run_key
        self._clock = clock
        self._written_us = 0
        self._state = ("", "")
        before = read_meta(home)
        self._peak = before.peak_bytes if before else None
        self._pid = before.pid if before else 0
        self.seen_us = before.seen_us if before else 0
        """Wall clock until which a guard before this one watched; 0: there was none."""

    def keep(self, snapshot: Snapshot) -> None:
        """Write when it is due."""
        memory = snapshot.resource("memory")
        if memory is not None and memory.used is not None:
            self._peak = max(memory.used, self._peak or 0.0)
        state = (snapshot.run.state, snapshot.level)
        now_us = self._clock.boot_us()
        if state != self._state or now_us - self._written_us >= _EVERY_US:
            self._state, self._written_us = state, now_us
            self.write(snapshot)

    def write(self, snapshot: Snapshot, *, final: bool = False) -> None:
        """Write now; `final` says that no guard watches any more."""
        run = snapshot.run
        memory = snapshot.resource("memory")
        binding = snapshot.limits.binding
        middle = snapshot.windows[1] if len(snapshot.windows) > 1 else ""
        meta = Meta(
            run_key=self._run_key,
            path=run.path,
            agent=run.agent,
            source=snapshot.source.kind,
            profile=run.profile,
            host=run.host,
            pid=run.pid or self._pid,  # a foreign one is known only once it is seen to write
            started_us=run.started_us,
            seen_us=self._clock.wall_us(),
            ended_us=run.ended_us,
            end=_ENDS.get(run.state, ""),
            state=run.state,
            level=snapshot.level,
            peak_bytes=self._peak,
            last_bytes=memory.used if memory else None,
            limit_bytes=binding.bytes if binding else None,
            experiments=sum(snapshot.progress.experiments.values()),
            growth_per_min=memory.growth_per_min.get(middle) if memory else None,
            time_to_limit_s=memory.time_to_limit_s if memory else None,
            checkpoint_age_s=snapshot.checkpoints.age_s,
            engine=snapshot.engine.mode,
            guard_pid=0 if final else snapshot.guard.pid,
            socket="" if final else str(socket_path(self._run_key)),
        )
        with contextlib.suppress(OSError):
            write_meta(self._home, meta)
