"""`memwatch report` of runs as they lie on a disk; nothing there is changed by it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from memwatch.cli.report import since
from memwatch.domain.errors import UsageError
from memwatch.domain.record import Record
from memwatch.wal.segment import segment_name
from tests.analytics.report.night import agent_log, guard_log
from tests.builders import T0_US, line
from tests.cli.conftest import Command, tree
from tests.e2e.stage import Stage


def write_log(folder: Path, records: Iterable[Record]) -> None:
    folder.mkdir(parents=True)
    known = list(records)
    renumbered = (Record(n, r.t_us, r.m_us, r.kind, _own(r)) for n, r in enumerate(known, 1))
    (folder / segment_name(1)).write_bytes(b"".join(map(line, renumbered)))


def _own(record: Record) -> dict[str, Any]:
    return dict(record.members)


@pytest.fixture
def night(stage: Stage) -> Path:
    """Return a run directory and what a guard wrote of it."""
    run = stage.folder / "night-7"
    write_log(run / "wal", agent_log().records)
    manifest = {"format": 1, "run_id": "night-7", "agent": "searcher", "started_us": T0_US}
    (run / "run.json").write_text(json.dumps(manifest))
    home = stage.home / "runs" / "night-7"
    write_log(home / "wal", guard_log().records)
    meta = {"format": 1, "run_key": "night-7", "path": str(run), "agent": "searcher", "host": "h"}
    meta |= {"profile": "native", "pid": 1, "started_us": T0_US, "seen_us": T0_US}
    (home / "meta.json").write_text(json.dumps(meta))
    return run


def ten(text: str) -> list[str]:
    return [one for one in text.splitlines() if one.startswith("- **")][:10]


def test_the_night_is_told_and_nothing_is_written(
    stage: Stage, memwatch: Command, night: Path
) -> None:
    before = tree(night), tree(stage.home)
    done = memwatch("report", str(night))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("# Report of night-7\n\n- **Run:** night-7 (searcher")
    assert len(ten(done.stdout)) == 10
    assert "4 experiments ended (2 kept, 2 discarded), 4 an hour; best 2." in done.stdout
    assert "| levels.warn.escalate | warn  |     3 |" in done.stdout
    assert (tree(night), tree(stage.home)) == before
    assert ten(memwatch("report", "night-7").stdout) == ten(done.stdout), "by its name as well"


def test_json_has_stable_names_and_is_plain_ascii(memwatch: Command, night: Path) -> None:
    done = memwatch("report", str(night), "--json", "--since", "30d")
    report = json.loads(done.stdout)
    assert done.stdout.isascii()
    assert {"run", "span", "lines", "notes", "levels", "plans", "deeds", "experiments"} <= set(
        report
    )
    assert {"checkpoints", "rto_s", "recoveries", "starts", "alerts", "advice"} <= set(report)
    assert len(report["lines"]) == 10


def test_it_is_written_whole_where_one_says(memwatch: Command, stage: Stage, night: Path) -> None:
    there = stage.folder / "morning.md"
    there.write_text("old")
    assert memwatch("report", str(night), "-o", str(there)).stdout == ""
    assert len(ten(there.read_text())) == 10
    nowhere = stage.folder / "no" / "x.md"
    lost = memwatch("report", str(night), "-o", str(nowhere))
    assert lost.returncode == 2
    assert f"No such file or directory ({nowhere})" in lost.stderr
    assert not list(stage.folder.glob(".morning*"))


def test_a_run_that_nobody_watched_and_one_that_is_gone(
    memwatch: Command, stage: Stage, night: Path
) -> None:
    home = stage.home / "runs" / "night-7"
    kept = (home / "wal").rename(stage.folder / "kept")
    done = memwatch("report", str(night))
    assert "No guard watched in this time" in done.stdout
    assert "4 experiments ended" in done.stdout
    kept.rename(home / "wal")
    night.rename(stage.folder / "elsewhere")
    done = memwatch("report", "night-7")
    assert done.returncode == 0
    assert "its directory is gone" in done.stdout
    assert "Intervene 1m00s (once), warn 9m00s" in done.stdout
    assert memwatch("report", str(night)).returncode == 2
    assert memwatch("report", "night-8").returncode == 2


def test_a_store_of_another_program_is_told_by_its_files(memwatch: Command, stage: Stage) -> None:
    store = stage.folder / "out"
    for step in (100, 200):
        folder = store / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        (folder / "trainer_state.json").write_text(json.dumps({"global_step": step}))
        (folder / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    before = tree(store)
    done = memwatch("report", str(store))
    assert (done.returncode, done.stderr) == (0, "")
    assert "The store tells nothing of experiments." in done.stdout
    assert "2 complete (2 full); none failed" in done.stdout
    assert "could go on from checkpoint-200 of " in done.stdout
    assert "A checkpoint store has no log" in done.stdout
    assert tree(store) == before


def test_words_that_are_no_time_say_what_would_be(memwatch: Command, night: Path) -> None:
    done = memwatch("report", str(night), "--since", "yesterday")
    assert done.returncode == 2
    assert "'yesterday' is no time; write 10h, 23:00 or 2026-11-30 23:00" in done.stderr


def test_times_are_those_a_person_means() -> None:
    now_s = time.mktime((2026, 11, 30, 7, 30, 0, 0, 0, -1))
    evening_s = time.mktime((2026, 11, 29, 23, 0, 0, 0, 0, -1))
    assert since("23:00", now_s) == round(evening_s * 1e6)
    assert since("2026-11-29 23:00", now_s) == round(evening_s * 1e6)
    assert since("10h", now_s) == round((now_s - 36_000) * 1e6)
    assert since("07:30", now_s) == round(now_s * 1e6)
    for wrong in ("2026-12-01", "", "25:00", "10", "2026-13-01", "9" * 400):
        with pytest.raises(UsageError):
            since(wrong, now_s)
