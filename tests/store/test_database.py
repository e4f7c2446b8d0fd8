"""A file that cannot be used is said in words; a damaged one is set aside, never deleted."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from memwatch.domain.clock import ManualClock
from memwatch.domain.errors import StoreError
from memwatch.store.database import Database
from memwatch.store.migrations import newest_version

ROWS = [(f"r{number * 7919 % 100_003}", "bytes", number) for number in range(100_000)]
ENDLESS = "SELECT sum(a.range * b.range) FROM range(9999999) a, range(9999999) b"
DEADLINE_S = 20.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "r1" / "history.duckdb"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    database = Database(path, ManualClock())
    yield database
    database.close()


def filled(database: Database) -> None:
    database.open()
    database.write({"resource": ROWS})
    database.close()


def resources(database: Database) -> int:
    return len(database.rows("resource_names", DEADLINE_S))


def set_aside(path: Path) -> list[str]:
    return sorted(p.name.rpartition(".damaged-")[0] for p in path.parent.glob("*.damaged-*"))


def overwrite(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def killed_child(path: Path) -> None:
    """Leave a file with a log of changes, as a process that was killed does."""
    code = (
        "import duckdb, os, sys; c = duckdb.connect(sys.argv[1]);"
        "[c.execute(\"INSERT INTO resource SELECT 'late', 'bytes', range FROM range(2000)\")"
        " for _ in range(20)]; os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)


def test_a_new_file_says_whose_history_it_is(database: Database, path: Path) -> None:
    for _ in range(2):
        database.open()
    with database.reading() as cursor:
        assert cursor.execute("SELECT run_key FROM run").fetchall() == [("r1",)]
        assert cursor.execute("SELECT number FROM migration").fetchall() == [
            (number,) for number in range(1, newest_version() + 1)
        ]
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_rows_of_a_failed_write_are_all_gone(database: Database) -> None:
    database.open()
    with pytest.raises(StoreError, match="cannot be used"):
        database.write({"resource": ROWS[:5], "sample": [("too", "short")]})
    assert not database.is_open
    database.open()
    assert resources(database) == 0


def test_a_file_of_a_newer_version_is_refused_and_left_alone(
    database: Database, path: Path
) -> None:
    filled(database)
    with duckdb.connect(path) as later:
        later.execute("INSERT INTO migration VALUES (999, 0)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"newer memwatch \(schema 999"):
        database.open()
    assert path.read_bytes() == before
    assert set_aside(path) == []


def test_a_database_of_somebody_else_is_refused_and_left_alone(
    database: Database, path: Path
) -> None:
    path.parent.mkdir(parents=True)
    with duckdb.connect(path) as other:
        other.execute("CREATE TABLE theirs (a INT)")
    with pytest.raises(StoreError, match="other tables"):
        database.open()
    assert set_aside(path) == []


def test_a_file_that_another_process_holds_is_named_with_its_pid(
    database: Database, path: Path
) -> None:
    filled(database)
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); input()"
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        with pytest.raises(StoreError, match=f"process {child.pid} has history.duckdb open"):
            database.open()
        child.communicate("\n")
    database.open()
    assert resources(database) == len(ROWS)
    assert set_aside(path) == []


@pytest.mark.parametrize(
    "garbage",
    [b"", b"not a database", os.urandom(50_000)],
    ids=["empty", "text", "noise"],
)
def test_a_file_of_garbage_is_set_aside(database: Database, path: Path, garbage: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(garbage)
    database.open()
    assert resources(database) == 0
    assert set_aside(path) == ["history.duckdb"]
    assert next(path.parent.glob("*.damaged-*")).read_bytes() == garbage


@pytest.mark.parametrize("keep", [0.1, 0.5])
def test_a_file_cut_short_is_set_aside(database: Database, path: Path, keep: float) -> None:
    filled(database)
    os.truncate(path, int(path.stat().st_size * keep))
    database.open()
    if not set_aside(path):  # what is missing shows when it is read
        with pytest.raises(StoreError, match="damaged"):
            resources(database)
        database.open()
    assert set_aside(path) == ["history.duckdb"]
    assert resources(database) == 0


def test_a_damaged_log_of_changes_costs_only_what_it_held(database: Database, path: Path) -> None:
    filled(database)
    killed_child(path)
    wal = path.with_name("history.duckdb.wal")
    overwrite(wal, wal.stat().st_size // 2, os.urandom(500))
    database.open()
    assert resources(database) == len(ROWS)
    assert set_aside(path) == ["history.duckdb.wal"]


def test_changes_of_a_killed_process_are_there(database: Database, path: Path) -> None:
    filled(database)
    killed_child(path)
    database.open()
    assert resources(database) == len(ROWS) + 1
    assert set_aside(path) == []


def test_damage_met_while_reading_is_said_and_healed_by_opening_again(
    database: Database, path: Path
) -> None:
    filled(database)
    size = path.stat().st_size
    overwrite(path, size // 3, os.urandom(size // 3))
    database.open()
    with pytest.raises(StoreError, match="damaged"):
        resources(database)
    assert database.damaged
    database.open()
    assert not database.damaged
    assert resources(database) == 0
    assert set_aside(path) == ["history.duckdb"]


def test_a_question_that_takes_too_long_is_ended(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.open()
    monkeypatch.setattr("memwatch.store.database.query_text", lambda _: ENDLESS)
    with pytest.raises(StoreError, match=r"did not answer in 0\.3 s"):
        database.rows("endless", 0.3)
    monkeypatch.undo()
    assert resources(database) == 0


def test_closing_ends_the_questions_of_other_threads(database: Database) -> None:
    database.open()
    asked = threading.Event()
    failures: list[str] = []

    def ask_without_end() -> None:
        with database.reading() as cursor:
            asked.set()
            try:
                cursor.execute(
                    "SELECT sum(a.range * b.range) FROM range(9999999) a, range(9999999) b"
                )
            except duckdb.InterruptException as error:
                failures.append(str(error))

    thread = threading.Thread(target=ask_without_end, daemon=True)
    thread.start()
    assert asked.wait(DEADLINE_S)
    database.close()
    thread.join(DEADLINE_S)
    assert len(failures) == 1
    with pytest.raises(StoreError, match="not open"):
        database.rows("resource_names", DEADLINE_S)
