"""A database that its program works on: not a byte of it changes, and nobody has to wait for us."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memwatch.ingest.stores.detect import detect
from memwatch.ingest.stores.directory import look_directory
from memwatch.ingest.stores.langgraph import look_langgraph
from tests.ingest.stores import graph
from tests.ingest.stores.graph import make

ROOT = Path(__file__).resolve().parents[3]


class Program:
    """Another process that writes one checkpoint after the other."""

    def __init__(self, path: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", graph.__name__, os.fspath(path)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.answer() == "open"

    def tell(self, word: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def die(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "graph #1?.sqlite"


@pytest.fixture
def program(database: Path) -> Iterator[Program]:
    program = Program(database)
    yield program
    program.die()


def content(database: Path) -> dict[str, tuple[bytes, int]]:
    """Return each file beside the database, itself among them, with the time of its change."""
    return {
        place.name: (place.read_bytes(), place.stat().st_mtime_ns)
        for place in sorted(database.parent.iterdir())
    }


def test_a_live_one_is_read_and_left_as_it_is(database: Path, program: Program) -> None:
    for number in range(1, 4):
        assert program.tell("step") == "written"
        before = content(database)
        assert len(before) == 3  # its log and its index as well
        seen = look_langgraph(database)
        assert (seen.count, seen.why) == (number, "")
        assert seen.log_bytes > 0
        assert seen.writers == (program.process.pid,)
        assert content(database) == before
    assert detect(database) == "langgraph"
    assert content(database) == before
    assert program.tell("checkpoint") == "0"  # not kept waiting by anybody
    assert look_langgraph(database).count == 3
    assert program.tell("step") == "written"
    assert look_langgraph(database).count == 4
    assert program.tell("close") == "closed"
    assert list(content(database)) == [database.name]  # its log went as it should


def test_what_a_killed_program_left_is_read_and_left(database: Path, program: Program) -> None:
    program.tell("step")
    program.die()
    before = content(database)
    assert len(before) == 3
    seen = look_langgraph(database)
    assert (seen.count, seen.why, seen.writers) == (1, "", ())
    assert content(database) == before


def test_a_closed_one_gets_no_log(database: Path) -> None:
    make(database, steps=3)
    before = content(database)
    assert list(before) == [database.name]
    assert look_langgraph(database).count == 3
    assert content(database) == before


def test_a_log_without_its_index_is_refused(database: Path, program: Program) -> None:
    program.tell("step")
    program.die()
    database.with_name(f"{database.name}-shm").unlink()
    before = content(database)
    seen = look_langgraph(database)
    assert "without its index" in seen.why
    assert content(database) == before


def test_an_unfinished_change_is_refused(database: Path) -> None:
    make(database, steps=1)
    database.with_name(f"{database.name}-journal").write_bytes(b"hot")
    assert "journal" in look_langgraph(database).why


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_log_that_is_a_link_or_pipe_is_refused(database: Path, suffix: str) -> None:
    make(database, steps=1)
    beside = database.with_name(f"{database.name}{suffix}")
    os.mkfifo(beside)
    assert "no file" in look_langgraph(database).why
    beside.unlink()
    beside.symlink_to("/etc/passwd")
    assert "no file" in look_langgraph(database).why


@contextmanager
def held(database: Path, *statements: str) -> Iterator[None]:
    """Let another process say so much, and stay in the middle of it."""
    script = (
        "import sqlite3, sys; base = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "[base.execute(one).fetchall() for one in sys.argv[2:]];"
        "print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, os.fspath(database), *statements]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield
        process.communicate()


@pytest.mark.parametrize("journal", ["wal", "delete", "memory", "off"])
def test_a_busy_one_keeps_what_was_known(database: Path, journal: str) -> None:
    """Of a change without a journal nothing lies there that tells of it."""
    make(database, steps=2)
    first = look_langgraph(database)
    assert first.count == 2
    exclusive = ["pragma locking_mode=exclusive"] if journal == "wal" else []
    opening = [f"pragma journal_mode={journal}", *exclusive, "pragma cache_size=1"]
    with held(database, *opening, "begin immediate", "delete from writes"):
        before = content(database)
        seen = look_langgraph(database, first)
        assert content(database) == before
    assert seen.why != ""
    assert seen.checkpoints == first.checkpoints


def test_one_that_keeps_an_empty_journal_is_read(database: Path) -> None:
    make(database, steps=2)
    with held(database, "pragma journal_mode=persist", "update writes set channel = 'x'"):
        pass
    assert database.with_name(f"{database.name}-journal").stat().st_size > 0
    before = content(database)
    seen = look_langgraph(database)
    assert (seen.count, seen.why) == (2, "")
    assert content(database) == before


def test_what_changes_twice_within_a_tick_does_not_count(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(database, steps=2)
    waited: list[float] = []

    def written(seconds: float) -> None:
        waited.append(seconds)
        database.write_bytes(database.read_bytes())

    monkeypatch.setattr("memwatch.ingest.stores.database.time.sleep", written)
    database.write_bytes(database.read_bytes())
    assert "is writing it" in look_langgraph(database).why
    assert 0 < waited[0] <= 0.05


def test_one_that_is_damaged_while_it_is_written_is_not_called_damaged(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memwatch.ingest.stores import langgraph

    make(database, steps=1)

    def torn(_: object) -> None:
        database.write_bytes(database.read_bytes())
        raise sqlite3.DatabaseError("database disk image is malformed")

    monkeypatch.setattr(langgraph, "_check", torn)
    assert "while it was read" in look_langgraph(database).why


def test_a_schema_that_is_no_text_is_said_to_be_damaged(database: Path) -> None:
    make(database, steps=1)
    whole = database.read_bytes()
    database.write_bytes(
        whole.replace(b"writes", b"\x8e" * 6).replace(b"CREATE TABLE", b"CREATE TABL\xff")
    )
    assert "cannot be read as a database" in look_langgraph(database).why


def test_a_loop_of_links_is_said_to_be_one(tmp_path: Path) -> None:
    loop = tmp_path / "loop.sqlite"
    loop.symlink_to(loop)
    assert "loop" in look_langgraph(loop).why
    assert "loop" in look_directory(loop).why


def test_one_that_is_opened_meanwhile_does_not_count(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memwatch.ingest.stores import langgraph

    make(database, steps=1)
    check = langgraph._check

    def opened(base: object) -> None:
        check(base)  # type: ignore[arg-type] # passed on
        program = Program(database)
        program.tell("step")
        program.die()

    monkeypatch.setattr(langgraph, "_check", opened)
    seen = look_langgraph(database)
    assert "opened by its program while it was read" in seen.why
    assert seen.checkpoints == ()
