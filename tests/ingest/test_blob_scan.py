"""Persisted values are counted as they lie there, in bounded time, and only when some changed."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.ingest import blob_scan
from memwatch.ingest.blob_scan import Blobs, scan_blobs


def put(folder: Path, name: str, size: int) -> None:
    (folder / name).write_bytes(b"x" * size)


def test_values_are_counted_and_drafts_and_strange_things_are_not(tmp_path: Path) -> None:
    put(tmp_path, "a" * 64, 10)
    put(tmp_path, "b" * 64, 32)
    put(tmp_path, ".c.1.draft", 1000)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("a" * 64)
    found = scan_blobs(tmp_path)
    assert (found.measured, found.count) == (2, 2)
    assert found.bytes == 42


def test_no_folder_holds_nothing(tmp_path: Path) -> None:
    assert scan_blobs(tmp_path / "none") == Blobs()
    put(tmp_path, "file", 3)
    assert scan_blobs(tmp_path / "file") == Blobs()
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there", target_is_directory=True)
    assert scan_blobs(tmp_path / "link") == Blobs(), "a link leads out of the run"


def test_an_unchanged_folder_is_not_listed_again(tmp_path: Path) -> None:
    put(tmp_path, "a", 10)
    before = scan_blobs(tmp_path)
    assert scan_blobs(tmp_path, before) is before
    put(tmp_path, "b", 10)
    os.utime(tmp_path, ns=(before.changed_ns, before.changed_ns + 1))
    assert scan_blobs(tmp_path, before).count == 2


@given(st.lists(st.integers(0, 200), min_size=1, max_size=12), st.integers(1, 6))
def test_of_very_many_a_part_stands_for_all(sizes: list[int], most: int) -> None:
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(blob_scan, "_MOST_SIZES", most)
        for number, size in enumerate(sizes):
            put(Path(name), f"v{number}", size)
        found = scan_blobs(Path(name))
    assert found.count == len(sizes)
    assert found.measured == min(most, len(sizes))
    assert min(sizes) * len(sizes) - 1 <= found.bytes <= max(sizes) * len(sizes) + 1
