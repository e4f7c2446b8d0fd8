"""Every query has a file of its own that says its parameters, is used, and prepares."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

import memwatch.store
from memwatch.domain.clock import ManualClock
from memwatch.store.database import Database
from memwatch.store.migrations import newest_version
from memwatch.store.query_text import query_text, schema_names

FOLDER = Path(str(files(memwatch.store)))
NAMES = sorted(path.stem for path in (FOLDER / "queries").glob("*.sql"))
CODE = "".join(path.read_text() for path in FOLDER.glob("*.py"))


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    database = Database(tmp_path_factory.mktemp("r1") / "history.duckdb", ManualClock())
    database.open()
    yield database
    database.close()


@pytest.mark.parametrize("name", NAMES)
def test_a_query_is_used_and_prepares(database: Database, name: str) -> None:
    assert f'"{name}"' in CODE
    if name == "migration_table":
        return  # it can be made once only, and was
    with database.reading() as cursor:
        statements = cursor.extract_statements(query_text(name))
        assert statements
        for statement in statements:
            cursor.execute(
                f"EXPLAIN {statement.query}", dict.fromkeys(statement.named_parameters, 1)
            )


@pytest.mark.parametrize("name", NAMES)
def test_the_first_comment_lists_the_parameters(name: str) -> None:
    lines = query_text(name).splitlines()
    comment = "\n".join(line for line in lines if line.startswith("--"))
    code = "\n".join(line for line in lines if not line.strip().startswith("--"))
    told, used = (set(re.findall(r"\$(\w+)", text)) for text in (comment, code))
    assert told == used
    assert lines[0].startswith("--")


def test_migrations_are_numbered_without_a_gap() -> None:
    numbers = [int(name[:4]) for name in schema_names()]
    assert numbers == list(range(1, newest_version() + 1))


def test_a_name_without_a_file_is_an_error() -> None:
    with pytest.raises(LookupError, match=r"no queries/nothing\.sql"):
        query_text("nothing")
