"""What is shown agrees with what the kernel and the interpreter say, and with a stored past."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memwatch.config.locations import run_home
from memwatch.domain.clock import SystemClock
from memwatch.wal import codec
from memwatch.wal.manifest import RunManifest
from memwatch.wal.segment import segment_name
from tests.e2e.stage import Stage, memory
from tests.waiting import wait_for

pytestmark = pytest.mark.e2e

MB = 1_000_000
S = 1_000_000
HOURS = 26
RATE = 2 * MB
"""Bytes that memory and tier of the stored run grow by in a minute."""


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


def rollup(pid: int) -> int:
    """Return resident and swapped bytes as the kernel adds them up."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    fields = dict(line.split(":", 1) for line in text.splitlines()[1:])
    return sum(int(fields[name].split()[0]) * 1024 for name in ("Rss", "Swap"))


def test_memory_agrees_with_the_kernel_and_tiers_with_the_interpreter(stage: Stage) -> None:
    puppet = stage.puppet("agree")
    stage.guard(puppet.run_dir)
    puppet.ask("hold", 120 * MB)
    measured = puppet.ask("fill", "recent", 600, 20_000)
    assert measured["bytes"] == pytest.approx(measured["traced"], rel=0.10)
    told = stage.wait_status(
        puppet.run_dir,
        lambda s: any(t["bytes"] == measured["bytes"] for t in s["tiers"]),
        "the tier's bytes",
    )
    (tier,) = (t for t in told["tiers"] if t["name"] == "recent")
    assert tier["entries"] == 600

    def agrees() -> bool:
        """The kernel's figure moves while two read it: look at both until they meet."""
        shown = float(memory(stage.status(puppet.run_dir))["used"])
        return abs(shown - rollup(puppet.pid)) <= 0.10 * shown

    wait_for(agrees, "memory to agree within 10 %", 5.0)
    shown = memory(stage.status(puppet.run_dir))["used"]
    assert shown > 120 * MB


def test_a_stored_day_fills_the_column_of_24_hours(stage: Stage) -> None:
    stage.profile("day", "name: day\nprobe: {period_s: 0.5}\n")
    run_dir = stage.folder / "day"
    last_lsn = _write_past_of_agent(run_dir, SystemClock().wall_us())
    puppet = stage.puppet("day", profile="day")
    assert puppet.run_id == "day-1"
    assert puppet.ask("note", "today") > last_lsn
    own_wal = run_home("day-1", create=True) / "wal"
    _write_past_of_guard(own_wal, SystemClock().wall_us())
    stage.guard(run_dir)
    first = stage.status(run_dir)
    growth = memory(first)["growth_per_min"]
    assert growth["24h"] == pytest.approx(RATE, rel=0.05), "before anything new was measured"
    assert growth["10min"] == pytest.approx(RATE, rel=0.25)
    told = stage.wait_status(
        run_dir, lambda s: growth_of_recent(s)["24h"] is not None, "the tier's day"
    )
    assert growth_of_recent(told)["24h"] == pytest.approx(RATE, rel=0.05)
    assert told["progress"]["experiments"] == {"kept": HOURS}
    _shows_the_whole_day(stage, run_dir, told["t_us"])


def growth_of_recent(status: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(t for t in status["tiers"] if t["name"] == "recent")
    return dict(found["growth_per_min"])


def _shows_the_whole_day(stage: Stage, run_dir: Path, now_us: int) -> None:
    session = stage.session(run_dir)
    start_us = now_us - (HOURS - 1) * 3600 * S
    for resource in ("memory", "tier:recent"):
        columns = session.series(resource, start_us, now_us - 120 * S, 100)
        assert not any(column.gap for column in columns), resource
        lasts = [column.last or 0.0 for column in columns]
        assert lasts == sorted(lasts)
    session.close()


def _write_past_of_agent(run_dir: Path, now_us: int) -> int:
    """Write a run directory whose agent worked for 26 hours, a sample a minute."""
    manifest = RunManifest(format=1, run_id="day-1", agent="puppet", started_us=now_us)
    wal = run_dir / "wal"
    wal.mkdir(parents=True)
    (run_dir / "run.json").write_bytes(msgspec.json.encode(manifest))
    began = {"start_id": "yesterday", "boot": "before", "agent": "puppet", "pid": 1}
    lines = [codec.encode(1, now_us - HOURS * 3600 * S, 1, "run.begin", began)]
    for minute in range(HOURS * 60):
        t_us = now_us - (HOURS * 60 - minute) * 60 * S
        held = {"recent": {"entries": minute, "bytes": minute * RATE}}
        lines.append(codec.encode(len(lines) + 1, t_us, minute + 2, "sample", {"tiers": held}))
        if minute % 60 == 59:
            end = {"x": minute // 60 + 1, "status": "kept", "duration_us": 9}
            lines.append(codec.encode(len(lines) + 1, t_us, minute + 2, "experiment.end", end))
    (wal / segment_name(1)).write_bytes(b"".join(lines))
    return len(lines)


def _write_past_of_guard(wal: Path, now_us: int) -> None:
    """Write what a guard recorded for 26 hours: a probe each half minute, closer at the end."""
    wal.mkdir(parents=True)
    ages_s = [*range(HOURS * 3600, 1200, -30), *range(1200, 0, -2)]
    lines = []
    for lsn, age_s in enumerate(ages_s, 1):
        used = round((HOURS * 3600 - age_s) / 60 * RATE)
        probe = {"alive": True, "rss_bytes": used, "swap_bytes": 0, "processes": 1}
        lines.append(codec.encode(lsn, now_us - age_s * S, lsn, "probe", probe))
    (wal / segment_name(1)).write_bytes(b"".join(lines))
    os.utime(wal)
