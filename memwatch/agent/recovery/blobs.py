"""Persisted values, read and proved: the name of a blob is the SHA-256 of the text it holds."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from memwatch.agent.memory import compression
from memwatch.agent.memory.entry import Blob, Text
from memwatch.agent.recovery.place import Place
from memwatch.domain.errors import DamagedError
from memwatch.wal.segment import BLOB_DIR

_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)


def named(blob: Blob) -> Blob:
    """Return a blob whose name may be one; raises DamagedError for any other."""
    if not _HASH.fullmatch(blob.sha256) or blob.bytes < 0:
        raise DamagedError(f"{blob.sha256[:80]!r} is no blob's name")
    return blob


class BlobReader:
    """The blobs of one run. Every method raises DamagedError, which names the file."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def expect(self, stored_bytes: int) -> None:
        """Say how much is about to be read, for the progress."""
        self._place.expect(stored_bytes)

    def size(self, blob: Blob) -> int:
        """Return the bytes of a blob's file."""
        return self._place.size(BLOB_DIR, named(blob).sha256)

    def load(self, blob: Blob) -> Text:
        """Return the text of a blob."""
        return b"".join(self._proved(blob))

    def prove(self, blob: Blob) -> None:
        """Read a blob to its end, in constant memory."""
        for _ in self._proved(blob):
            pass

    def _proved(self, blob: Blob) -> Iterator[bytes]:
        """Yield the text of a blob in pieces; raises at the end when it was not that text."""
        name = f"{BLOB_DIR}/{named(blob).sha256}"
        found, size = hashlib.sha256(), 0
        with self._place.open(BLOB_DIR, blob.sha256) as file:
            pieces = self._place.pieces(file, BLOB_DIR, blob.sha256)
            try:
                for piece in compression.unpacked(pieces, blob.bytes):
                    found.update(piece)
                    size += len(piece)
                    yield piece
            except DamagedError as error:
                raise DamagedError(f"{name} is damaged: {error}") from None
        if size != blob.bytes or found.hexdigest() != blob.sha256:
            raise DamagedError(f"{name} is damaged: its content is not what was written")
