"""What of its checkpoints really lies in a run directory: what a log says may be gone or changed.

Only names of format 1 are looked at, links are never followed, and nothing outside of the
directory is opened whatever a log or a manifest names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from types import MappingProxyType

from msgspec import Struct

from memwatch.analytics.checkpoints.fold import Saved
from memwatch.host.deadline import ask
from memwatch.ingest.blob_scan import Blobs, scan_blobs
from memwatch.wal.manifest import CheckpointManifest, parse_checkpoint
from memwatch.wal.segment import (
    BLOB_DIR,
    CHECKPOINT_DIR,
    MANIFEST_FILE,
    delta_range,
    full_lsn,
)

_DEADLINE_S = 2.0
_MOST_NAMES = 20_000
_MOST_FULLS = 16
_MANIFEST_BYTES = 1_000_000
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FullOnDisk(Struct, frozen=True):
    """A full checkpoint as it lies there."""

    bytes: int = 0
    """Of its manifest and the files that this names, as far as they are there."""
    entries: int = 0
    state_bytes: int = 0
    """What its entries held in the agent's memory, by the manifest."""
    wrong: str = ""
    """Why it is none that recovery could load; empty for a whole one."""


class OnDisk(Struct, frozen=True):
    """What was found."""

    known_lsn: int
    """Newest record that was known before the look: of later checkpoints it says nothing."""
    fulls: Mapping[int, FullOnDisk] = MappingProxyType({})
    """The newest full ones by their last lsn, whole or not."""
    deltas: Mapping[tuple[int, int], int] = MappingProxyType({})
    """Bytes of each incremental one, by its first and last lsn."""
    blobs: Blobs = Blobs()

    @property
    def bytes(self) -> int:
        """Of all checkpoints that were looked at; persisted values are apart."""
        return sum(full.bytes for full in self.fulls.values()) + sum(self.deltas.values())

    def fault(self, saved: Saved) -> str | None:
        """Return what is wrong with a committed one: "" when it is gone, None when nothing is."""
        one = saved.checkpoint
        if saved.at.lsn > self.known_lsn or one.last_lsn is None:
            return None
        if one.kind == "full":
            full = self.fulls.get(one.last_lsn)
            return "" if full is None else full.wrong or None
        if one.first_lsn is None:
            return None
        size = self.deltas.get((one.first_lsn, one.last_lsn))
        if size is None:
            return ""
        if one.file_bytes is not None and size != one.file_bytes:
            return f"its file has {size} bytes of {one.file_bytes}"
        return None


def scan_checkpoints(
    run_dir: Path, known_lsn: int, deadline_s: float = _DEADLINE_S, before: OnDisk | None = None
) -> OnDisk | None:
    """Look at the newest checkpoints of a run; None when the disk does not answer.

    The look `before` spares counting persisted values again where none came or went.
    """
    blobs = before.blobs if before else Blobs()
    return ask(f"checkpoints of {run_dir}", lambda: _scan(run_dir, known_lsn, blobs), deadline_s)


def _scan(run_dir: Path, known_lsn: int, before: Blobs) -> OnDisk:
    blobs = scan_blobs(run_dir / BLOB_DIR, before)
    try:
        with _directory(os.fspath(run_dir / CHECKPOINT_DIR)) as folder:
            with os.scandir(folder) as entries:
                names = [entry.name for entry in islice(entries, _MOST_NAMES)]
            deltas = {
                span: size
                for name in names
                if (span := delta_range(name)) and (size := _size(folder, name)) is not None
            }
            known = {lsn: name for name in names if (lsn := full_lsn(name)) is not None}
            newest = sorted(known)[-_MOST_FULLS:]
            found = {lsn: _full(folder, known[lsn]) for lsn in newest}
    except (FileNotFoundError, NotADirectoryError):
        return OnDisk(known_lsn, blobs=blobs)
    fulls = {lsn: full for lsn, full in found.items() if full is not None}
    return OnDisk(known_lsn, fulls, deltas, blobs)


@contextmanager
def _directory(name: str, parent: int | None = None) -> Iterator[int]:
    fd = os.open(name, _DIRECTORY, dir_fd=parent)
    try:
        yield fd
    finally:
        os.close(fd)


def _full(parent: int, name: str) -> FullOnDisk | None:
    """Hold a full checkpoint against its manifest; None for what is no directory."""
    try:
        with _directory(name, parent) as folder:
            return _held(folder)
    except OSError:
        return None


def _held(folder: int) -> FullOnDisk:
    try:
        manifest, size = _manifest(folder)
    except (OSError, ValueError):
        return FullOnDisk(wrong="its manifest is gone or cannot be read")
    wrong = ""
    for part, told in manifest.files.items():
        found = None if os.sep in part else _size(folder, part)
        size += found or 0
        if found != told.bytes and not wrong:
            wrong = f"{part} is gone" if found is None else f"{part} has {found} of {told.bytes} B"
    return FullOnDisk(
        bytes=size,
        entries=sum(tier.entries for tier in manifest.tiers.values()),
        state_bytes=sum(tier.bytes for tier in manifest.tiers.values()),
        wrong=wrong,
    )


def _manifest(folder: int) -> tuple[CheckpointManifest, int]:
    """Return the manifest and the bytes of its text."""
    fd = os.open(MANIFEST_FILE, _FILE, dir_fd=folder)
    try:
        if not S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("the manifest is no file")
        text = os.read(fd, _MANIFEST_BYTES)
    finally:
        os.close(fd)
    return parse_checkpoint(text), len(text)


def _size(folder: int, name: str) -> int | None:
    """Return the size of a regular file in a directory, None where there is none."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:  # gone, or a name that no file can have
        return None
    return status.st_size if S_ISREG(status.st_mode) else None
