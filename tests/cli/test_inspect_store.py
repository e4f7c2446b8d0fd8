"""`inspect` of stores: what lies there, in figures and words, and whether the newest is whole."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import tree
from tests.e2e.stage import Stage
from tests.ingest.stores.graph import STEPS, make
from tests.ingest.stores.making import TRAINER, age, hf, put


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


def at(place: Path, minutes_ago: float) -> None:
    """Another process looks, and by the real clock."""
    age(place, time.time_ns() // 1000 - round(minutes_ago * 60e6))


def test_a_directory(stage: Stage, tmp_path: Path) -> None:
    for step in (1, 2, 3):
        at(put(tmp_path, f"checkpoint-{step}", hf(step, best="checkpoint-1")), 60 - 10 * step)
    before = tree(tmp_path)
    done = stage.cli("inspect", os.fspath(tmp_path), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert (report["kind"], report["count"], report["best"]) == ("directory", 3, "checkpoint-1")
    assert [one["id"] for one in report["checkpoints"]] == [f"checkpoint-{n}" for n in (1, 2, 3)]
    assert report["checkpoints"][0]["state"] == "committed"
    assert report["newest"] == "checkpoint-3"
    assert (report["incomplete"], report["writing"], report["why"]) == ([], [], "")
    text = stage.cli("inspect", os.fspath(tmp_path)).stdout
    assert text.startswith("checkpoint directory: 3 checkpoints, ")
    assert text.count("complete") == 3
    assert tree(tmp_path) == before
    assert not stage.home.exists()


def test_an_incomplete_newest_is_not_fine(stage: Stage, tmp_path: Path) -> None:
    at(put(tmp_path, "checkpoint-1", hf(1)), 60)
    half = {name: text for name, text in hf(2).items() if name != TRAINER}
    at(put(tmp_path, "checkpoint-2", half), 30)
    done = stage.cli("inspect", os.fspath(tmp_path), "--json")
    assert (done.returncode, json.loads(done.stdout)["incomplete"]) == (1, ["checkpoint-2"])
    text = stage.cli("inspect", os.fspath(tmp_path)).stdout
    assert "incomplete: no trainer_state.json, which is written last" in text
    at(tmp_path / "checkpoint-2", 0)
    done = stage.cli("inspect", os.fspath(tmp_path))
    assert done.returncode == 0
    assert "being written" in done.stdout


def test_a_database(stage: Stage, tmp_path: Path) -> None:
    place = make(tmp_path / "graph.sqlite", "run-a", "run-b", delta=True)
    done = stage.cli("inspect", os.fspath(place), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert (report["kind"], report["count"]) == ("langgraph", 2 * STEPS)
    assert [(one["thread"], one["full"]) for one in report["chains"]] == [
        ("run-a", 6),
        ("run-b", 6),
    ]
    text = stage.cli("inspect", os.fspath(place)).stdout
    assert "thread run-b: 6 full, 46 incremental" in text
    assert "and 92 more" in text
    assert list(tmp_path.iterdir()) == [place]


def test_names_do_nothing_to_a_terminal(stage: Stage, tmp_path: Path) -> None:
    at(put(tmp_path, "checkpoint-5\x1b[2J\n\udcff", {"a.pt": b""}), 60)
    done = stage.cli("inspect", os.fspath(tmp_path))
    assert done.returncode == 1
    assert "\x1b" not in done.stdout
    assert len(done.stdout.splitlines()) == 2
    assert json.loads(stage.cli("inspect", os.fspath(tmp_path), "--json").stdout)["count"] == 1


def test_what_cannot_be_read_is_said(stage: Stage, tmp_path: Path) -> None:
    place = make(tmp_path / "graph.sqlite", steps=1)
    (tmp_path / "graph.sqlite-wal").write_bytes(b"x" * 100)
    done = stage.cli("inspect", os.fspath(place))
    assert done.returncode == 1
    assert "without its index" in done.stdout
