"""SQL in files: `queries/<name>.sql`, one query a file, its parameters in the first comment."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def query_text(name: str) -> str:
    """Return the text of a query; raises LookupError for a name that has no file."""
    return _text("queries", name)


@cache
def schema_text(name: str) -> str:
    """Return the text of a migration; raises LookupError for a name that has no file."""
    return _text("schema", name)


def schema_names() -> list[str]:
    """Return the names of all migrations in the order of their numbers."""
    return sorted(
        file.name.removesuffix(".sql")
        for file in files(__package__).joinpath("schema").iterdir()
        if file.name.endswith(".sql")
    )


def _text(folder: str, name: str) -> str:
    try:
        return files(__package__).joinpath(folder, f"{name}.sql").read_text(encoding="utf-8")
    except FileNotFoundError:
        raise LookupError(f"there is no {folder}/{name}.sql") from None
