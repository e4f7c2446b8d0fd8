"""Members of the status that scripts ask for: tiers as resources, room for the next checkpoint."""

from __future__ import annotations

import pytest

from memwatch.domain.sample import DiskSample
from tests.builders import T0_US
from tests.runtime.watched import MB, S, Watched


def test_a_tier_reads_like_any_resource() -> None:
    watched = Watched()
    watched.begin()
    for second in range(60):
        watched.clock.advance_s(1)
        held = {"bytes": (10 + second) * MB, "entries": 1, "limit": 100 * MB}
        watched.say("sample", tiers={"recent": held, "odd": {"entries": 3}})
        watched.look(200 * MB)
        watched.ring.feed_growth()
    tiers = {tier.name: tier for tier in watched.snapshot().tiers}
    recent = tiers["recent"]
    assert (recent.used, recent.unit, recent.limit) == (69 * MB, "bytes", 100 * MB)
    assert recent.time_to_limit_s is not None
    earliest, latest = recent.time_to_limit_s
    assert earliest == pytest.approx(31, abs=3)
    assert latest >= earliest
    assert (tiers["odd"].used, tiers["odd"].time_to_limit_s) == (None, None)
    assert all(tier.time_to_limit_s is None for tier in watched.snapshot(alive=False).tiers)


def test_the_next_checkpoint_fits_beside_the_reserve() -> None:
    watched = Watched()
    watched.begin()
    assert watched.snapshot().checkpoints.next_fits is None, "no disk, no checkpoint"
    about = {"id": "c1", "kind": "full", "first_lsn": 1, "last_lsn": 1}
    watched.say("checkpoint.commit", bytes=200 * MB, **about)
    found = watched.snapshot().checkpoints
    assert found.last_recoverable_full is not None
    assert (found.next_bytes, found.next_fits) == (200 * MB, None)
    for free_mb, fits in ((1_399, False), (1_400, True)):
        disk = DiskSample(t_us=T0_US + S, total_bytes=10**12, free_bytes=free_mb * MB)
        watched.ring.take_disk(disk)
        assert watched.snapshot().checkpoints.next_fits is fits
