"""Which checkpoints of a run stand on disk, of this start and of earlier ones, and are whole.

Only one whose commit the log holds counts; whole is one whose manifest has the committed hash and
whose files have the sizes and hashes of the manifest (R7).
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from memwatch.agent.context import Context
from memwatch.wal import codec
from memwatch.wal.manifest import CheckpointFile, parse_checkpoint
from memwatch.wal.segment import (
    CHECKPOINT_DIR,
    MANIFEST_FILE,
    WAL_DIR,
    delta_range,
    full_lsn,
    full_name,
    segment_name,
    segments,
)

_COMMIT = b'"k":"checkpoint.commit"'
_PIECE_BYTES = 1 << 20
_MANIFEST_BYTES = 1_000_000
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Standing:
    """The checkpoints of one run directory. Reads only; all methods may raise OSError."""

    def __init__(self, context: Context) -> None:
        self._run_id = context.run_id
        self._wal = context.path / WAL_DIR
        self._folder = context.path / CHECKPOINT_DIR
        self._commits: dict[str, str] | None = None
        """Hash that each commit states, by the checkpoint's id; None until they were looked for."""

    def committed(self, name: str, sha256: str) -> None:
        """Note a commit of this start."""
        self._known()[name] = sha256

    def fulls(self) -> list[int]:
        """Return the last lsn of each committed full checkpoint, newest first."""
        known = self._known()
        found = map(full_lsn, self._names())
        return sorted((n for n in found if n is not None and full_name(n) in known), reverse=True)

    def has_chain(self, base: str, last_lsn: int) -> bool:
        """Whether a full checkpoint and committed increments up to `last_lsn` lie there."""
        known, reached = self._known(), full_lsn(base)
        if (
            reached is None
            or base not in known
            or not (self._folder / base / MANIFEST_FILE).exists()
        ):
            return False
        spans: dict[int, int] = {}
        for name in self._names():
            span = delta_range(name)
            if span is not None and name.removesuffix(".wal") in known:
                spans[span[0]] = max(span[1], spans.get(span[0], 0))
        while reached < last_lsn:
            following = spans.get(reached + 1)
            if following is None:
                return False
            reached = following
        return True

    def is_whole(self, lsn: int) -> bool:
        """Whether a full checkpoint holds what was committed, to the byte."""
        name = full_name(lsn)
        folder = self._folder / name
        try:
            text = _read_small(folder / MANIFEST_FILE)
            if hashlib.sha256(text).hexdigest() != self._known().get(name):
                return False
            manifest = parse_checkpoint(text)
            return manifest.run_id == self._run_id and all(
                os.sep not in part and _is_as_told(folder / part, told)
                for part, told in manifest.files.items()
            )
        except (OSError, ValueError):
            return False

    def _names(self) -> list[str]:
        return [path.name for path in self._folder.iterdir()] if self._folder.is_dir() else []

    def _known(self) -> dict[str, str]:
        if self._commits is None:
            self._commits = {}
            for first in segments(path.name for path in self._wal.iterdir()):
                self._commits |= _commits_in(self._wal / segment_name(first))
        return self._commits


def _commits_in(segment: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    with segment.open("rb") as lines:
        for line in lines:
            if _COMMIT in line:
                members = _members(line)
                if members.get("k") == "checkpoint.commit":
                    found[str(members.get("id"))] = str(members.get("sha256"))
    return found


def _members(line: bytes) -> dict[str, Any]:
    try:
        return codec.decode(line.removesuffix(b"\n")).members
    except codec.DamagedLineError:
        return {}


def _read_small(path: Path) -> bytes:
    with os.fdopen(os.open(path, _READ), "rb") as file:
        return file.read(_MANIFEST_BYTES)


def _is_as_told(path: Path, told: CheckpointFile) -> bool:
    digest = hashlib.sha256()
    with os.fdopen(os.open(path, _READ), "rb", buffering=0) as file:
        if os.fstat(file.fileno()).st_size != told.bytes:
            return False
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest() == told.sha256
