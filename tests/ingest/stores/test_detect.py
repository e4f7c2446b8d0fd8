"""What lies at a path: a store, and of which kind, or nothing that concerns us."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from memwatch.ingest.stores.detect import detect
from tests.ingest.stores.graph import make
from tests.ingest.stores.making import archive, hf, put


@pytest.mark.parametrize(
    "name",
    ["checkpoint-5", "global_step5", "iter_0000500", "epoch_3", "checkpoint_000010",
     "tmp-checkpoint-5", "epoch=1-step=5.ckpt"],
)  # fmt: skip
def test_folders_of_checkpoints(tmp_path: Path, name: str) -> None:
    put(tmp_path, name, hf(5))
    assert detect(tmp_path) == "directory"


@pytest.mark.parametrize(
    "name",
    [
        "last.ckpt",
        "model_1.pt",
        "a-1.safetensors",
        "state_1.json",
        "step-5.json",
        "pytorch_model_3.bin",
    ],
)
def test_files_that_are_checkpoints(tmp_path: Path, name: str) -> None:
    put(tmp_path, name, archive(5))
    assert detect(tmp_path) == "directory"
    (tmp_path / "link").symlink_to(tmp_path)
    assert detect(tmp_path / "link") == "directory"


@pytest.mark.parametrize(
    "name",
    ["model.pt", "2026-11-30.json", "session-1.jsonl", "package2.json", "a/checkpoint-5/x",
     "config_1.json", "model-00001-of-00002.index.json",
     "model-00001-of-00002.safetensors", "data_001.bin", "step1/prepare.py", "results_2.json"],
)  # fmt: skip
def test_what_is_no_store(tmp_path: Path, name: str) -> None:
    put(tmp_path, name, b"x")
    assert detect(tmp_path) is None
    assert detect(tmp_path / name) is None


def test_a_run_of_ours_is_none(tmp_path: Path) -> None:
    put(tmp_path, "run.json", b"{}")
    put(tmp_path, "checkpoint-5", hf(5))
    assert detect(tmp_path) is None


def test_links_and_pipes_are_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "last.ckpt")
    (tmp_path / "checkpoint-5").symlink_to("/")
    assert detect(tmp_path) is None
    assert detect(tmp_path / "last.ckpt") is None


def test_databases(tmp_path: Path) -> None:
    assert detect(make(tmp_path / "graph.db", steps=1)) == "langgraph"
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("create table t (x)")
    other.close()
    assert detect(tmp_path / "other.db") is None


def test_what_is_not_there_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        detect(tmp_path / "nothing")
