"""The schema, step by step: `schema/<number>_<name>.sql`, forward only."""

from __future__ import annotations

from typing import Any

from memwatch.domain.errors import StoreError
from memwatch.store.query_text import query_text, schema_names, schema_text


def newest_version() -> int:
    """Return the number of the last migration, which is the schema this version writes."""
    return _number(schema_names()[-1])


def migrate(connection: Any, now_us: int) -> None:
    """Bring a database to the newest schema, each step in a transaction of its own.

    Raises StoreError, and changes nothing, for one that a newer memwatch wrote and for one that
    is not ours.
    """
    version = _version(connection)
    newest = newest_version()
    if version > newest:
        raise StoreError(
            f"the history was written by a newer memwatch (schema {version}, this one knows "
            f"{newest}): update memwatch, or move the file away and it is rebuilt"
        )
    for name in schema_names():
        if _number(name) > version:
            connection.begin()
            connection.execute(schema_text(name))
            connection.execute(
                query_text("migration_done"), {"number": _number(name), "at": now_us}
            )
            connection.commit()


def _version(connection: Any) -> int:
    tables = {name for (name,) in connection.execute(query_text("table_names")).fetchall()}
    if not tables:
        connection.execute(query_text("migration_table"))
        return 0
    if "migration" not in tables:
        raise StoreError("the file holds other tables than a history of memwatch: move it away")
    (version,) = connection.execute(query_text("schema_version")).fetchone()
    return int(version)


def _number(name: str) -> int:
    return int(name.partition("_")[0])
