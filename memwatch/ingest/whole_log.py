"""A log from its first record to its last, in their order: for who folds all of it once.

`tailer` shows the present first and follows it; here nothing is followed. Memory stays under a
chunk, its records and one line. Source: R7, rules for the reader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from memwatch.domain.record import Record
from memwatch.ingest.segment_file import SegmentFile, list_segments
from memwatch.wal.stream import Items

_CHUNK_BYTES = 1 << 18


class WholeLog:
    """Reads a log directory once. Never raises for what files do: it stands in `faults`."""

    def __init__(self, wal_dir: Path, chunk_bytes: int = _CHUNK_BYTES) -> None:
        self._dir = wal_dir
        self._chunk_bytes = chunk_bytes
        self.first_lsn: int | None = None
        """Where the log begins: above 1 its writer dropped what was before."""
        self.faults: Counter[str] = Counter()
        """What is wrong in it, by kind; segments that went while it was read are nothing wrong."""

    def records(self) -> Iterator[Record]:
        """Give each record once, in order."""
        try:
            segments = list_segments(self._dir).regular
        except OSError:
            return
        self.first_lsn = segments[0] if segments else None
        for lsn, successor in pairwise([*segments, None]):
            if lsn is not None:
                yield from self._segment(lsn, successor)

    def _segment(self, lsn: int, successor: int | None) -> Iterator[Record]:
        try:
            file = SegmentFile(self._dir, lsn)
        except FileNotFoundError:  # dropped behind a checkpoint since it was listed
            return
        except OSError:
            self.faults["refused"] += 1
            return
        try:
            ended = False
            while not ended:
                items, ended = file.read(self._chunk_bytes)
                yield from self._sorted(items)
            if successor is not None:
                yield from self._sorted(file.seal(successor))
        except OSError:
            self.faults["vanished"] += 1
        finally:
            file.close()

    def _sorted(self, items: Items) -> Iterator[Record]:
        for item in items:
            if isinstance(item, Record):
                yield item
            else:
                self.faults[item.kind] += 1
