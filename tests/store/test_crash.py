"""A process that is killed while it writes leaves rows and positions that agree."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memwatch.wal.segment import segment_name
from tests.builders import line
from tests.store import ingest_child
from tests.store.model import (
    Segment,
    mixed_records,
    open_historian,
    stored_flows,
    stored_lsns,
    true_flows,
    true_lsns,
)

SEGMENTS = [Segment(mixed_records(400, first)) for first in (1, 401, 801)]


@pytest.fixture
def wal_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "wal"
    folder.mkdir()
    for segment in SEGMENTS:
        text = b"".join(map(line, segment.records))
        (folder / segment_name(segment.first)).write_bytes(text)
    return folder


def ingest(wal_dir: Path, path: Path, commits: int) -> str:
    """Let a child commit so often and kill it in the midst of the last; return its last word."""
    command = [sys.executable, str(ingest_child.__file__), str(wal_dir), str(path)]
    last = ""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for _ in range(commits):
            last = child.stdout.readline().strip()
            if last != "ready":
                break
            child.stdin.write("go on\n")
        child.kill()
    return last


@pytest.mark.e2e
def test_killed_again_and_again_the_sums_are_the_truth(tmp_path: Path, wal_dir: Path) -> None:
    path = tmp_path / "r1" / "history.duckdb"
    for commits in (1, 1, 2, 3, 4):
        assert ingest(wal_dir, path, commits) == "ready"
    assert ingest(wal_dir, path, 1_000) == "done"
    historian = open_historian(path)
    flows: Counter[tuple[Any, ...]] = Counter()
    for segment in SEGMENTS:
        flows += true_flows(segment.records)
    assert stored_flows(historian) == flows
    assert stored_lsns(historian) == true_lsns([r for s in SEGMENTS for r in s.records])
    historian.close()
