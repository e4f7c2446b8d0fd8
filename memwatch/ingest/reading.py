"""How far each segment of a log is read, and the batches that say so."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from memwatch.domain.record import Batch, Fault, LogName, Position, Record
from memwatch.ingest.segment_file import SegmentFile
from memwatch.wal.stream import Items


class Reading:
    """The state that live end and backlog share: places, listing, and batches not handed out."""

    def __init__(self, log: LogName, positions: Mapping[int, Position]) -> None:
        self._log: LogName = log
        self._batches: list[Batch] = []
        self._refused: set[int] = set()
        self._due = max((p.next_lsn or p.segment for p in positions.values()), default=1)
        self.places = dict(positions)
        """Where reading goes on, by segment."""
        self._seen: list[int] = []
        self._lost: set[int] = set()
        self.segments: list[int] = []
        """The segments that exist, in order."""
        self.sealed: set[int] = set()
        """Segments that are read to their end."""

    def take(self) -> list[Batch]:
        """Hand out the batches."""
        batches, self._batches = self._batches, []
        return batches

    def emit(self, items: Items, start: Position, end: Position, *, live: bool) -> None:
        """Make a batch of what one read gave, unless that is nothing."""
        if not items and start == end:
            return
        faults = [item for item in items if isinstance(item, Fault)]
        records = [item for item in items if isinstance(item, Record)]
        if live and items and end.next_lsn is not None:
            self._due = end.next_lsn
        self.places[end.segment] = end
        self._batches.append(Batch(self._log, records, faults, start, end, live))

    def tell(self, fault: Fault) -> None:
        """Make a batch of a fault that moves no position."""
        place = self.places.get(fault.segment, Position(fault.segment))
        self.emit([fault], place, place, live=True)

    def tell_pruned(self, first: int, end: int) -> None:
        """Report that numbers from `first` to below `end` were dropped before they were read."""
        if first >= end:
            return
        detail = f"lsn {first} to {end - 1} were dropped before they were read"
        fault = Fault("pruned", first, 0, 0, detail, end, end - first)
        place = self.places.get(first, Position(first))
        self.emit([fault], place, Position(first, place.offset, end), live=False)

    def refuse(self, refused: Iterable[int]) -> None:
        """Report names of segments that no regular file has, once each."""
        now = set(refused)
        for lsn in sorted(now - self._refused):
            self.tell(Fault("refused", lsn, 0, 0, "a link or special file: not opened"))
        self._refused = now

    def take_stock(self, segments: list[int]) -> bool:
        """Take note of what exists; False when that is what existed before."""
        self._lost.difference_update(segments)
        if segments == self.segments:
            return False
        self.segments = segments
        self._seen = sorted({*self._seen, *segments})
        return True

    def behind(self, lsn: int) -> list[int]:
        """Return the segments behind one, in order."""
        return self.segments[bisect_right(self.segments, lsn) :]

    def successor(self, lsn: int) -> int | None:
        """Return the first number of the segment behind one, which may be gone by now."""
        behind = bisect_right(self._seen, lsn)
        return self._seen[behind] if behind < len(self._seen) else None

    def newest_known(self) -> int:
        """Return the newest segment that was ever seen, or 1."""
        return max(self.places, default=1)

    def resume(self, file: SegmentFile, *, live: bool) -> None:
        """Let a file go on where its segment was left."""
        place = self.places.get(file.lsn)
        items: Items = []
        if place is not None:
            items = file.resume(place)
            if not items:  # it may go on before the place: a torn end was cut off
                self.emit(items, place, file.position, live=live)
                return
        elif live and file.lsn < self._due:
            detail = f"a segment begins with lsn {file.lsn} where {self._due} was due"
            items = [Fault("repeated", file.lsn, 0, 0, detail, file.lsn)]
        self.emit(items, file.position, file.position, live=live)

    def seal(self, file: SegmentFile) -> Items:
        """Close the account of a segment that is read to its end and has a successor."""
        successor = self.successor(file.lsn)
        if successor is None:
            return []
        items = file.seal(successor)
        if self._exists(file.lsn):
            return items
        return [_pruned(item) if isinstance(item, Fault) else item for item in items]

    def _exists(self, lsn: int) -> bool:
        at = bisect_left(self.segments, lsn)
        return at < len(self.segments) and self.segments[at] == lsn

    def tell_lost(self, segment: int, detail: str) -> None:
        """Report a segment that is gone although nothing newer exists, unless it was."""
        if segment not in self._lost:
            self._lost.add(segment)
            self.tell(Fault("vanished", segment, 0, 0, detail))

    def report_lost_above(self, newest: int) -> None:
        """Report segments known from before that are newer than all that exist."""
        known = {segment for segment in self.places if segment > newest}
        for segment in sorted(known - self._refused):
            self.tell_lost(segment, "a segment that was read before is gone")


def _pruned(fault: Fault) -> Fault:
    """Where the segment itself is gone, what is missing behind it went the same way."""
    return replace(fault, kind="pruned") if fault.kind == "gap" else fault
