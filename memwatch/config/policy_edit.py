"""Changes to a file of policy that are typed as `key=value`. Pure: text in, text out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from memwatch.config.policy_layers import Document
from memwatch.config.shape import members, named_struct_of, struct_of
from memwatch.config.yaml_file import dump, nearest, parse
from memwatch.domain.errors import ConfigError
from memwatch.domain.text import inert

_PART = re.compile(r'"([^"]+)"|([^."]+)')
_HEAD = "# What this run changes in its policy; `memwatch policy` shows the whole.\n"


def parts_of(key: str) -> list[str]:
    """Return the names in a dotted key; raises ConfigError with the nearest name for a wrong one.

    A name that holds a dot stands in quotes: `resources."tier:a.b".warn`.
    """
    parts = [quoted or plain for quoted, plain in _PART.findall(key)]
    if not parts or _joined(parts) != key:
        raise ConfigError(f"{inert(key, 60)!r} is no key; write it like thresholds.warn")
    hint: Any = Document
    for place, part in enumerate(parts):
        shape, named = struct_of(hint), named_struct_of(hint)
        if shape is not None:
            known = members(shape)
            if part not in known:
                said = f"{inert(key, 60)}: unknown key {inert(part, 40)!r}"
                raise ConfigError(said + nearest(part, list(known)))
            hint = known[part].type
        elif named is not None:
            hint = named
        else:
            text = f"{inert(key, 60)}: {'.'.join(parts[:place])} is one value; set it as a whole"
            raise ConfigError(text)
    return parts


def with_values(text: str, where: str, changes: Mapping[str, str]) -> str:
    """Return a file of policy with some keys set, values being YAML: `0.5`, `[pause, purge]`."""
    values = parse(text, where, may_be_empty=True).values
    for key, written in changes.items():
        parts = parts_of(key)
        inner = values
        for part in parts[:-1]:
            if not isinstance(inner.get(part), dict):
                inner[part] = {}
            inner = inner[part]
        inner[parts[-1]] = _value(key, written)
    return _text(values)


def without_keys(text: str, where: str, keys: Sequence[str]) -> str:
    """Return a file of policy without some keys; raises ConfigError for one that is not in it."""
    values = parse(text, where, may_be_empty=True).values
    for key in keys:
        _remove(values, parts_of(key), key, where)
    return _text(values)


def _joined(parts: Sequence[str]) -> str:
    return ".".join(f'"{part}"' if "." in part else part for part in parts)


def _value(key: str, written: str) -> Any:
    """Return a value as it is typed, or as a file holds it."""
    if "\n" in written:
        raise ConfigError(f"{inert(key, 60)}: a value is one line")
    return parse(f"value: {written}", inert(f"{key}={written}", 80)).values["value"]


def _remove(values: dict[str, Any], parts: Sequence[str], key: str, where: str) -> None:
    inner = values.get(parts[0])
    if parts[0] not in values or (parts[1:] and not isinstance(inner, dict)):
        raise ConfigError(f"{inert(key, 60)} is not set in {where}; `memwatch policy` shows where")
    if parts[1:]:
        _remove(values[parts[0]], parts[1:], key, where)
    if not parts[1:] or not values[parts[0]]:
        del values[parts[0]]


def _text(values: Mapping[str, Any]) -> str:
    body = dump(values)
    return _HEAD + (body if values else "")
