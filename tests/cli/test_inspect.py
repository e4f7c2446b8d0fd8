"""`inspect` counts exactly what was damaged, and what the agent dropped itself is no damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memwatch.cli.inspect import make_report
from memwatch.ingest.segment_file import Listing, list_segments
from memwatch.runtime.runs.one_look import Look
from memwatch.wal import codec
from memwatch.wal.segment import segment_name
from tests.builders import T0_US, record
from tests.cli.conftest import tree
from tests.e2e.stage import Stage

Report = dict[str, Any]


def lines(first: int, last: int) -> list[bytes]:
    """Return notes with these numbers, as lines."""
    notes = (record(lsn, "note", lsn, text=f"note {lsn}") for lsn in range(first, last + 1))
    return [codec.encode(r.lsn, r.t_us, r.m_us, r.kind, r.members) for r in notes]


def flip(line: bytes) -> bytes:
    return line[:20] + bytes([line[20] ^ 1]) + line[21:]


def make(folder: Path, *segments: tuple[int, list[bytes]]) -> Path:
    """Write a run directory with segments, each by its first number."""
    wal = folder / "run" / "wal"
    wal.mkdir(parents=True)
    manifest = {"format": 1, "run_id": "run-1", "agent": "searcher", "started_us": T0_US}
    (folder / "run" / "run.json").write_text(json.dumps(manifest))
    for first, content in segments:
        (wal / segment_name(first)).write_bytes(b"".join(content))
    return folder / "run"


@pytest.fixture(scope="module")
def stage() -> Any:
    with Stage() as stage:
        yield stage


def inspect(stage: Stage, run_dir: Path) -> tuple[Report, int]:
    done = stage.cli("inspect", str(run_dir), "--json")
    assert done.stderr == ""
    found: Report = json.loads(done.stdout)
    return found, done.returncode


def counts(report: Report) -> tuple[int, int, int]:
    return report["records"], report["damaged"], report["gaps"]


def test_a_whole_log(stage: Stage, tmp_path: Path) -> None:
    run_dir = make(tmp_path, (1, lines(1, 10)), (11, lines(11, 20)))
    before = tree(tmp_path)
    report, status = inspect(stage, run_dir)
    assert status == 0
    assert counts(report) == (20, 0, 0)
    assert (report["segments"], report["first_segment"], report["last_lsn"]) == (2, 1, 20)
    assert report["faults"] == []
    assert report["log_bytes"] == sum(len(line) for line in lines(1, 20))
    text = stage.cli("inspect", str(run_dir)).stdout
    assert "20 records in 2 segments" in text
    assert text.endswith("no damage\n")
    assert tree(tmp_path) == before
    assert not stage.home.exists()


def test_each_damaged_line_is_counted_once(stage: Stage, tmp_path: Path) -> None:
    old, new = lines(1, 10), lines(11, 20)
    for index in (2, 3, 7):
        old[index] = flip(old[index])
    new[5] = flip(new[5])
    report, status = inspect(stage, make(tmp_path, (1, old), (11, new)))
    assert status == 1
    assert counts(report) == (16, 4, 0)
    places = {(fault["segment"], fault["offset"]) for fault in report["faults"]}
    assert places == {
        *((1, sum(map(len, lines(1, count)))) for count in (2, 3, 7)),
        (11, sum(map(len, lines(11, 15)))),
    }


def test_missing_numbers_are_gaps(stage: Stage, tmp_path: Path) -> None:
    holed = lines(1, 4) + lines(8, 10)
    report, status = inspect(stage, make(tmp_path, (1, holed), (21, lines(21, 25))))
    assert status == 1
    assert counts(report) == (12, 0, 2)
    assert sorted(fault["missing"] for fault in report["faults"]) == [3, 10]


def test_a_torn_end_waits_in_the_open_segment_and_is_damage_in_a_sealed_one(
    stage: Stage, tmp_path: Path
) -> None:
    (half,) = lines(21, 21)
    open_end = make(tmp_path / "open", (1, [*lines(1, 20), half[:40]]))
    report, status = inspect(stage, open_end)
    assert (status, counts(report), report["torn_bytes"]) == (0, (20, 0, 0), 40)
    sealed = make(tmp_path / "sealed", (1, [*lines(1, 20), half[:40]]), (22, lines(22, 25)))
    report, status = inspect(stage, sealed)
    assert status == 1
    assert (report["records"], report["damaged"]) == (24, 1)
    assert report["faults"][0]["kind"] == "torn"


def test_what_the_agent_dropped_is_no_damage(stage: Stage, tmp_path: Path) -> None:
    run_dir = make(tmp_path, (101, lines(101, 110)))
    report, status = inspect(stage, run_dir)
    assert (status, counts(report)) == (0, (10, 0, 0))
    text = stage.cli("inspect", str(run_dir)).stdout
    assert "100 older records dropped by the agent, behind a checkpoint" in text
    assert " 0 starts" not in text, "the log does not reach back to one"
    assert text.endswith("no damage\n")


def test_nothing_but_garbage(stage: Stage, tmp_path: Path) -> None:
    garbage = [b"\xff\xfe garbage %d\n" % number for number in range(70)]
    run_dir = make(tmp_path, (1, garbage))
    report, status = inspect(stage, run_dir)
    assert status == 1
    assert report["records"] == 0
    assert report["damaged"] == 70
    assert report["faults_in_all"] == 70
    text = stage.cli("inspect", str(run_dir)).stdout
    assert "70 damaged places, 0 gaps:" in text
    assert f"  and {70 - len(report['faults'])} more" in text


def test_a_link_in_place_of_a_segment_is_not_read(stage: Stage, tmp_path: Path) -> None:
    run_dir = make(tmp_path, (1, lines(1, 5)))
    (run_dir / "wal" / segment_name(6)).symlink_to("/etc/passwd")
    report, status = inspect(stage, run_dir)
    assert (status, report["records"], report["damaged"]) == (1, 5, 1)
    assert report["faults"][0]["kind"] == "refused"


def test_unknown_kinds_are_counted_and_no_damage(stage: Stage, tmp_path: Path) -> None:
    strange = codec.encode(3, T0_US, 3, "quantum.leap", {"where": "there"})
    run_dir = make(tmp_path, (1, [*lines(1, 2), strange]))
    report, status = inspect(stage, run_dir)
    assert (status, report["unknown_kinds"], report["records"]) == (0, 1, 3)
    text = stage.cli("inspect", str(run_dir)).stdout
    assert "1 record of a kind that this version does not know" in text


def test_a_long_run_is_counted_whole(stage: Stage, tmp_path: Path) -> None:
    """More purges and checkpoints than are kept to be shown."""
    kinds = ["purge.end", "checkpoint.commit"] * 100
    content = [
        codec.encode(lsn, T0_US + lsn, lsn, kind, {"id": f"c{lsn}", "kind": "full", "tier": "t"})
        for lsn, kind in enumerate(kinds, 1)
    ]
    report, _ = inspect(stage, make(tmp_path, (1, content)))
    assert report["purges"] == 100
    assert report["checkpoint_counts"] == {"committed": 100}


def test_many_small_segments_are_listed_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    def counted(wal_dir: Path) -> Listing:
        nonlocal looks
        looks += 1
        return list_segments(wal_dir)

    monkeypatch.setattr("memwatch.ingest.tailer.list_segments", counted)
    run_dir = make(tmp_path, *((lsn, lines(lsn, lsn)) for lsn in range(1, 101)))
    assert make_report(Look(run_dir))["records"] == 100
    assert looks < 10
