"""Resources as measured last: usage, growth and the time that is left, for viewers and engine."""

from __future__ import annotations

from memwatch.analytics.growth import Slope, time_to_limit
from memwatch.config.schema import Profile
from memwatch.domain.level import Level
from memwatch.domain.sample import TierSample
from memwatch.domain.snapshot import PAST, Disk, Limits, Resource, RunState, Tier
from memwatch.domain.units import window_label
from memwatch.runtime.views.ring import Ring
from memwatch.runtime.views.run_view import ShownNow

CONTRACT_WINDOWS = ("60s", "10min", "24h")


class ResourceView:
    """Reads the ring; call it while its lock is held."""

    def __init__(self, profile: Profile, ring: Ring) -> None:
        self._profile = profile
        self._ring = ring
        self.windows = tuple(window_label(s) for s in profile.windows.growth_s)

    def resources(
        self, limits: Limits, disk: Disk, run_state: RunState, now: ShownNow
    ) -> tuple[Resource, ...]:
        """Return memory, what no tier accounts for, and the disk, as far as they are known."""
        memory = self.memory(limits, run_state, now.at_us)
        unaccounted = self._unaccounted(run_state, now.at_us)
        found = (memory, unaccounted, _disk_space(disk))
        return tuple(one for one in found if one is not None)

    def memory(self, limits: Limits, run_state: RunState, now_at_us: int) -> Resource | None:
        """Return the tree's usage of the binding limit."""
        last = self._last("memory")
        if last is None:
            return None
        at_us, used = last
        limit = limits.binding.bytes if limits.binding else None
        return Resource(
            name="memory",
            used=used,
            limit=limit,
            share=used / limit if limit else None,
            growth_per_min=self._growth(self._ring.slopes("memory")),
            time_to_limit_s=self.arrival("memory", used, limit, run_state, now_at_us),
            at_us=at_us,
        )

    def arrival(
        self, name: str, used: float, limit: float | None, run_state: RunState, now_at_us: int
    ) -> tuple[float, float] | None:
        """Return earliest and latest arrival of a resource at its limit, in seconds.

        None without support for it, and while the shortest window still holds some of the way up
        that each start begins with.
        """
        spans_s = self._profile.windows.growth_s
        if run_state in PAST or self._ring.followed_us(now_at_us) < spans_s[0] * 1e6:
            return None
        return time_to_limit(used, limit, self._ring.slopes(name), spans_s)

    def tiers(
        self, limits: Limits, run_state: RunState, levels: dict[str, Level], now_at_us: int
    ) -> tuple[Tier, ...]:
        """Return the agent's tiers, those of the profile first; `levels` are the engine's."""
        samples = self._ring.state.tiers
        order = [name for name in self._profile.tiers if name in samples]
        order += [name for name in samples if name not in order]
        limit = limits.binding.bytes if limits.binding else None
        return tuple(
            self._tier(name, samples[name], limit, levels, run_state, now_at_us) for name in order
        )

    def _tier(
        self,
        name: str,
        sample: TierSample,
        limit: int | None,
        levels: dict[str, Level],
        run_state: RunState,
        now_at_us: int,
    ) -> Tier:
        resource, held = f"tier:{name}", sample.bytes
        share = held / limit if limit and held is not None else None
        over_cap = share is not None and share > self._profile.share_cap
        level = levels.get(resource, "normal")
        arrival = None
        if held is not None:
            arrival = self.arrival(resource, held, sample.limit, run_state, now_at_us)
        return Tier(
            name=name,
            entries=sample.entries,
            bytes=held,
            used=held,
            time_to_limit_s=arrival,
            tokens=sample.tokens,
            mean_bytes=held / sample.entries if held is not None and sample.entries else None,
            limit=sample.limit,
            share=share,
            level="warn" if over_cap and level == "normal" else level,
            growth_per_min=self._growth(self._ring.slopes(resource)),
        )

    def _unaccounted(self, run_state: RunState, now_at_us: int) -> Resource | None:
        last = self._last("unaccounted")
        if last is None:
            return None
        at_us, used = last
        age_us = now_at_us - self._ring.to_axis(at_us)
        unknown = run_state not in PAST and age_us > self._ring.max_gap_us("unaccounted")
        return Resource(
            name="unaccounted",
            used=None if unknown else used,
            growth_per_min=self._growth(self._ring.slopes("unaccounted")),
            at_us=at_us,
        )

    def _growth(self, slopes: list[Slope | None]) -> dict[str, float | None]:
        figures: dict[str, float | None] = dict.fromkeys(CONTRACT_WINDOWS)
        measured = zip(self.windows, slopes, strict=True)
        return figures | {name: slope.per_min if slope else None for name, slope in measured}

    def _last(self, resource: str) -> tuple[int, float] | None:
        series = self._ring.series_of(resource)
        last = series.last if series else None
        return (self._ring.to_wall(last[0]), last[1]) if last else None


def _disk_space(disk: Disk) -> Resource | None:
    if not disk.total_bytes or disk.free_bytes is None:
        return None
    used_bytes = disk.total_bytes - disk.free_bytes
    return Resource(
        name="disk",
        used=used_bytes,
        limit=disk.total_bytes,
        share=used_bytes / disk.total_bytes,
    )
