"""A policy in words: every value beside its source, on lines of 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from memwatch.config.policy import Policy
from memwatch.config.policy_load import PolicyBook
from memwatch.config.shape import leaves
from memwatch.domain.text import inert

_KEY, _VALUE = 29, 22


def as_json(name: str, profile: str, book: PolicyBook, phase: str | None) -> dict[str, Any]:
    """Return a policy as one object of plain values; `phase` gives all of it for that phase."""
    return {
        "name": name,
        "profile": profile,
        "phase": phase,
        "files": list(book.used),
        "values": _sourced(book, phase),
        "phases": {one: _own(book, one) for one in book.phases} if phase is None else {},
        "notes": list(book.notes),
        "missing": dict(book.missing),
    }


def as_text(
    name: str, profile: str, book: PolicyBook, phase: str | None, notes: Iterable[str] = ()
) -> str:
    """Return a policy as a page."""
    of = f" in phase {inert(phase, 40)}" if phase is not None else ""
    lines = [f"policy of {name}{of}, profile {inert(profile, 40)}"]
    lines += [f"  from {file}" for file in book.used] or ["  from no file: all is built in"]
    lines += ["", *_rows(_sourced(book, phase))]
    for one in sorted(book.phases) if phase is None else ():
        lines += ["", f"in phase {inert(one, 60)}:", *_rows(_own(book, one))]
    said = [*notes, *book.notes]
    said += [f"{why}; the built-in policy goes without it" for why in book.missing.values()]
    lines += ["", *(f"note: {note}" for note in said)] if said else []
    return "\n".join(lines)


def _sourced(book: PolicyBook, phase: str | None) -> dict[str, dict[str, Any]]:
    """Return each setting of the whole, or of a phase, with its source."""
    values = dict(leaves(to_builtins(book.of(phase)), Policy))
    first = sorted(values, key=lambda key: (key not in ("mode", "allow"), "." in key))
    return {
        key: {
            "value": values[key],
            "source": book.sources.get(f"phases.{phase}.{key}", book.sources.get(key, "default")),
        }
        for key in first
    }


def _own(book: PolicyBook, phase: str) -> dict[str, dict[str, Any]]:
    """Return what a phase has of its own."""
    whole = dict(leaves(to_builtins(book.of(phase)), Policy))
    below = f"phases.{phase}."
    return {
        key: {"value": whole[key], "source": source}
        for long, source in book.sources.items()
        if long.startswith(below) and (key := long.removeprefix(below)) in whole
    }


def _rows(values: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each setting; what is longer than its column stands below its key."""
    for key, one in values.items():
        lines, source = _worded(one["value"]), _short(one["source"])
        short = len(lines) == 1 and len(lines[0]) <= _VALUE
        yield f"  {inert(key, 60):<{_KEY}} {lines[0] if short else '':<{_VALUE}} {source}"
        yield from () if short else (f"      {line}" for line in lines)


def _worded(value: Any) -> list[str]:
    """Return a value in words: a list of steps has a line for each."""
    if not isinstance(value, list | tuple):
        return [inert(_plain(value), 70)]
    if all(isinstance(one, Mapping) for one in value):
        return [inert(_step(one), 70) for one in value] or ["none"]
    return textwrap.wrap(inert(", ".join(map(_plain, value)), 400), 70)


def _step(one: Mapping[str, Any]) -> str:
    if "op" not in one:
        return ", ".join(f"{name} {_plain(inner)}" for name, inner in one.items())
    args = "".join(f" {_plain(arg)}" for arg in one["args"].values())
    return f"{one['op']}{args}, within {_plain(one['patience_s'])} s"


def _plain(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:_}" if isinstance(value, int) else f"{value:.10g}"
    return str(value)


def _short(source: str) -> str:
    """Return a source that fits its column: `config.yaml:12`."""
    file, between, line = source.rpartition(" line ")
    if not between:
        return source
    path = Path(file)
    name = path.name
    if path.parent.name in ("policies", "profiles"):
        name = f"{path.parent.name}/{name}"
    return inert(f"{name[-24:]}:{line}", 40)
