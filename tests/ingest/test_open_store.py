"""A store of another program is opened as a run: named by its path, owned by us, never written."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from pathlib import Path

import pytest

from memwatch.config.load import named_profile
from memwatch.domain.errors import TargetError
from memwatch.ingest.foreign import FOREIGN
from memwatch.ingest.open_run import open_run


def a_directory(place: Path) -> Path:
    (place / "checkpoint-10").mkdir(parents=True)
    (place / "checkpoint-10" / "trainer_state.json").write_text("{}")
    return place


def a_database(place: Path) -> Path:
    database = sqlite3.connect(place)
    database.execute(
        "CREATE TABLE checkpoints (thread_id, checkpoint_ns, checkpoint_id, "
        "parent_checkpoint_id, type, checkpoint, metadata)"
    )
    database.execute(
        "CREATE TABLE writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, "
        "type, value)"
    )
    database.commit()
    database.close()
    return place


def test_what_it_is_called(tmp_path: Path) -> None:
    directory = open_run(a_directory(tmp_path / "my run: 7"))
    database = open_run(a_database(tmp_path / "agent.sqlite"))
    assert (directory.source, database.source) == ("directory", "langgraph")
    assert re.fullmatch(r"directory-my-run-7-[0-9a-f]{8}", directory.manifest.run_id)
    assert re.fullmatch(r"langgraph-agent\.sqlite-[0-9a-f]{8}", database.manifest.run_id)
    assert directory.manifest.profile == "directory"
    assert (directory.ops, directory.manifest.pid) == (frozenset(), 0)
    assert directory.foreign is FOREIGN["directory"]


def test_the_path_names_it_for_good(tmp_path: Path) -> None:
    first = a_directory(tmp_path / "a" / "out")
    second = a_directory(tmp_path / "b" / "out")
    (tmp_path / "link").symlink_to(first)
    ids = [open_run(path).manifest.run_id for path in (first, second, tmp_path / "link")]
    assert ids[0] == ids[2] != ids[1]


@pytest.mark.parametrize("name", ["a\x1b[2Jb", "a\nb", "名前", "..x", "x" * 200])
def test_any_name_gives_an_id_that_is_plain(tmp_path: Path, name: str) -> None:
    run_id = open_run(a_directory(tmp_path / name)).manifest.run_id
    assert re.fullmatch(r"directory-[\w.-]{1,60}-[0-9a-f]{8}", run_id, re.ASCII)


def test_a_path_that_cannot_be_told_is_refused(tmp_path: Path) -> None:
    place = a_directory(tmp_path / os.fsdecode(b"caf\xe9"))
    with pytest.raises(TargetError, match="no UTF-8 and can be told nobody; rename it") as caught:
        open_run(place)
    assert str(caught.value).isprintable()


def test_a_run_of_ours_goes_before(tmp_path: Path) -> None:
    place = a_directory(tmp_path / "run")
    (place / "wal").mkdir()
    (place / "run.json").write_text(json.dumps({"format": 1, "run_id": "r-1", "agent": "a"}))
    assert open_run(place).source == "native"


def test_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = (a_directory(tmp_path / "out"), a_database(tmp_path / "agent.sqlite"))
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    for path in paths:
        with pytest.raises(TargetError, match="belongs to another user"):
            open_run(path)


def test_what_is_no_store_is_refused_without_being_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "notes.txt").write_text("checkpoint_ns")
    empty = sqlite3.connect(tmp_path / "other.sqlite")
    empty.execute("CREATE TABLE messages (text)")
    empty.close()
    for name, says in (
        ("pipe", "neither a directory nor a file"),
        ("notes.txt", "nor a file that memwatch knows"),
        ("other.sqlite", "nor a file that memwatch knows"),
    ):
        with pytest.raises(TargetError, match=says):
            open_run(tmp_path / name)


@pytest.mark.parametrize("kind", sorted(FOREIGN))
def test_each_kind_has_a_profile_that_lets_the_engine_do_nothing(kind: str) -> None:
    profile = named_profile(kind)
    assert profile.policy == {"mode": "observe"}
    assert FOREIGN[kind].no_commands
