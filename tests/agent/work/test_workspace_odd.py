"""Names and links that can be no files: refused before they are logged; no start fails by them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from memwatch.domain.errors import UsageError
from tests.agent.work.desk import Desk


@pytest.mark.parametrize(
    "name", ["x" * 256, "x" * 245, "a/" * 2_100 + "b", "loop/x", "file/x", "folder", "caf\udce9"]
)
def test_what_cannot_be_a_file_is_refused_before_it_is_logged(tmp_path: Path, name: str) -> None:
    desk = Desk(tmp_path)
    desk.workspace.write("file", "x")
    (desk.root / "loop").symlink_to("loop")
    (desk.root / "folder").mkdir()
    with pytest.raises(UsageError):
        desk.workspace.write(name, "x")
    assert len(desk.records("file")) == 1
    assert Desk(tmp_path).workspace.restore() == {}


@pytest.mark.parametrize("name", ["x" * 300, "loop/x", "file/x", "a/" * 2_100 + "b", "caf\x00"])
def test_no_start_fails_by_a_name_that_the_log_holds(tmp_path: Path, name: str) -> None:
    desk = Desk(tmp_path)
    desk.workspace.write("file", "x")
    (desk.root / "loop").symlink_to("loop")
    blob = desk.blobs.save(b"theirs").sha256
    members = {"path": name, "op": "write", "hash": blob, "blob": blob, "blob_bytes": 6}
    desk.journal.log(desk.context.record, "file", members)
    assert Desk(tmp_path).workspace.restore()[name] in ("missing", "changed")
    desk.journal.log(desk.context.record, "file", {"path": name, "op": "delete", "was": blob})
    assert Desk(tmp_path).workspace.restore() == {}


def test_a_folder_that_became_a_loop_or_a_way_out_is_only_told(tmp_path: Path) -> None:
    desk, outside = Desk(tmp_path), tmp_path / "outside"
    outside.mkdir()
    for folder in "ab":
        desk.workspace.write(f"{folder}/one", "1")
        shutil.rmtree(desk.root / folder)
    (desk.root / "a").symlink_to("a")
    (desk.root / "b").symlink_to(outside)
    assert Desk(tmp_path).workspace.restore() == {"a/one": "changed", "b/one": "changed"}
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("data", [bytearray(b"abc"), memoryview(b"abc")])
def test_any_bytes_can_be_written(tmp_path: Path, data: Any) -> None:
    assert Desk(tmp_path).workspace.write("a", data).read_bytes() == b"abc"


def test_what_are_no_bytes_cannot(tmp_path: Path) -> None:
    desk, number = Desk(tmp_path), 3
    data: Any = number
    with pytest.raises(TypeError, match="bytes or text, not int"):
        desk.workspace.write("a", data)
    assert desk.records("file") == []
