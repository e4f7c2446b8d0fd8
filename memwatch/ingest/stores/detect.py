"""Which kind of store lies at a path: names and the first bytes tell, nothing is opened as such."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Literal

from memwatch.ingest.stores.names import WEIGHTS
from memwatch.ingest.stores.top import named_by
from memwatch.ingest.stores.walk import open_directory, open_file
from memwatch.wal.segment import RUN_FILE

_MOST_NAMES = 20_000
_MOST_PEEKED = 200
_STATES = (*WEIGHTS, ".distcp", ".metadata")
_HEAD_BYTES = 1 << 16
_SQLITE = b"SQLite format 3\0"
_COLUMN = b"checkpoint_ns"
"""Stands in the text of the schema, which lies on the first pages of file or log."""


def detect(path: Path) -> Literal["directory", "langgraph"] | None:
    """Return the kind of store at a path; None for anything else, a run of ours among it.

    Raises OSError for what cannot be read.
    """
    place = path.resolve()
    mode = place.stat().st_mode
    if S_ISREG(mode):
        return "langgraph" if _is_langgraph(place) else None
    return "directory" if S_ISDIR(mode) and _is_directory(place) else None


def _is_langgraph(place: Path) -> bool:
    folder = open_directory(os.fspath(place.parent))
    try:
        head = _head(folder, place.name)
        if not head.startswith(_SQLITE):
            return False
        return _COLUMN in head or _COLUMN in _head(folder, f"{place.name}-wal")
    finally:
        os.close(folder)


def _head(folder: int, name: str) -> bytes:
    try:
        with open_file(folder, name) as fd:
            return os.pread(fd, _HEAD_BYTES, 0)
    except FileNotFoundError:
        return b""


def _is_directory(place: Path) -> bool:
    """Whether a name at the top is one that hardly anything but a checkpoint has."""
    root = open_directory(os.fspath(place))
    try:
        found = False
        for name in _first(root, _MOST_NAMES):
            if name.name == RUN_FILE:
                return False
            found = found or _is_sure(root, name)
        return found
    finally:
        os.close(root)


def _is_sure(root: int, entry: os.DirEntry[str]) -> bool:
    one = named_by(entry)
    if one is None:
        return False
    return one.name.sure or (one.folder and _holds_weights(root, entry.name))


def _holds_weights(root: int, name: str) -> bool:
    """Whether a folder with a number, `step1` say, holds a state and not somebody's work."""
    try:
        folder = open_directory(name, root)
    except OSError:
        return False
    try:
        return any(one.name.lower().endswith(_STATES) for one in _first(folder, _MOST_PEEKED))
    finally:
        os.close(folder)


def _first(folder: int, most: int) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        yield from islice(entries, most)
