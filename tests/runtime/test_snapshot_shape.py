"""Members of the status that scripts ask for: tiers as resources, room for the next checkpoint."""

from __future__ import annotations

import msgspec
import pytest

from memwatch.domain.command import CommandInfo
from memwatch.domain.recovery import MeasuredTerm, PastRecovery
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


def test_a_hard_night_makes_no_large_snapshot() -> None:
    watched = Watched()
    watched.begin(limits={"memory_bytes": 400 * MB})
    why = "memory 90.4% of 300M (stated by the agent), over 90% (thresholds.emergency)"
    for number in range(60):
        watched.live(3)
        for tier in ("recent", "workspace", "context", "verified"):
            watched.say("purge.end", tier=tier, cause="share_cap", freed_bytes=MB, entries=2)
        name = f"full-{number:020d}"
        watched.say("checkpoint.commit", id=name, kind="full", bytes=9 * MB, entries=30)
    steps = [{"name": f"cache {n}", "freed_bytes": 12345678, "duration_us": 1000} for n in range(9)]
    commands = tuple(
        CommandInfo(
            id=f"661857160ec06-emergency.{number}",
            op="reclaim",
            state="done",
            asked_us=T0_US + number,
            changed_us=T0_US + number,
            origin="engine",
            why=why,
            plan="" if number == 29 else "661857160ec06-emergency",
            result={"steps": steps},
        )
        for number in range(30)
    )
    names = ("start", "load", "blobs", "read", "replay")
    terms = tuple(MeasuredTerm(name, 1.234567, 123456789, 12345) for name in names)
    past = tuple(
        PastRecovery(t_us=T0_US - n, total_s=1.5, terms=terms, expected=terms) for n in range(30)
    )
    found = watched.snapshot(commands=commands, past=past)
    assert len(msgspec.msgpack.encode(found)) <= 16_000
    assert [bool(one.result) for one in found.commands] == [False] * 5 + [True], (
        "of plans: measured"
    )
    assert len(found.recovery.past) == 5
    assert found.recovery.drill == found.recovery.past[0]
    assert found.recovery.drill.terms == terms
    assert len(found.interventions) < 12 < len(watched.builder.interventions.rows(500))
