"""What a recovered state gives: values on demand, sources, blobs, what is lost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from memwatch.agent import Run, RunOptions, recover
from memwatch.agent.memory.entry import Blob, Source
from memwatch.domain.errors import DamagedError
from tests.agent.recovery.building import Builder, sha
from tests.agent.recovery.looking import says, whole


@dataclass
class Result:
    """A class of the run's values."""

    ratio: float
    name: str = ""


def test_values_are_text_until_they_are_asked_for(tmp_path: Path) -> None:
    run = Builder(tmp_path / "run")
    run.put("recent", "a", {"b": 1, "a": [2]})
    state, _ = recover(run.path)
    entry = state.tiers["recent"]["a"]
    assert entry.packed == b'{"a":[2],"b":1}'
    assert entry.digest == sha(entry.packed)
    assert state["recent"]["a"] == {"b": 1, "a": [2]}
    assert "a" in state["recent"]
    with pytest.raises(KeyError):
        state["recent"]["b"]
    with pytest.raises(KeyError):
        state["nowhere"]


def test_values_of_classes_come_back_as_such(tmp_path: Path) -> None:
    run = Builder(tmp_path / "run")
    about = {"tier": "recent", "bytes": 1}
    run.log("put", {**about, "key": "r", "type": "Result", "value": {"name": "x", "ratio": 2.5}})
    run.log("put", {**about, "key": "b", "type": "bytes", "value": "AP8="})
    known, _ = recover(run.path, types=[Result])
    assert dict(known["recent"]) == {"r": Result(2.5, "x"), "b": b"\x00\xff"}
    unknown, _ = recover(run.path)
    assert unknown["recent"]["r"] == {"name": "x", "ratio": 2.5}


def test_what_can_be_made_again_comes_as_its_source(tmp_path: Path) -> None:
    run = Builder(tmp_path / "run")
    source = b'{"args":{"n":3},"by":"load"}'
    about = {"tier": "recent", "key": "m", "bytes": 1, "rebuildable": True}
    run.log("put", {**about, "source": msgspec.Raw(source)})
    state, report = recover(run.path)
    entry = state.tiers["recent"]["m"]
    assert (entry.source, entry.digest) == (Source("load", {"n": 3}), sha(source))
    assert state["recent"]["m"] == Source("load", {"n": 3})
    assert not report.lossy


def test_a_persisted_value_that_can_be_made_again_is_never_lost(tmp_path: Path) -> None:
    run = Builder(tmp_path / "run")
    blob = sha(b"[1,2]")
    about = {"tier": "recent", "key": "m", "bytes": 1, "rebuildable": True}
    about |= {"source": {"args": {}, "by": "load"}, "blob": blob, "blob_bytes": 5}
    run.log("put", about)
    (run.path / "blobs" / blob).write_bytes(b"[1,2]")
    state, _ = recover(run.path)
    assert state["recent"]["m"] == [1, 2]
    assert state.tiers["recent"]["m"].blob == Blob(blob, 5)
    (run.path / "blobs" / blob).unlink()
    _, report = recover(run.path)
    assert not report.lossy


def test_members_of_a_record_are_those_of_the_entry(tmp_path: Path) -> None:
    run = Builder(tmp_path / "run")
    run.log("experiment.begin", {"x": 7, "phase": "verification"})
    about = {"tier": "recent", "bytes": 123, "value": 1, "x": 7}
    run.log("put", {**about, "key": "a", "tokens": 5, "importance": 0.9, "ttl_us": 60})
    run.log("put", {**about, "key": "other", "of": 3})
    run.log("put", {**about, "key": "none", "of": None})
    entries = recover(run.path)[0].tiers["recent"]
    a = entries["a"]
    assert (a.tokens, a.importance, a.ttl_us, a.full_bytes) == (5, 0.9, 60, 123)
    assert a.phase == "verification"
    assert [entries[key].experiment for key in ("a", "other", "none")] == [7, 3, None]


def test_blobs_may_only_be_looked_for(tmp_path: Path) -> None:
    run = Builder(tmp_path / "run")
    run.put("recent", "a", "x" * 50, blob=True)
    path = run.path / "blobs" / sha(b'"' + b"x" * 50 + b'"')
    path.write_bytes(b'"' + b"y" * 50 + b'"')
    state, report = recover(run.path, verify_blobs=False)
    assert not report.lossy
    with pytest.raises(DamagedError, match="its content is not what was written"):
        state["recent"]["a"]
    path.unlink()
    _, report = recover(run.path, verify_blobs=False)
    assert says(report.lost, "'a' of tier recent", "missing")


def test_many_differences_of_one_value(tmp_path: Path) -> None:
    run = Builder(tmp_path / "run")
    run.put("recent", "a", list(range(100)))
    run.full()
    for number in range(200):
        run.update("recent", "a", [*run.kept["recent"]["a"][1], number])
    run.delta()
    run.update("recent", "a", run.kept["recent"]["a"][1][5:])
    run.update("recent", "a", run.kept["recent"]["a"][1])  # the same again
    report = whole(run)
    assert report.verified is not None


def test_what_a_journal_points_at_is_looked_for(tmp_path: Path) -> None:
    run = Builder(tmp_path / "run")
    content = sha(b"content")
    run.log(
        "file", {"path": "a.txt", "op": "write", "hash": content, "blob": content, "blob_bytes": 7}
    )
    (run.path / "blobs" / content).write_bytes(b"content")
    state, report = recover(run.path)
    assert not report.lossy
    assert set(state.journal.files()) == {"a.txt"}
    (run.path / "blobs" / content).unlink()
    assert says(recover(run.path)[1].lost, "file 'a.txt'", "missing")


def test_files_of_a_workspace_are_compared(tmp_path: Path) -> None:
    run = Builder(tmp_path / "run")
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (tmp_path / "outside").write_bytes(b"secret")
    names = ("same", "sub/changed", "missing", "../outside", "/etc/passwd", "link", "", "gone")
    for name in names:
        run.log("file", {"path": name, "op": "seen", "hash": sha(b"secret"), "bytes": 6})
    run.log("file", {"path": "gone", "op": "delete", "bytes": 0})
    (work / "same").write_bytes(b"secret")
    (work / "sub" / "changed").write_bytes(b"other")
    (work / "link").symlink_to(tmp_path / "outside")
    _, report = recover(run.path, workspace=work)
    assert {file.path: file.state for file in report.files} == {
        "same": "same",
        "sub/changed": "changed",
        "missing": "missing",
        "../outside": "missing",
        "/etc/passwd": "missing",
        "link": "missing",
        "": "missing",
    }
    assert recover(run.path)[1].files == ()


def test_a_run_may_be_named_by_text(tmp_path: Path) -> None:
    with Run.open(str(tmp_path / "run"), RunOptions(agent="a")) as run:
        run.tiers["verified"].put("a", 1)
    assert recover(str(run.path))[0]["verified"]["a"] == 1
