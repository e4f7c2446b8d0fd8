"""Which checkpoints really lie in a run directory: what a log says may be gone from the disk.

Only names of format 1 are looked at, links are never followed, and nothing outside of the
directory is opened whatever a log or a manifest names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from stat import S_ISREG

from msgspec import Struct

from memwatch.analytics.checkpoint_fold import Saved
from memwatch.host.deadline import ask
from memwatch.wal.manifest import CheckpointManifest, parse_checkpoint
from memwatch.wal.segment import CHECKPOINT_DIR, MANIFEST_FILE, delta_range, full_lsn

_DEADLINE_S = 2.0
_MOST_NAMES = 20_000
_MOST_FULLS = 16
_MANIFEST_BYTES = 1_000_000
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class OnDisk(Struct, frozen=True):
    """What was found."""

    known_lsn: int
    """Newest record that was known before the look: of later checkpoints it says nothing."""
    fulls: frozenset[int] = frozenset()
    """Last lsn of each full checkpoint whose manifest and files are all there, in full size."""
    deltas: frozenset[tuple[int, int]] = frozenset()
    """First and last lsn of each incremental one."""

    def lacks(self, saved: Saved) -> bool:
        """Whether a committed checkpoint should lie there and does not."""
        one = saved.checkpoint
        if saved.at.lsn > self.known_lsn or one.last_lsn is None:
            return False
        if one.kind == "full":
            return one.last_lsn not in self.fulls
        return one.first_lsn is not None and (one.first_lsn, one.last_lsn) not in self.deltas


def scan_checkpoints(
    run_dir: Path, known_lsn: int, deadline_s: float = _DEADLINE_S
) -> OnDisk | None:
    """Look at the newest checkpoints of a run; None when the disk does not answer."""
    return ask(f"checkpoints of {run_dir}", lambda: _scan(run_dir, known_lsn), deadline_s)


def _scan(run_dir: Path, known_lsn: int) -> OnDisk:
    try:
        with _directory(os.fspath(run_dir / CHECKPOINT_DIR)) as folder:
            with os.scandir(folder) as entries:
                names = [entry.name for entry in islice(entries, _MOST_NAMES)]
            deltas = {
                span
                for name in names
                if (span := delta_range(name)) and _size(folder, name) is not None
            }
            known = {lsn: name for name in names if (lsn := full_lsn(name)) is not None}
            newest = sorted(known)[-_MOST_FULLS:]
            fulls = {lsn for lsn in newest if _is_whole(folder, known[lsn])}
    except (FileNotFoundError, NotADirectoryError):
        return OnDisk(known_lsn)
    return OnDisk(known_lsn, frozenset(fulls), frozenset(deltas))


@contextmanager
def _directory(name: str, parent: int | None = None) -> Iterator[int]:
    fd = os.open(name, _DIRECTORY, dir_fd=parent)
    try:
        yield fd
    finally:
        os.close(fd)


def _is_whole(parent: int, name: str) -> bool:
    """Whether a full checkpoint holds a manifest and every file that it names."""
    try:
        with _directory(name, parent) as folder:
            manifest = _manifest(folder)
            return all(
                os.sep not in part and _size(folder, part) == told.bytes
                for part, told in manifest.files.items()
            )
    except (OSError, ValueError):
        return False


def _manifest(folder: int) -> CheckpointManifest:
    fd = os.open(MANIFEST_FILE, _FILE, dir_fd=folder)
    try:
        if not S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("the manifest is no file")
        text = os.read(fd, _MANIFEST_BYTES)
    finally:
        os.close(fd)
    return parse_checkpoint(text)


def _size(folder: int, name: str) -> int | None:
    """Return the size of a regular file in a directory, None where there is none."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return status.st_size if S_ISREG(status.st_mode) else None
