"""The run itself: its state as the agent declares it, or as its silence and its end tell."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from memwatch.analytics.store_state import began_us, inferred_state
from memwatch.analytics.told import Instant
from memwatch.domain.clock import Clock
from memwatch.domain.operations import HOLDS
from memwatch.domain.sample import HELD_S
from memwatch.domain.snapshot import RunInfo, RunState
from memwatch.domain.text import inert
from memwatch.runtime.views.facts import RunFacts
from memwatch.runtime.views.ring import Ring

_OPS_SHOWN = 32
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_MODES: dict[str, RunState] = {
    "draining": "draining",
    "paused": "paused",
    "read_only": "read_only",
    "aborting": "aborting",
}
_ENDS: dict[str, RunState] = {"crashed": "crashed", "killed": "killed"}


class ShownNow(NamedTuple):
    """The instant that is shown: the present, or the end of a run that is over."""

    wall_us: int
    at_us: int
    """On the ring's axis: what ages are measured on."""


class RunView:
    """What is known of the run as a whole."""

    def __init__(self, run: RunFacts, ring: Ring, clock: Clock, grace: float) -> None:
        """`grace` is the multiple of a store's habit after which its silence is remarkable."""
        self.run = run
        """Replaced when the agent began again under a new process."""
        self._ring = ring
        self._clock = clock
        self._grace = grace

    def info(self, alive: bool | None, declared: str | None = None) -> tuple[RunInfo, ShownNow]:
        """Return the run as it stands, and the instant that it is shown at.

        `declared` is the mode of the agent where something newer than its log tells it.
        """
        manifest, state = self.run.manifest, self._ring.state
        now = ShownNow(self._clock.wall_us(), self._ring.mind_clock())
        run_state, reason, end = self.state(alive, now.at_us, declared)
        if end is not None:
            now = ShownNow(end.t_us, self._ring.axis_of(end))
        started = state.start.at if state.start else self._at(self._started_us)
        began_at_us = self._ring.axis_of(started)
        run = RunInfo(
            id=manifest.run_id,
            path=self.run.path,
            agent=inert(manifest.agent, 60),
            profile=inert(manifest.profile, 60),
            host=inert(manifest.host, 60),
            pid=manifest.pid,
            state=run_state,
            phase=state.phase,
            experiment=state.experiment,
            experiment_title=state.experiment_title,
            started_us=started.t_us,
            ended_us=end.t_us if end else None,
            uptime_s=max(now.at_us - began_at_us, 0) / 1e6 if started.t_us else 0.0,
            end_reason=reason,
            switches={} if end else state.switches,
            ops=_ops(manifest.ops) if end is None and self._ring.store is None else (),
        )
        return run, now

    def state(
        self, alive: bool | None, now_at_us: int, declared: str | None = None
    ) -> tuple[RunState, str, Instant | None]:
        """Return state, reason and the instant of the end, if the run is over."""
        state = self._ring.state
        store = self._ring.store
        if store is not None:
            found = inferred_state(store, alive, self._clock.wall_us(), self._grace)
            ended = None if found.ended_us is None else self._at(found.ended_us)
            return found.state, found.why, ended
        if state.end is not None:
            end = state.end
            return _ENDS.get(end.status, "ended"), end.reason or end.status, end.at
        if alive is False:
            last = state.last if state.last.t_us else Instant(0, self.run.manifest.started_us, 0)
            return "crashed", "the process is gone and its log names no end", last
        mode = declared or state.mode or ""
        if declared is None and state.last.lsn and self._age_s(state.last, now_at_us) > HELD_S:
            return "silent", "", None
        return _MODES.get(mode, "running"), "", None

    @property
    def _started_us(self) -> int:
        store, manifest = self._ring.store, self.run.manifest
        if store is None:
            return manifest.started_us
        if manifest.pid and manifest.start_ticks:  # older checkpoints may have been dropped
            return self._ring.to_wall(manifest.start_ticks * 1_000_000 // _TICKS_PER_S)
        return began_us(store)

    def _at(self, t_us: int) -> Instant:
        """Return the instant of a wall time that no record of this boot tells."""
        return Instant(0, t_us, self._ring.to_axis(t_us))

    def _age_s(self, instant: Instant, now_at_us: int) -> float:
        return max(now_at_us - self._ring.axis_of(instant), 0) / 1e6


def _ops(stated: Iterable[str]) -> tuple[str, ...]:
    shown = (inert(op, 60) for op in islice(stated, _OPS_SHOWN))
    return tuple(dict.fromkeys((*shown, *HOLDS)))
