"""Recorded purges and checkpoints with what they did, newest first."""

from __future__ import annotations

from memwatch.analytics.efficacy import Effect, measure
from memwatch.analytics.told import Instant, Purge
from memwatch.domain.snapshot import Checkpoint, Intervention
from memwatch.runtime.ring import Ring

SHOWN = 16
_BY_GUARD = frozenset({"engine", "pressure"})


class InterventionView:
    """Measures each intervention until nothing about it can change, then remembers it."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._settled: dict[str, Intervention] = {}

    def newest(self, now_at_us: int) -> tuple[Intervention, ...]:
        """Return the newest interventions, newest first, as known at an instant of the axis."""
        state = self._ring.state
        found = [self._purge(purge, now_at_us) for purge in state.purges[-SHOWN:]]
        ended = [c for c in state.checkpoints.values() if c.state in ("committed", "aborted")]
        found += [self._checkpoint(checkpoint, now_at_us) for checkpoint in ended[-SHOWN:]]
        found.sort(key=lambda one: one.asked_at_us, reverse=True)
        shown = tuple(found[:SHOWN])
        kept = {one.id for one in shown}
        self._settled = {name: one for name, one in self._settled.items() if name in kept}
        return shown

    def _purge(self, purge: Purge, now_at_us: int) -> Intervention:
        name = f"purge-{purge.lsn}"
        if name in self._settled:
            return self._settled[name]
        effect = self._measure(f"tier:{purge.tier}", purge.at, purge.duration_us, now_at_us)
        return self._settle(
            effect,
            Intervention(
                id=name,
                action="purge",
                tier=purge.tier,
                origin=_origin(purge.cause),
                why=purge.cause or purge.how,
                asked_at_us=purge.t_us - purge.duration_us,
                done_at_us=purge.t_us,
                duration_s=purge.duration_us / 1e6,
                before=effect.before,
                after_10s=effect.after_10s,
                after_10min=effect.after_10min,
                freed_bytes=effect.freed,
                freed_share=effect.freed_share,
                claimed=purge.freed_bytes,
            ),
        )

    def _checkpoint(self, checkpoint: Checkpoint, now_at_us: int) -> Intervention:
        name = f"checkpoint-{checkpoint.id}"
        if name in self._settled:
            return self._settled[name]
        done = self._ring.state.checkpoint_at[checkpoint.id]
        asked_by = self._ring.state.asked.get(checkpoint.id, "")
        took_us = round((checkpoint.duration_s or 0.0) * 1e6)
        effect = self._measure("memory", done, took_us, now_at_us)
        return self._settle(
            effect,
            Intervention(
                id=name,
                action=f"checkpoint {checkpoint.kind}",
                origin=asked_by or "agent",
                why=checkpoint.reason or ("asked" if asked_by else "cadence"),
                state="done" if checkpoint.state == "committed" else "failed",
                asked_at_us=checkpoint.began_us,
                done_at_us=done.t_us,
                duration_s=checkpoint.duration_s,
                before=effect.before,
                after_10s=effect.after_10s,
                after_10min=effect.after_10min,
                claimed=checkpoint.bytes,
            ),
        )

    def _measure(self, resource: str, done: Instant, took_us: int, now_at_us: int) -> Effect:
        done_at_us = self._ring.axis_of(done)
        series = self._ring.series_of(resource)
        max_gap_us = self._ring.max_gap_us(resource)
        return measure(series, done_at_us - took_us, done_at_us, now_at_us, max_gap_us)

    def _settle(self, effect: Effect, one: Intervention) -> Intervention:
        if effect.after_10min is not None:
            self._settled[one.id] = one
        return one


def _origin(cause: str) -> str:
    if cause == "operator":
        return "operator"
    return "engine" if cause in _BY_GUARD else "agent"
