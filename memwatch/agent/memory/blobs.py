"""Values on disk, each under the SHA-256 of its canonical text, compressed where it is worth it.

A blob is written once and never changed. It lives while an entry refers to it, and after that until
no checkpoint does that recovery may start from: `release` says since which lsn no entry needs it,
`collect` up to which lsn no checkpoint does. Those that an earlier start left without saying since
when are `inherited`. What is read is verified; a wrong byte is an error.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from memwatch.agent.files import Files
from memwatch.agent.memory.compression import pack, unpack
from memwatch.agent.memory.entry import Blob, Text
from memwatch.agent.memory.values import digest
from memwatch.domain.errors import DamagedError, LogError
from memwatch.host.forked import new_lock

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NAME: Final = re.compile(r"[0-9a-f]{64}")
_DRAFT: Final = re.compile(r"\.[0-9a-f]{64}\.\d+\.draft")
_PACKING_BYTES = 1_000
"""Most that the form of a stored file adds to its text."""


class BlobStore:
    """The blobs of one run. Safe to call from any thread; a forked child can only load."""

    def __init__(self, folder: Path, files: Files) -> None:
        self._folder = folder
        self._files = files
        self._owner = os.getpid()
        self._lock = new_lock()
        self._sync_lock = new_lock()
        self._made = False
        self._drafts = 0
        self._stored: dict[str, int] = {}
        """Bytes of each file that we know to be whole."""
        self._live: Counter[str] = Counter()
        self._released: dict[str, int] = {}
        """The lsn since which no entry refers to a file, for files without a live reference."""
        self._inherited: set[str] = set()
        """Those of them that an earlier start released, or wrote in vain."""
        self._unsynced: dict[str, None] = {}
        self._doubtful: set[str] = set()
        """Those whose sync failed: only writing them anew makes sure of them."""

    def save(self, canonical: Text, sha256: str | None = None) -> Blob:
        """Store a text and take a live reference; it is durable after the next `sync`.

        `sha256` is its hash where the caller knows it. A content that is stored already costs no
        write. Raises LogError: then nothing was stored.
        """
        self._check_owner()
        blob = Blob(sha256 or digest(canonical), len(canonical))
        sha = blob.sha256
        with self._lock:
            if self._is_whole(blob):
                self._hold(sha)
                return blob
            self._drafts += 1
            draft = self._folder / f".{sha}.{self._drafts}.draft"
        data = pack(canonical)  # neither this nor the write holds up other threads
        try:
            self._make_folder()
            self._files.write_new(draft, data, sync=False)
            with self._lock:
                self._files.rename(draft, self._folder / sha)
                self._stored[sha] = len(data)
                self._unsynced[sha] = None
                self._hold(sha)
        except OSError as error:
            self._files.discard(draft)
            raise LogError(
                f"cannot save a value in {self._folder}: {error.strerror}; "
                "nothing of it was kept, and values saved before are safe"
            ) from error
        return blob

    def load(self, blob: Blob) -> Text:
        """Return the text of a blob; raises DamagedError, which names the file."""
        path = self._folder / blob.sha256
        if not _NAME.fullmatch(blob.sha256):
            raise DamagedError(f"{blob.sha256!r:.80} is not the name of a blob")
        try:
            canonical = unpack(_read(path, blob.bytes + _PACKING_BYTES), blob.bytes)
        except OSError as error:
            raise DamagedError(f"the blob {path} cannot be read: {error.strerror}") from error
        except DamagedError as error:
            raise DamagedError(f"the blob {path} is damaged: {error}") from error
        if len(canonical) != blob.bytes or digest(canonical) != blob.sha256:
            raise DamagedError(f"the blob {path} is damaged: its content is not what was written")
        return canonical

    def sync(self) -> None:
        """Bring to the device everything saved before the call; raises OSError.

        After a failure nothing counts as synced, and the next call tries again.
        """
        if os.getpid() != self._owner:
            return
        with self._sync_lock:
            with self._lock:
                waiting, self._unsynced = self._unsynced, {}
            if not waiting:
                return
            try:
                for sha in waiting:
                    self._sync(sha)
                self._files.sync_directory(self._folder)
                self._files.sync_directory(self._folder.parent)
            except OSError:
                with self._lock:
                    self._unsynced = waiting | self._unsynced
                raise

    def retain(self, sha256: str) -> None:
        """Take one more live reference to a stored blob."""
        with self._lock:
            self._hold(sha256)

    def release(self, sha256: str, lsn: int) -> None:
        """Give back a live reference: the record `lsn` and those behind it do without it.

        Raises ValueError when there is none.
        """
        with self._lock:
            if not self._live[sha256]:
                raise ValueError(f"the blob {sha256} has no live reference")
            self._live[sha256] -= 1
            if not self._live[sha256]:
                del self._live[sha256]
                self._released[sha256] = lsn

    def adopt(self, live: Iterable[str], lsn: int) -> None:
        """Take over a folder at the start of a run, before anything is saved; raises OSError.

        `live` names the blob of each entry, one name for each reference. Files without any count
        as released at `lsn`; drafts that a killed process left are removed. The next `sync` brings
        all to the device, as the process that wrote them may have been killed before.
        """
        with self._lock:
            self._live.update(live)
            try:
                with os.scandir(self._folder) as found:
                    names = [each.name for each in found if not each.is_dir(follow_symlinks=False)]
            except FileNotFoundError:
                return
            for name in names:
                if _DRAFT.fullmatch(name):
                    self._files.discard(self._folder / name)
                elif _NAME.fullmatch(name):
                    self._unsynced[name] = None
                    if name not in self._live:
                        self._released[name] = lsn
                        self._inherited.add(name)

    def collect(self, kept_lsn: int) -> tuple[int, int]:
        """Delete what was released up to `kept_lsn`; returns count and bytes, raises OSError."""
        with self._lock:
            return self._drop([sha for sha, lsn in self._released.items() if lsn <= kept_lsn])

    @property
    def inherited(self) -> frozenset[str]:
        """Blobs of earlier starts that no entry of this one has referred to."""
        with self._lock:
            return frozenset(self._inherited)

    def collect_inherited(self, mentioned: set[str]) -> tuple[int, int]:
        """Delete the inherited ones that no file of the run mentions; returns as `collect`."""
        with self._lock:
            return self._drop(self._inherited - mentioned)

    def holds(self, blob: Blob) -> bool:
        """Say whether the content of a blob is stored, as far as the size of its file tells."""
        with self._lock:
            return self._is_whole(blob)

    def stored_bytes(self, sha256: str) -> int:
        """Return the bytes of a blob's file; 0 when there is none."""
        return self._stored.get(sha256) or self._size(sha256)

    # Below: called with the lock held, unless said otherwise.

    def _hold(self, sha: str) -> None:
        self._live[sha] += 1
        self._released.pop(sha, None)
        self._inherited.discard(sha)

    def _drop(self, shas: Iterable[str]) -> tuple[int, int]:
        """Delete files that nobody needs; returns count and bytes, raises OSError."""
        count = size = 0
        if os.getpid() != self._owner:
            return count, size
        for sha in shas:
            size += self._size(sha)
            with suppress(FileNotFoundError):
                self._files.unlink(self._folder / sha)
            del self._released[sha]
            self._inherited.discard(sha)
            self._stored.pop(sha, None)
            count += 1
        return count, size

    def _is_whole(self, blob: Blob) -> bool:
        """Whether a content is stored: ours by size, that of an earlier start by its bytes."""
        sha = blob.sha256
        if sha not in self._stored:
            size = self._size(sha)
            if not size:
                return False
            try:
                self.load(blob)
            except DamagedError:
                return False
            self._stored[sha] = size
            self._unsynced[sha] = None  # the start that wrote it may have been killed before
            return True
        return self._size(sha) == self._stored[sha]

    def _size(self, sha: str) -> int:
        """Return the bytes of a file, with or without the lock; 0 for what is not one."""
        try:
            status = os.lstat(self._folder / sha)
        except OSError:
            return 0
        return status.st_size if stat.S_ISREG(status.st_mode) else 0

    # Below: called without the lock.

    def _check_owner(self) -> None:
        if os.getpid() != self._owner:
            raise LogError("these blobs belong to the parent process; a forked child may not write")

    def _make_folder(self) -> None:
        if not self._made:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._made = True

    def _sync(self, sha: str) -> None:
        path = self._folder / sha
        if sha in self._doubtful and not self._write_again(path):
            return
        try:
            fd = self._files.open(path, _READ)
        except OSError:
            with self._lock:
                if sha in self._stored:
                    raise
            return  # collected in the meantime, or lost before this start: recovery tells of it
        try:
            self._files.fsync(fd)
        except OSError:
            self._doubtful.add(sha)
            raise
        finally:
            self._files.close(fd)
        self._doubtful.discard(sha)

    def _write_again(self, path: Path) -> bool:
        """Write a file anew: after a failing fsync its pages count as clean, though they are not.

        What is in the cache still reads well in general; what does not is an error of the device,
        but in a file of an earlier start, which may have been damaged: False.
        """
        try:
            data = _read(path, self.stored_bytes(path.name))
            whole = digest(unpack(data, 1 << 62)) == path.name
        except (DamagedError, FileNotFoundError):
            whole = False
        if whole:
            self._files.replace(path, data)
        elif path.name in self._stored:
            raise OSError(errno.EIO, "the device lost a blob", str(path))
        return whole


def _read(path: Path, limit_bytes: int) -> bytes:
    """Return a file's bytes; raises OSError, and DamagedError for one that cannot be a blob."""
    fd = os.open(path, _READ)
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise DamagedError("it is not a file")
        if status.st_size > limit_bytes:
            raise DamagedError("it is longer than what was written")
        return file.read()
