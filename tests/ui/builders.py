"""Snapshots with everything filled in, for panels and for the fake session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memwatch.config.policy import Policy
from memwatch.domain.control import EngineInfo
from memwatch.domain.intervention import Intervention
from memwatch.domain.sample import ProcessInfo
from memwatch.domain.snapshot import (
    Disk,
    GuardInfo,
    Light,
    Limit,
    Limits,
    Own,
    Processes,
    Progress,
    Resource,
    RunInfo,
    Snapshot,
    Source,
    Tier,
    Word,
)
from memwatch.domain.units import bytes_text, duration_text
from tests.ui import crash

if TYPE_CHECKING:
    from tests.ui.fake_session import FakeRun

MB = 1_000_000
TIERS = ("workspace", "recent", "verified", "history")
WINDOWS = ("10s", "60s", "10min")
LIMIT = 300 * MB
OPS = (
    "checkpoint", "purge", "reclaim", "abort_experiment", "end_run", "retain", "leak", "pause",
    "read_only", "resume", "read_write",
)  # fmt: skip
ENGINE = EngineInfo(
    mode="act",
    allow=Policy().allow,
    policy_allow=Policy().allow,
    by="policy",
    asked=True,
    will="WILL ACT (warn, intervene, emergency)",
    policy="profile demo",
    missing={"compact": "this agent has no conversation to compact"},
    soft_why="at its start: growth stayed under 50M/min",
)
NOTE = "demo clock: growth over 10 s, 60 s, 10 min; checkpoints every 3 / 12 experiments"


def snapshot_at(run: FakeRun, seq: int) -> Snapshot:
    """Return the state of the fake run at its clock's present."""
    now_us = run.clock.wall_us()
    up_s = (now_us - run.started_us) / 1e6
    events = run.all_events()
    used = run.memory(now_us)
    return Snapshot(
        seq=seq,
        t_us=now_us,
        run=RunInfo(
            id="20260731-demo",
            path="/home/op/runs/20260731-demo",
            agent="demo",
            profile="demo",
            host="gpu01",
            pid=4242,
            state="running",
            phase=("exploration", "accumulation", "verification")[int(up_s) // 150 % 3],
            experiment=int(up_s) // 9,
            experiment_title="lzma, level 6",
            started_us=run.started_us,
            uptime_s=up_s,
            ops=OPS,
            switches={"leak": 0.0 if run.leak_since_us is None else 120.0},
        ),
        guard=GuardInfo(
            engine="act", pid=4243, own=Own(rss_bytes=83 * MB, cpu_percent=0.8, disk_bytes=9 * MB)
        ),
        level="normal",
        lights=_lights(used, up_s),
        limits=Limits(
            binding=Limit(name="profile demo", bytes=LIMIT),
            others=(Limit(name="host", bytes=7_900 * MB),),
            why="thresholds of profile demo",
        ),
        resources=(
            Resource(
                name="memory",
                used=used,
                limit=LIMIT,
                share=used / LIMIT,
                growth_per_min={"10s": 8.1e6, "60s": 1.2e6, "10min": 0.4e6},
                time_to_limit_s=(2460.0, 3300.0),
                at_us=now_us - 400_000,
            ),
            Resource(
                name="unaccounted",
                used=41 * MB,
                growth_per_min={"10s": 0.0, "60s": 0.0, "10min": None},
                at_us=now_us - 400_000,
            ),
        ),
        tiers=tuple(_tier(run, name, now_us) for name in TIERS),
        checkpoints=crash.native(now_us, up_s % 27, int(up_s % 27) // 9),
        recovery=crash.estimate(now_us),
        interventions=_interventions(run, now_us),
        commands=tuple(run.commands[-4:]),
        engine=ENGINE,
        holds=tuple(run.holds),
        disk=Disk(path="/home", total_bytes=480_000 * MB, free_bytes=212_000 * MB, free_share=0.44),
        processes=_processes(used, up_s),
        progress=Progress(last_step_s=1.2, experiments={"kept": 30, "discarded": 60}, steps=812),
        events=tuple(events[-12:]),
        event_seq=len(events),
        source=Source(position="seg 1", records=10_433, last_lsn=10_433, lag_s=0.3),
        windows=WINDOWS,
        chart_window_s=180.0,
        profile_note=NOTE,
    )


def _processes(used: float, up_s: float) -> Processes:
    agent = ProcessInfo(
        pid=4242,
        ppid=1,
        start_ticks=1,
        name="python demo-engine",
        rss_bytes=int(used * 0.9),
        age_s=up_s,
        threads=7,
    )
    helper = ProcessInfo(pid=4250, ppid=4242, start_ticks=2, name="xz", rss_bytes=9 * MB, age_s=3)
    left = ProcessInfo(
        pid=4251, ppid=1, start_ticks=3, name="sleep", rss_bytes=MB, age_s=300, orphan=True
    )
    return Processes(count=3, orphans=1, threads=9, fds=41, members=(agent, helper, left))


def _lights(used: float, up_s: float) -> tuple[Light, ...]:
    figure = f"{used / LIMIT * 100:.0f}% {bytes_text(used)}/{bytes_text(LIMIT)}"
    word: Word = "WARN" if used > 0.6 * LIMIT else "ok"
    ckpt, due = duration_text(up_s % 27), duration_text(27 - up_s % 27)
    return (
        Light(name="MEMORY", word=word, figure=figure, meaning="limit in 41–55min"),
        Light(name="DISK", word="ok", figure="212G", meaning="run holds 31M"),
        Light(name="PROCS", word="watch", figure="3", meaning="1 left behind by a parent"),
        Light(name="CKPT", word="ok", figure=f"{ckpt} ago", meaning=f"next in {due}"),
        Light(name="STEP", word="ok", figure=f"{duration_text(up_s % 3)} ago"),
    )


def _tier(run: FakeRun, name: str, now_us: int) -> Tier:
    size = int(run.tier_bytes(name, now_us))
    entries = {"workspace": 60, "recent": 5, "verified": 41, "history": 20}[name]
    fast = {"workspace": 18.2e6, "recent": -1.2e6, "verified": 0.5e6, "history": 0.0}[name]
    return Tier(
        name=name,
        entries=entries,
        bytes=size,
        mean_bytes=size / entries,
        share=size / LIMIT,
        growth_per_min={"10s": fast, "60s": fast / 8, "10min": fast / 60},
    )


def _interventions(run: FakeRun, now_us: int) -> tuple[Intervention, ...]:
    found = [
        Intervention(
            id=f"purge-{event.seq}" if event.kind == "purge" else f"checkpoint-{event.seq}",
            action="purge" if event.kind == "purge" else event.kind.replace(".", " "),
            tier="workspace" if event.kind == "purge" else "",
            origin="agent",
            why="retention" if event.kind == "purge" else "cadence",
            asked_at_us=event.t_us,
            done_at_us=event.t_us,
            duration_s=0.9 if event.kind == "purge" else 0.04,
            before=61.8 * MB if event.kind == "purge" else 112 * MB,
            after_10s=25.2 * MB if event.kind == "purge" else 113 * MB,
            freed_bytes=36.6 * MB if event.kind == "purge" else None,
            freed_share=0.59 if event.kind == "purge" else None,
            verdict="effective" if event.kind == "purge" else "none",
            claimed=36 * MB if event.kind == "purge" else 1_200_000,
        )
        for event in run.all_events()
        if event.kind == "purge" or event.kind.startswith("checkpoint")
    ]
    return tuple(reversed(found[-16:]))
