"""Themes once read, kept as JSON: YAML costs 30 ms of a start, this one or two.

The cache may be deleted at any time, and is not missed where it cannot be written.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

_File = TypeVar("_File", bound=msgspec.Struct)


class _Kept(msgspec.Struct, Generic[_File], forbid_unknown_fields=True):
    """A settings file as it was when it was read."""

    path: str
    mtime_ns: int
    size: int
    content: _File


def kept(path: Path, shape: type[_File], cache: Path) -> _File | None:
    """Return what a file holds if it is the one that was kept; None when it must be read."""
    try:
        found = path.stat()
        raw = (cache / f"{path.stem}.json").read_bytes()
        known: _Kept[_File] = msgspec.json.decode(raw, type=_Kept[shape])  # type: ignore[valid-type]  # a type at run time
    except (OSError, msgspec.DecodeError):
        return None
    same = (known.path, known.mtime_ns, known.size) == (str(path), found.st_mtime_ns, found.st_size)
    return known.content if same else None


def keep(path: Path, content: msgspec.Struct, cache: Path) -> None:
    """Keep what was read from a file."""
    with suppress(OSError):
        found = path.stat()
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = cache / f"{path.stem}.{os.getpid()}.new"
        new.write_bytes(
            msgspec.json.encode(_Kept(str(path), found.st_mtime_ns, found.st_size, content))
        )
        new.replace(cache / f"{path.stem}.json")
