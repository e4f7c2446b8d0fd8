"""A file of a checkpoint, written in pieces: compressed, hashed and synced as it goes.

No more than a piece is ever in memory, and no more than SYNC_BYTES wait for the device, so that
the agent's own appends do not queue behind one long flush.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Final

from memwatch.agent.files import Files
from memwatch.agent.memory.compression import NONE, Method, choose
from memwatch.wal.manifest import CheckpointFile

PIECE_BYTES: Final = 64_000
"""Least that is handed to the system in one go."""
SYNC_BYTES: Final = 8_000_000
SAMPLE_BYTES: Final = 128_000
"""Of a file's beginning, that the way to compress it is chosen by."""

_PROBE_BYTES = 4_000_000
_USUAL_BYTES_PER_S = 200e6
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW


class Disk:
    """How fast files reach the device: as measured with what was written last."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._bytes_per_s = 0.0

    def note(self, size: int, seconds: float) -> None:
        """Take note of a write; a small one says more about latency than about speed."""
        if size >= _PROBE_BYTES and seconds > 0:
            self._bytes_per_s = size / seconds

    def method_for(self, sample: bytes, folder: Path) -> Method:
        """Return the compression that brings such bytes to the device soonest."""
        if len(sample) < SAMPLE_BYTES:
            return choose(sample, _USUAL_BYTES_PER_S)
        if not self._bytes_per_s:
            self._probe(sample, folder / ".probe.draft")
        return choose(sample, self._bytes_per_s or _USUAL_BYTES_PER_S)

    def _probe(self, sample: bytes, path: Path) -> None:
        try:
            with Output(self._files, path, NONE) as output:
                while output.size < _PROBE_BYTES:
                    output.add(sample)
                output.finish()
            self.note(output.size, output.seconds)
        finally:
            self._files.discard(path)


class Output:
    """One file. `finish` makes it durable; left without, it is closed as it is."""

    def __init__(self, files: Files, path: Path, method: Method) -> None:
        self._files = files
        self._stream = method.compressor()
        self._digest = hashlib.sha256()
        self._unsynced = 0
        self.size = 0
        self.seconds = 0.0
        """Spent by the system on writing and syncing."""
        self._fd = files.open(path, _CREATE, 0o644)

    def add(self, piece: bytes) -> None:
        """Write the next bytes; raises OSError."""
        self._write(self._stream.compress(piece))

    def finish(self) -> CheckpointFile:
        """Write the rest and sync; returns size and hash, raises OSError."""
        self._write(self._stream.flush())
        self._sync(self._files.fsync)
        return CheckpointFile(self.size, self._digest.hexdigest())

    def __enter__(self) -> Output:
        """Return the output itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self._files.close(self._fd)

    def _write(self, data: bytes) -> None:
        if not data:
            return
        began = time.perf_counter()
        self._files.write_all(self._fd, data)
        self.seconds += time.perf_counter() - began
        self._digest.update(data)
        self.size += len(data)
        self._unsynced += len(data)
        if self._unsynced >= SYNC_BYTES:
            self._sync(self._files.sync_data)

    def _sync(self, sync: Callable[[int], object]) -> None:
        began = time.perf_counter()
        sync(self._fd)
        self.seconds += time.perf_counter() - began
        self._unsynced = 0


def write_plain(files: Files, path: Path, pieces: Iterable[bytes]) -> CheckpointFile:
    """Write a file as it is; raises OSError."""
    with Output(files, path, NONE) as output:
        for piece in gathered(pieces):
            output.add(piece)
        return output.finish()


def write_compressed(
    files: Files, disk: Disk, folder: Path, name: str, pieces: Iterable[bytes]
) -> tuple[str, CheckpointFile]:
    """Write a file in the form that is measured to be soonest done; returns its name as well."""
    rest = gathered(pieces)
    sample = b""
    while len(sample) < SAMPLE_BYTES and (piece := next(rest, b"")):
        sample += piece
    method = disk.method_for(sample[:SAMPLE_BYTES], folder)
    name += method.suffix
    with Output(files, folder / name, method) as output:
        for piece in chain([sample], rest):
            output.add(piece)
        written = output.finish()
    disk.note(output.size, output.seconds)
    return name, written


def gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same bytes in pieces that are worth a call of the system."""
    held: list[bytes] = []
    held_bytes = 0
    for piece in pieces:
        held.append(piece)
        held_bytes += len(piece)
        if held_bytes >= PIECE_BYTES:
            yield b"".join(held)
            held, held_bytes = [], 0
    if held:
        yield b"".join(held)


def remove_directory(files: Files, path: Path) -> None:
    """Remove a checkpoint's directory with its files; raises OSError."""
    for part in path.iterdir():
        files.unlink(part)
    path.rmdir()
