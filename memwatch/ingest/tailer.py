"""Follows the segments of one log: offset and identity decide where to go on, not file events.

The newest segment is read first (`poll`), older ones after it (`backfill`), so that a person
sees the present at once. Their order does not matter: a segment's name says the first number it
holds, its successor's name the number behind its last.

No record is given twice, with one exception that is always announced: a fault of kind
`truncated`, `replaced` or `repeated` that has an `lsn` says that numbers from there on may come
again, and that what was known of them is void. Source: requirement R7, rules for the reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from memwatch.domain.record import Batch, LogName, Position
from memwatch.ingest.backlog import Backlog
from memwatch.ingest.reading import Reading
from memwatch.ingest.segment_file import SegmentFile, list_segments

CHUNKS_PER_POLL = 4


class LogTailer:
    """Gives everything that a log directory holds and will hold, as batches.

    Not safe for several threads. Never raises for what files do: damage becomes faults, and what
    the system refuses stands in `error` and is tried again with the next call. Memory stays under
    a chunk, its records, and one line.

    The `end` of each batch, stored with its rows and given back as `positions`, lets a later
    tailer go on without loss or repetition. An end may name a number that no file begins with:
    it then says that the absence of the numbers up to its `next_lsn` was reported.
    """

    def __init__(
        self,
        wal_dir: Path,
        log: LogName,
        positions: Mapping[int, Position] | None = None,
        chunk_bytes: int = 1 << 18,
    ) -> None:
        self._dir = wal_dir
        self._chunk_bytes = chunk_bytes
        self._reading = Reading(log, positions or {})
        self._backlog = Backlog(wal_dir, self._reading, chunk_bytes)
        self._live: SegmentFile | None = None
        self._present = False
        self.more = False
        """There is more to read at the live end right now."""
        self._live_error: str | None = None
        self._past_error: str | None = None

    @property
    def error(self) -> str | None:
        """What the system refused at the last look, in words."""
        return self._live_error or self._past_error

    @property
    def position(self) -> Position | None:
        """Where the live end stands; None before a first segment was seen."""
        return self._live.position if self._live else None

    @property
    def torn_bytes(self) -> int:
        """Bytes of an incomplete line at the live end."""
        return self._live.torn_bytes if self._live else 0

    @property
    def backfill_share(self) -> float | None:
        """Share of the older segments' bytes that is read; None when all are, or none is known."""
        return self._backlog.share

    def close(self) -> None:
        """Give all files back."""
        self._backlog.close()
        self._drop_live()

    def poll(self) -> list[Batch]:
        """Return what is new at the live end, in order, at most CHUNKS_PER_POLL reads of it."""
        self._live_error, self.more = None, False
        self._look()
        try:
            self._follow()
        except OSError as error:
            self._live_error = _words(error)
            self._drop_live()
        return self._reading.take()

    def backfill(self) -> Batch | None:
        """Return the next chunk of an older segment, newest segment first.

        None when nothing is left to read, or, with `error` set, nothing that can be read now.
        """
        self._past_error = None
        try:
            return self._backlog.read()
        except OSError as error:
            self._past_error = _words(error)
            return None

    def _look(self) -> None:
        """Take stock of the directory."""
        try:
            found = list_segments(self._dir)
        except OSError as error:
            self._live_error = _words(error)
            gone = isinstance(error, FileNotFoundError | NotADirectoryError)
            if gone and self._present:
                self._tell_vanished("the log directory is gone")
            self._present = self._present and not gone
            return
        self._present = True
        self._reading.refuse(found.refused)
        if self._reading.take_stock(found.regular):
            self._backlog.report_pruned()
            self._note_older()

    def _follow(self) -> None:
        if self._live is None and not self._open_newest():
            return
        for _ in range(CHUNKS_PER_POLL):
            if self._read_live() and not self._move_on():
                return
        self.more = True

    def _read_live(self) -> bool:
        assert self._live is not None
        start = self._live.position
        items, ended = self._live.read(self._chunk_bytes)
        self._reading.emit(items, start, self._live.position, live=True)
        return ended

    def _move_on(self) -> bool:
        """At the end of the live segment: go on in what follows it, if anything does."""
        live = self._live
        assert live is not None
        standing = live.standing()
        if standing == "other":
            self._take_over(live)
            return True
        for lsn in self._reading.behind(live.lsn):
            if (file := self._try_open(lsn)) is not None:
                self._advance(live, file)
                return True
        return standing == "gone" and self._present and self._lost(live)

    def _take_over(self, old: SegmentFile) -> None:
        file = SegmentFile(self._dir, old.lsn)
        start = old.position
        self._live = file
        self._reading.emit(file.take_over(old), start, file.position, live=True)
        old.close()

    def _advance(self, old: SegmentFile, file: SegmentFile) -> None:
        start = old.position
        items = self._reading.seal(old)
        self._reading.emit(items, start, old.position, live=True)
        old.close()
        self._enter(file)
        self._note_older()

    def _lost(self, live: SegmentFile) -> bool:
        """Leave a live segment that is gone; what follows it may exist by now."""
        self._look()
        if not self._present or self._reading.behind(live.lsn):
            return self._present
        self._tell_vanished("the open segment is gone")
        self._drop_live()
        return self._open_newest()

    def _open_newest(self) -> bool:
        for lsn in reversed(self._reading.segments):
            if (file := self._try_open(lsn)) is not None:
                self._reading.report_lost_above(lsn)
                self._backlog.report_unread_below(self._reading.segments[0])
                self._enter(file)
                self._note_older()
                return True
        return False

    def _enter(self, file: SegmentFile) -> None:
        self._live = file
        self._reading.resume(file, live=True)

    def _note_older(self) -> None:
        if self._live is not None:
            self._backlog.note(self._live.lsn)

    def _try_open(self, lsn: int) -> SegmentFile | None:
        try:
            return SegmentFile(self._dir, lsn)
        except OSError as error:
            self._live_error = _words(error)
            return None

    def _drop_live(self) -> None:
        if self._live is not None:
            self._live.close()
            self._live = None

    def _tell_vanished(self, detail: str) -> None:
        segment = self._live.lsn if self._live else self._reading.newest_known()
        self._reading.tell_lost(segment, detail)


def _words(error: OSError) -> str:
    name = Path(error.filename).name if error.filename else ""
    return f"cannot read the log: {error.strerror or error}" + (f" ({name})" if name else "")
