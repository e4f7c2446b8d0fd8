"""Recorded purges and checkpoints with what they did, newest first."""

from __future__ import annotations

from memwatch.analytics.efficacy import Effect, measure
from memwatch.analytics.run_state import Purge
from memwatch.domain.snapshot import Checkpoint, Intervention
from memwatch.runtime.ring import Ring

SHOWN = 16
_BY_GUARD = frozenset({"engine", "pressure"})


class InterventionView:
    """Measures each intervention until nothing about it can change, then remembers it."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._settled: dict[str, Intervention] = {}

    def newest(self, now_us: int) -> tuple[Intervention, ...]:
        """Return the newest interventions, newest first."""
        state = self._ring.state
        found = [self._purge(purge, now_us) for purge in state.purges[-SHOWN:]]
        ended = [c for c in state.checkpoints.values() if c.state in ("committed", "aborted")]
        found += [self._checkpoint(checkpoint, now_us) for checkpoint in ended[-SHOWN:]]
        found.sort(key=lambda one: one.asked_at_us, reverse=True)
        shown = tuple(found[:SHOWN])
        kept = {one.id for one in shown}
        self._settled = {name: one for name, one in self._settled.items() if name in kept}
        return shown

    def _purge(self, purge: Purge, now_us: int) -> Intervention:
        name = f"purge-{purge.lsn}"
        if name in self._settled:
            return self._settled[name]
        began_us = purge.t_us - purge.duration_us
        effect = self._measure(f"tier:{purge.tier}", began_us, purge.t_us, now_us)
        return self._settle(
            effect,
            Intervention(
                id=name,
                action="purge",
                tier=purge.tier,
                origin=_origin(purge.cause),
                why=purge.cause or purge.how,
                asked_at_us=began_us,
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

    def _checkpoint(self, checkpoint: Checkpoint, now_us: int) -> Intervention:
        name = f"checkpoint-{checkpoint.id}"
        if name in self._settled:
            return self._settled[name]
        done_us = checkpoint.committed_us or checkpoint.began_us
        effect = self._measure("memory", checkpoint.began_us, done_us, now_us)
        return self._settle(
            effect,
            Intervention(
                id=name,
                action=f"checkpoint {checkpoint.kind}",
                origin="agent",
                why=checkpoint.reason or "cadence",
                state="done" if checkpoint.state == "committed" else "failed",
                asked_at_us=checkpoint.began_us,
                done_at_us=done_us,
                duration_s=checkpoint.duration_s,
                before=effect.before,
                after_10s=effect.after_10s,
                after_10min=effect.after_10min,
                claimed=checkpoint.bytes,
            ),
        )

    def _measure(self, resource: str, began_us: int, done_us: int, now_us: int) -> Effect:
        axis = self._ring.to_axis
        series = self._ring.series_of(resource)
        return measure(series, axis(began_us), axis(done_us), axis(now_us))

    def _settle(self, effect: Effect, one: Intervention) -> Intervention:
        if effect.after_10min is not None:
            self._settled[one.id] = one
        return one


def _origin(cause: str) -> str:
    if cause == "operator":
        return "operator"
    return "engine" if cause in _BY_GUARD else "agent"
