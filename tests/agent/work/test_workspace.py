"""Files of the agent: logged before they change, whole or not there, and never outside."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from memwatch.agent import Run, RunOptions
from memwatch.agent.work.workspace import Workspace
from memwatch.domain.errors import LogError, ReadOnlyError, UsageError
from tests.agent.work.desk import Desk
from tests.faults.failing_files import FailingFiles


def test_a_file_is_logged_with_its_content(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    path = desk.workspace.write("notes/día.txt", "first\n")
    assert path == desk.root / "notes/día.txt"
    assert path.read_text() == "first\n"
    desk.workspace.write(path, b"second\n")
    first, second = (record.members for record in desk.records("file"))
    assert (first["path"], first["op"], first["bytes"]) == ("notes/día.txt", "write", 6)
    assert (second["was"], second["blob"]) == (first["hash"], second["hash"])
    assert (tmp_path / "run/blobs" / second["blob"]).exists()
    assert [path.name for path in path.parent.iterdir()] == ["día.txt"]


def test_what_is_missing_is_put_back_what_was_changed_is_told(tmp_path: Path) -> None:
    first = Desk(tmp_path)
    for name in ("lost", "same", "touched"):
        first.workspace.write(name, f"{name} and written")
    (first.root / "tool").write_text("made by a tool")
    first.workspace.wrote("tool")
    first.workspace.write("gone", "deleted later")
    first.workspace.delete("gone")
    (first.root / "lost").unlink()
    (first.root / "tool").unlink()
    (first.root / "touched").write_text("by hand")
    second = Desk(tmp_path)
    assert second.workspace.restore() == {
        "lost": "put back",
        "touched": "changed",
        "tool": "missing",
    }
    left = {path.name: path.read_text() for path in second.root.iterdir()}
    assert left == {"lost": "lost and written", "same": "same and written", "touched": "by hand"}


@pytest.mark.parametrize("operation", ["rename", "open", "fsync"])
def test_a_write_that_was_logged_and_not_done_is_done_later(tmp_path: Path, operation: str) -> None:
    files = FailingFiles()
    desk = Desk(tmp_path, files=files)
    desk.workspace.write("a", "old")
    desk.workspace.write("b", "new")
    desk.blobs.save(b"new and logged")
    files.fail_all(operation)
    with pytest.raises(OSError, match="space"):
        desk.workspace.write("a", b"new and logged")
    assert (desk.root / "a").read_text() == "old"
    again = Desk(tmp_path)
    assert again.workspace.restore() == {"a": "put back"}
    assert (desk.root / "a").read_text() == "new and logged"
    assert again.workspace.restore() == {}


def test_an_older_version_put_there_by_hand_stays(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.workspace.write("a", "old")
    desk.workspace.write("a", "new")
    desk.workspace.write("b", "b")
    (desk.root / "a").write_text("old")
    assert Desk(tmp_path).workspace.restore() == {"a": "changed"}


def test_a_deletion_that_was_logged_and_not_done_is_done_later(tmp_path: Path) -> None:
    files = FailingFiles()
    desk = Desk(tmp_path, files=files)
    desk.workspace.write("a", "old")
    files.fail_all("unlink")
    with pytest.raises(OSError, match="space"):
        desk.workspace.delete("a")
    assert Desk(tmp_path).workspace.restore() == {}
    assert not (desk.root / "a").exists()
    with pytest.raises(FileNotFoundError):
        Desk(tmp_path).workspace.delete("a")


@pytest.mark.parametrize("name", ["../out", "/tmp/out", "a/../../out", "", ".", "n\0ul"])
def test_nothing_is_written_outside(tmp_path: Path, name: str) -> None:
    desk = Desk(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError, match="does not lie in the workspace"):
        desk.workspace.write(name, "x")
    assert (sorted(tmp_path.rglob("*")), desk.records("file")) == (before, [])


def test_no_link_leads_out(tmp_path: Path) -> None:
    desk, outside = Desk(tmp_path), tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("theirs")
    desk.root.mkdir()
    (desk.root / "door").symlink_to(outside)
    (desk.root / "window").symlink_to(outside / "secret")
    with pytest.raises(UsageError, match="leads out of the workspace"):
        desk.workspace.write("door/secret", "mine")
    with pytest.raises(UsageError, match="leads out of the workspace"):
        desk.workspace.delete("door/secret")
    desk.workspace.write("window", "mine")
    assert (desk.root / "window").read_text() == "mine"
    assert (outside / "secret").read_text() == "theirs"


def test_a_log_of_a_stranger_reaches_nothing_outside(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "desk")
    mine = tmp_path / "mine"
    mine.write_text("mine")
    blob = desk.blobs.save(b"theirs").sha256
    for path in ("../../mine", str(mine), "../../new"):
        members = {"path": path, "op": "write", "hash": blob, "blob": blob, "blob_bytes": 6}
        desk.journal.log(desk.context.record, "file", members)
    assert set(desk.workspace.restore().values()) == {"changed"}
    last = {"path": "../../mine", "op": "delete", "was": None}
    desk.journal.log(desk.context.record, "file", last)
    desk.workspace.restore()
    assert mine.read_text() == "mine"
    assert not (tmp_path / "new").exists()


def test_a_damaged_blob_puts_nothing_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.workspace.write("a", "text")
    (desk.root / "a").unlink()
    (blob,) = (tmp_path / "run/blobs").iterdir()
    blob.write_bytes(b"other text")
    assert Desk(tmp_path).workspace.restore() == {"a": "missing"}


def test_nothing_is_written_where_nothing_may_change(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.workspace.write("a", "old")
    desk.read_only()
    for act in (
        lambda: desk.workspace.write("a", "new"),
        lambda: desk.workspace.delete("a"),
        lambda: desk.workspace.wrote("a"),
    ):
        with pytest.raises(ReadOnlyError):
            act()
    assert (desk.root / "a").read_text() == "old"


def test_nothing_is_written_that_could_not_be_logged(tmp_path: Path) -> None:
    files = FailingFiles()
    desk = Desk(tmp_path, files=files)
    files.fail_all("write")
    with pytest.raises(LogError):
        desk.workspace.write("a", "new")
    assert not desk.root.exists()
    assert desk.journal.blobs() == []


@pytest.mark.parametrize("kind", ["fifo", "folder", "link", "socket"])
def test_only_a_regular_file_is_recorded(tmp_path: Path, kind: str) -> None:
    desk = Desk(tmp_path)
    desk.workspace.write("real", "x")
    odd = desk.root / "odd"
    if kind == "fifo":
        os.mkfifo(odd)
    elif kind == "folder":
        odd.mkdir()
    elif kind == "link":
        odd.symlink_to("real")
    else:
        os.mknod(odd, 0o600 | stat.S_IFSOCK)
    with pytest.raises(UsageError, match=r"odd in the workspace .* is no regular file"):
        desk.workspace.wrote("odd")
    assert len(desk.records("file")) == 1
    with pytest.raises(FileNotFoundError):
        desk.workspace.wrote("none")


def test_a_link_to_what_was_written_is_not_what_was_written(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    path = desk.workspace.write("a", "x")
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert Desk(tmp_path).workspace.restore() == {"a": "changed"}


@pytest.mark.parametrize("place", ["run", "run/files", "run/wal", "link", "link/blobs"])
def test_a_workspace_in_the_run_directory_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "run")
    options = RunOptions(agent="a", workspace=tmp_path / place)
    with pytest.raises(UsageError, match=r"lies in the run directory .*: name a folder beside it"):
        Run.open(tmp_path / "run", options)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["run", "run/run.json", "run/new", "link/run.json", "Run/../run"])
def test_no_file_of_the_run_is_touched_in_a_workspace_around_it(tmp_path: Path, name: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "run")
    with Run.open(tmp_path / "run", RunOptions(agent="a", workspace=tmp_path)) as run:
        run.write_file("running", "beside it")
        before = (run.path / "run.json").read_bytes()
        for act in (lambda: run.write_file(name, "x"), lambda: run.delete_file(name)):
            with pytest.raises(UsageError):
                act()
        assert (run.path / "run.json").read_bytes() == before


def test_without_a_workspace_nothing_is_written(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    none = Workspace(None, desk.context, desk.journal, desk.blobs)
    with pytest.raises(UsageError, match="RunOptions"):
        none.write("a", "x")
    assert none.restore() == {}
