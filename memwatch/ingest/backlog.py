"""Older segments of a log: read newest first, beside the live end."""

from __future__ import annotations

from pathlib import Path

from memwatch.domain.record import Batch, Position
from memwatch.ingest.reading import Reading
from memwatch.ingest.segment_file import SegmentFile
from memwatch.wal.segment import segment_name


class Backlog:
    """What is left to read below the live segment."""

    def __init__(self, wal_dir: Path, reading: Reading, chunk_bytes: int) -> None:
        self._dir = wal_dir
        self._reading = reading
        self._chunk_bytes = chunk_bytes
        self._file: SegmentFile | None = None
        self._unread: dict[int, int] = {}  # bytes, by segment
        self._order: list[int] = []  # the same segments, newest last, and some that are finished
        self._read_bytes = 0

    @property
    def share(self) -> float | None:
        """Share of the bytes that is read; None when nothing is left."""
        if not self._unread:
            return None
        total = self._read_bytes + sum(self._unread.values())
        return self._read_bytes / total if total else 0.0

    def close(self) -> None:
        """Give the file back."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def note(self, live: int) -> None:
        """Take on the segments below the live one that are not read to their end."""
        reading = self._reading
        for lsn in [n for n in self._unread if n >= live]:
            self._finish(lsn)
        for lsn in reading.segments:
            if lsn < live and lsn not in reading.sealed and lsn not in self._unread:
                self._take_on(lsn)
        self._order = sorted(self._unread)

    def report_pruned(self) -> None:
        """Report segments that vanished before they were opened."""
        reading = self._reading
        there = {*reading.segments, self._file.lsn if self._file else 0}
        for lsn in sorted(self._unread.keys() - there):
            successor = reading.successor(lsn)
            place = reading.places.get(lsn, Position(lsn))
            self._finish(lsn)
            if successor is not None:
                reading.tell_pruned(place.next_lsn or lsn, successor)

    def report_unread_below(self, first: int) -> None:
        """Report numbers below the first segment that nobody read: at the start."""
        due = 1
        known = sorted(place for place in self._reading.places.values() if place.segment < first)
        for place in known:
            if due < place.segment:
                self._reading.tell_pruned(due, place.segment)
            due = max(due, place.next_lsn or place.segment)
        if due < first:
            self._reading.tell_pruned(due, first)

    def _take_on(self, lsn: int) -> None:
        try:
            size = (self._dir / segment_name(lsn)).lstat().st_size
        except OSError:
            size = 0
        place = self._reading.places.get(lsn)
        offset = place.offset if place else 0
        if place and offset == size and place.next_lsn == self._reading.successor(lsn):
            self._reading.sealed.add(lsn)
        else:
            self._unread[lsn] = max(size - offset, 0)

    def read(self) -> Batch | None:
        """Return what the next chunk gives, or None when nothing can be read.

        Raises OSError when all that is left refuses to be read.
        """
        refusal: OSError | None = None
        passed_over: list[int] = []
        while self._order:
            lsn = self._order[-1]
            try:
                while lsn in self._unread:
                    self._step(lsn)
                    if batches := self._reading.take():
                        self._order += reversed(passed_over)
                        (batch,) = batches
                        return batch
            except FileNotFoundError:  # the next look at the directory will say so
                self.close()
            except OSError as error:
                self.close()
                refusal = error
            self._order.pop()
            if lsn in self._unread:
                passed_over.append(lsn)
        self._order += reversed(passed_over)
        if refusal is not None:
            raise refusal
        return None

    def _step(self, lsn: int) -> None:
        """Open the segment, or read a chunk of it, or close its account: one batch at most."""
        if self._file is not None and self._file.lsn != lsn:
            self.close()
        if self._file is None:
            self._file = SegmentFile(self._dir, lsn)
            self._reading.resume(self._file, live=False)
            return
        file, start = self._file, self._file.position
        items, ended = file.read(self._chunk_bytes)
        read_bytes = file.position.offset - start.offset
        self._read_bytes += max(read_bytes, 0)
        self._unread[lsn] = max(self._unread[lsn] - read_bytes, 0)
        if ended:
            items += self._reading.seal(file)
            self._finish(lsn)
        self._reading.emit(items, start, file.position, live=False)

    def _finish(self, lsn: int) -> None:
        del self._unread[lsn]
        if self._file is not None and self._file.lsn == lsn:
            self.close()
