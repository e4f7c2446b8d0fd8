"""A word or a path -> a run; a copy gets a key of its own, a moved run keeps its key."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memwatch.config.locations import run_home
from memwatch.domain.errors import TargetError
from memwatch.host.lock import RUN_LOCK, FileLock
from memwatch.runtime.runs.meta import Meta, read_meta, write_meta
from memwatch.runtime.runs.target import (
    META_FILE,
    RUN_FILE,
    guard_socket,
    newest,
    newest_live,
    read_json,
    resolve,
    run_key,
)
from tests.builders import T0_US

HOSTILE = [
    "../../etc/passwd",
    "a/b",
    ".",
    "..",
    "\x1b]0;x\x07",
    "x" * 180,
    "名前\u202e",
    "a\nb",
    "-rf",
]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "home"
    monkeypatch.setenv("MEMWATCH_HOME", str(path))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    return path


def make_run(path: Path, run_id: str = "run-1") -> Path:
    path.mkdir(parents=True)
    (path / RUN_FILE).write_text(json.dumps({"format": 1, "run_id": run_id, "agent": "a"}))
    return path


def meta(path: Path, key: str = "run-1", **members: object) -> Meta:
    shown = {
        "run_key": key,
        "path": str(path),
        "agent": "a",
        "profile": "native",
        "host": "box",
        "pid": 1,
        "started_us": T0_US,
        "seen_us": T0_US,
        **members,
    }
    return Meta(**shown)  # type: ignore[arg-type]  # members of the test


def know(path: Path, key: str = "run-1", **members: object) -> Path:
    """Let a guard have seen a run; returns where it keeps it."""
    folder = run_home(key, create=True)
    write_meta(folder, meta(path, key, **members))
    return folder


def test_a_run_is_known_by_its_id(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run")
    assert run_key(path, "run-1") == "run-1"
    know(path)
    assert run_key(path, "run-1") == "run-1"
    assert resolve("run-1") == path
    assert resolve(str(path)) == path


def test_a_run_is_known_by_the_name_of_its_directory_while_only_one_has_it(tmp_path: Path) -> None:
    path = make_run(tmp_path / "night-7")
    know(path)
    assert resolve("night-7") == path
    know(tmp_path / "gone" / "night-7", "removed")
    assert resolve("night-7") == path, "one that was removed is in nobody's way"
    know(make_run(tmp_path / "elsewhere" / "night-7", "run-2"), "run-2")
    with pytest.raises(TargetError, match="names 2 runs; say which one: run-1, run-2"):
        resolve("night-7")


def test_an_id_goes_before_the_name_of_a_directory(tmp_path: Path) -> None:
    path = make_run(tmp_path / "first", "night-7")
    know(path, "night-7")
    know(make_run(tmp_path / "night-7", "run-2"), "run-2")
    assert resolve("night-7") == path


def test_a_copy_gets_a_key_of_its_own(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run")
    know(path)
    copies = [Path(shutil.copytree(path, tmp_path / name)) for name in ("copy", "copy2")]
    keys = [run_key(copy, "run-1") for copy in copies]
    assert len({*keys, "run-1"}) == 3
    assert keys == [run_key(copy, "run-1") for copy in copies], "and always the same one"
    assert guard_socket(copies[0]) != guard_socket(path)


def test_a_copy_keeps_its_key_when_the_original_is_removed(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run")
    know(path)
    copy = Path(shutil.copytree(path, tmp_path / "copy"))
    key = run_key(copy, "run-1")
    know(copy, key)
    shutil.rmtree(path)
    assert run_key(copy, "run-1") == key


def test_a_moved_run_keeps_its_key(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run")
    know(path)
    moved = path.rename(tmp_path / "moved")
    assert run_key(moved, "run-1") == "run-1"
    make_run(path, "another")
    assert run_key(moved, "run-1") == "run-1", "whatever lies now where it was"


def test_a_store_is_found_by_its_path_and_its_name(tmp_path: Path) -> None:
    store = tmp_path / "agent.sqlite"
    store.touch()
    assert guard_socket(store) is None, "nobody has watched it"
    know(store, "langgraph-1", source="langgraph", socket=str(tmp_path / "its.sock"))
    (tmp_path / "its.sock").touch()
    (tmp_path / "link").symlink_to(store)
    assert guard_socket(store) == guard_socket(tmp_path / "link") == tmp_path / "its.sock"
    assert guard_socket(tmp_path / "other.sqlite") is None
    assert resolve("agent.sqlite") == resolve("langgraph-1") == store
    store.unlink()
    with pytest.raises(TargetError, match="is no path and no run"):
        resolve("agent.sqlite")


def test_a_link_to_a_run_is_the_run(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run")
    know(path)
    link = tmp_path / "link"
    link.symlink_to(path)
    assert run_key(link, "run-1") == "run-1"


@pytest.mark.parametrize("run_id", HOSTILE)
def test_a_hostile_id_leads_nowhere(tmp_path: Path, home: Path, run_id: str) -> None:
    path = make_run(tmp_path / "run", run_id)
    folder = know(path, run_key(path, run_id))
    assert folder.parent == home / "runs"
    assert run_key(path, run_id) == run_id
    socket = guard_socket(path)
    assert socket is not None
    assert len(os.fsencode(socket)) <= 107
    copy = Path(shutil.copytree(path, tmp_path / "copy"))
    assert run_home(run_key(copy, run_id)).parent == home / "runs"
    assert run_home(run_key(copy, run_id)) != folder


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"run_id": 5}', '{"run_id": ""}', "{" * 100_000, "\udcff"]
)
def test_no_run_has_no_guard(tmp_path: Path, text: str) -> None:
    (tmp_path / RUN_FILE).write_text(text, errors="surrogateescape")
    assert guard_socket(tmp_path) is None


def test_a_meta_file_that_lies_does_no_harm(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run")
    folder = run_home("run-1", create=True)
    for lie in ('{"path": 5}', '{"path": "/' + "x" * 5000 + '"}', '{"path": "\\u0000"}', "[]"):
        (folder / META_FILE).write_text(lie)
        assert run_key(path, "run-1") == "run-1"


@pytest.mark.parametrize("word", ["night-7", "\x1b[31m", "\u202eevil", "x" * 300])
def test_an_unknown_word_is_one_printable_sentence(word: str) -> None:
    with pytest.raises(TargetError) as caught:
        resolve(word)
    assert str(caught.value).isprintable()


def test_the_newest_live_run_is_found_by_its_locks(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="no run is alive"):
        newest_live()
    paths = {name: make_run(tmp_path / name, name) for name in ("old", "new", "dead", "over")}
    about: dict[str, dict[str, object]] = {"new": {"agent": "demo"}, "over": {"ended_us": 5}}
    folders = {
        name: know(path, name, started_us=T0_US + age, **about.get(name, {}))
        for age, (name, path) in enumerate(paths.items())
    }
    with pytest.raises(TargetError):
        newest_live()
    with FileLock.acquire(folders["over"] / "guard.lock"), pytest.raises(TargetError):
        newest_live()
    with FileLock.acquire(folders["old"] / "guard.lock"):
        assert newest_live() == paths["old"]
        with FileLock.acquire(paths["new"] / RUN_LOCK):
            assert newest_live() == paths["new"], "its guard is gone, its agent is not"
            assert newest_live("demo") == paths["new"]
            with pytest.raises(TargetError, match="no searcher is alive"):
                newest_live("searcher")


def test_without_a_live_run_the_one_seen_last_is_the_newest(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="no run is alive"):
        newest()
    paths = {name: make_run(tmp_path / name, name) for name in ("first", "last", "old")}
    for name, seen_s in (("first", 5), ("last", 9), ("old", 1)):
        folder = know(paths[name], name, seen_us=T0_US + seen_s, ended_us=T0_US)
    (folder / META_FILE).write_text('{"seen_us": 99e99, "path": []}')
    assert newest() == paths["last"]
    with FileLock.acquire(paths["first"] / RUN_LOCK):
        assert newest() == paths["first"], "a live one comes first"


def test_meta_is_replaced_whole(tmp_path: Path) -> None:
    write_meta(tmp_path, meta(tmp_path, level="warn", time_to_limit_s=(5.0, 9.0)))
    write_meta(tmp_path, meta(tmp_path, level="intervene"))
    known = read_meta(tmp_path)
    assert known is not None
    assert known.level == "intervene"
    assert [path.name for path in tmp_path.iterdir()] == [META_FILE], "no draft stays"
    assert read_json(tmp_path / META_FILE) is not None


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b'{"run_key": 1}', b'{"format": 1}'])
def test_what_is_no_meta_is_none(tmp_path: Path, text: bytes) -> None:
    (tmp_path / META_FILE).write_bytes(text)
    assert read_meta(tmp_path) is None


def test_finding_a_guard_loads_the_standard_library_only() -> None:
    code = "import memwatch.runtime.runs.target, sys; print('msgspec' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_pipe_in_place_of_a_file_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / RUN_FILE)
    assert read_json(tmp_path / RUN_FILE) is None
    assert guard_socket(tmp_path) is None
