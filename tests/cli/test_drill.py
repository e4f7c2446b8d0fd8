"""`memwatch drill` on real runs: alive, dead, damaged; its result is kept and shown."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from memwatch.agent import Run, RunOptions
from tests.cli.conftest import Command, tree
from tests.e2e.stage import Stage


def fill(run: Run, count: int = 30) -> None:
    """Let a run keep values, take both kinds of checkpoint, and go on."""
    for part in range(3):
        with run.experiment(f"level {part}", phase="exploration"):
            for number in range(count):
                run.tiers["recent"].put(f"call/{number}", {"n": number + part, "text": "t" * 200})
            run.tiers["verified"].put(f"proof/{part}", list(range(part, 3_000)))
        if part < 2:
            assert run.checkpoints.take("incremental" if part else "full").committed


@pytest.fixture
def dead(stage: Stage) -> Path:
    """Return the directory of a run that is over."""
    path = stage.folder / "run"
    with Run.open(path, RunOptions(agent="tester")) as run:
        fill(run)
    return path


def drills(stage: Stage) -> list[dict[str, Any]]:
    """Return what is kept of all drills."""
    files = sorted(stage.home.glob("runs/*/recoveries.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_figures_in_a_dozen_lines(memwatch: Command, dead: Path) -> None:
    before = tree(dead)
    done = memwatch("drill", str(dead))
    assert (done.returncode, done.stderr) == (0, "")
    assert tree(dead) == before
    lines = done.stdout.splitlines()
    by_name = {line.split()[0]: line for line in lines}
    assert list(by_name)[:10] == [
        "start", "load", "blobs", "read", "replay", "total", "decode", "memory", "state", "lost",
    ]  # fmt: skip
    assert re.match(r"start +\S+s +[a-z]", by_name["start"]), "it has no bytes"
    assert re.search(r"load +\S+s +\S+[kMB] +full-\d{20}$", by_name["load"])
    assert by_name["blobs"].endswith(" 3 persisted values")
    assert re.search(r"read .* 1 increment, \d+ records of the log$", by_name["read"])
    assert "33 values, not in the total" in by_name["decode"]
    assert by_name["state"].endswith("matches")
    assert by_name["lost"] == "lost    nothing"


def test_json_has_stable_names(memwatch: Command, stage: Stage, dead: Path) -> None:
    done = memwatch("drill", str(dead), "--json")
    result = json.loads(done.stdout)
    assert done.returncode == 0
    assert (result["matches"], result["lossy"], result["values"]) == (True, False, 33)
    assert type(result["cold_cache"]) is bool
    assert result["waited_s"] is None or 0 <= result["waited_s"] < 60
    assert set(result["checked"]) == {"workspace", "recent", "verified", "history"}
    names = ["start", "load", "blobs", "read", "replay", "decode"]
    assert [term["name"] for term in result["terms"]] == names
    spent = {term["name"]: term["seconds"] for term in result["terms"]}
    assert sum(spent.values()) - spent["decode"] <= result["total_s"] + 1e-9
    assert result["start_of"] == "drill", "this run never began in a process of its own"
    assert (result["kind"], result["state_bytes"] > 0) == ("drill", True)
    (kept,) = drills(stage)
    assert kept == {name: result[name] for name in kept}
    status = json.loads(memwatch("status", str(dead), "--json").stdout)
    assert status["recovery"]["drill"] == kept | {"expected": []}, "the rest is for estimates"


def test_each_drill_is_held_against_what_was_estimated_and_teaches_the_next(
    memwatch: Command, stage: Stage, dead: Path
) -> None:
    estimated = re.compile(r"estimated \S+ \(\S+–\S+\), took \S+s: [+−±]\d+ %")
    measured = re.compile(r"without the start, .* measures: \S+s, took \S+s: [+−±]\d+ %")
    for _ in range(3):
        whole, alone = memwatch("drill", str(dead)).stdout.splitlines()[-2:]
        assert estimated.fullmatch(whole)
        assert measured.fullmatch(alone)
    result = json.loads(memwatch("drill", str(dead), "--json").stdout)
    span = result["estimate"]
    assert 0 < span["low"] < span["likely"] < span["high"] <= 2 * span["low"]
    assert result["error_share"] == result["total_s"] / span["likely"] - 1
    start_s = next(one["seconds"] for one in result["terms"] if one["name"] == "start")
    alone = (result["total_s"] - start_s) / (span["likely"] - start_s) - 1
    assert result["work_error_share"] == pytest.approx(alone), "the start is no merit"
    assert [drill["kind"] for drill in drills(stage)] == ["drill"] * 4
    terms = json.loads(memwatch("status", str(dead), "--json").stdout)["recovery"]["terms"]
    assert {term["basis"] for term in terms if term["name"] != "start"} == {"drilled"}


def test_a_drill_teaches_what_other_runs_cost(
    memwatch: Command, stage: Stage, dead: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    with Run.open(other, RunOptions(agent="tester")) as run:
        fill(run)

    def basis() -> dict[str, str]:
        terms = json.loads(memwatch("status", str(other), "--json").stdout)["recovery"]["terms"]
        return {term["name"]: term["basis"] for term in terms}

    assert basis()["replay"] == "assumed"
    memwatch("drill", str(dead))
    assert basis()["replay"] == "drilled"
    assert (stage.home / "host.json").stat().st_mode & 0o777 == 0o600


def test_a_live_run(memwatch: Command, stage: Stage) -> None:
    path = stage.folder / "run"
    with Run.open(path, RunOptions(agent="tester")) as run:
        fill(run)
        done = memwatch("drill", str(path), "--json")
        result = json.loads(done.stdout)
        assert (done.returncode, result["matches"], result["lossy"]) == (0, True, False)
        assert result["last_lsn"] <= run.log.last_lsn
        assert run.tiers["recent"].get("call/3") == {"n": 5, "text": "t" * 200}


def test_what_is_lost_is_said_with_status_1(memwatch: Command, stage: Stage, dead: Path) -> None:
    blob = max((dead / "blobs").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    blob.unlink()
    done = memwatch("drill", str(dead))
    assert done.returncode == 1
    assert re.search(r"lost +'proof/\d' of tier verified .*missing", done.stdout)
    (kept,) = drills(stage)
    assert kept["lossy"]


def test_damage_that_something_makes_up_for_is_named(memwatch: Command, dead: Path) -> None:
    (delta,) = (dead / "checkpoints").glob("delta-*")
    delta.write_bytes(delta.read_bytes()[:-1])
    done = memwatch("drill", str(dead))
    assert done.returncode == 0
    assert f"lost    nothing; 1 damaged: checkpoints/{delta.name}" in done.stdout


def test_two_runs_mixed_are_refused_in_one_sentence(
    memwatch: Command, stage: Stage, dead: Path
) -> None:
    path = dead / "run.json"
    run_id = json.loads(path.read_bytes())["run_id"]
    path.write_text(path.read_text().replace(run_id, "another"))
    done = memwatch("drill", str(dead))
    assert done.returncode == 2
    assert re.fullmatch(r"memwatch: two runs are mixed: .*\n", done.stderr)
    assert drills(stage) == []


def test_a_home_that_refuses_costs_only_the_record(
    memwatch: Command, stage: Stage, dead: Path
) -> None:
    stage.home.write_text("no folder")
    done = memwatch("drill", str(dead))
    assert done.returncode == 0
    assert "the result is not kept" in done.stderr
    assert "\nlost    nothing\n" in done.stdout
