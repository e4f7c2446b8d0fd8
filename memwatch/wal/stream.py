"""Bytes of one segment -> records and faults, in any chunking, with the same answer."""

from __future__ import annotations

from memwatch.domain.record import Fault, FaultKind, Position, Record
from memwatch.wal import codec
from memwatch.wal.framing import Framer, Line, Overlong

_FUSED_TRIES = 4  # record starts looked at on a broken line: bounds the work on hostile input
_SAID_SINGLY = 100  # broken lines in a row that are reported one by one

Items = list[Record | Fault]


class SegmentStream:
    """Reads one segment from a position on.

    A broken line gives a `damaged` fault and reading goes on; numbers missing beyond those of
    the broken lines give a `gap`; numbers that come again give `repeated`. Of very many broken
    lines in a row the later ones share faults, ever more of them: garbage costs no memory.
    """

    def __init__(self, position: Position, max_line_bytes: int = codec.MAX_LINE_BYTES) -> None:
        self._segment = position.segment
        self._framer = Framer(position.offset, max_line_bytes)
        self._next_lsn = position.segment if position.offset == 0 else position.next_lsn
        self._broken = 0  # broken lines since the last good record
        self._unsaid: Fault | None = None
        self._say_at = 2 * _SAID_SINGLY

    @property
    def position(self) -> Position:
        """Where a later stream goes on without loss or repetition.

        Behind a broken line the number due is unknown: how many it took nobody can say.
        """
        due = None if self._broken else self._next_lsn
        return Position(self._segment, self._framer.offset, due)

    @property
    def torn_bytes(self) -> int:
        """Bytes of the incomplete line at the end: normal while the writer is at work."""
        return self._framer.torn_bytes

    def feed(self, chunk: bytes) -> Items:
        """Take the next bytes of the segment; return what they complete."""
        items: Items = []
        decode, keep = codec.decode, items.append  # the one loop that must be fast
        for line in self._framer.feed(chunk):
            if isinstance(line, Overlong):
                fault = self._fault("overlong", line.offset, line.length, "line too long")
                self._break(fault, items)
                continue
            try:
                record = decode(line.text)
            except codec.DamagedLineError as error:
                self._rescue(line, str(error), items)
                continue
            if record.lsn == self._next_lsn and not self._broken:
                self._next_lsn += 1
                keep(record)
            else:
                self._accept(record, line.offset, items)
        return items

    def seal(self, successor: int | None = None) -> Items:
        """Say that nothing will follow: report a torn end, and numbers missing before `successor`.

        `successor` is the first lsn of the next segment. The position moves behind the torn end
        and expects the successor, so that a sealed segment tells by its position that it is.
        """
        items: Items = []
        self._say(items)
        if self.torn_bytes:
            self._broken += 1
            offset = self._framer.offset
            items.append(self._fault("torn", offset, self.torn_bytes, "the last line breaks off"))
            self._framer.skip_torn()
        if successor is not None:
            self._continuity(successor, self._framer.offset, items)
            self._next_lsn = successor
            self._broken = 0
        return items

    def _accept(self, record: Record, offset: int, items: Items) -> None:
        self._say(items)
        self._continuity(record.lsn, offset, items)
        self._next_lsn = record.lsn + 1
        self._broken, self._say_at = 0, 2 * _SAID_SINGLY
        items.append(record)

    def _rescue(self, line: Line, why: str, items: Items) -> None:
        """Keep a good record that stands behind a broken one on the same line."""
        end = len(line.text)
        for _ in range(_FUSED_TRIES):
            start = line.text.rfind(codec.RECORD_START, 1, end)
            if start < 0:
                break
            try:
                record = codec.decode(line.text[start:])
            except codec.DamagedLineError:
                end = start
                continue
            self._break(self._fault("fused", line.offset, start, "a record broke off"), items)
            self._accept(record, line.offset + start, items)
            return
        self._break(self._fault("damaged", line.offset, len(line.text) + 1, why), items)

    def _break(self, fault: Fault, items: Items) -> None:
        """Count a broken line, and report it now or with others."""
        self._broken += 1
        if self._broken <= _SAID_SINGLY:
            items.append(fault)
            return
        first = self._unsaid or fault
        length = fault.offset + fault.length - first.offset
        detail = f"broken line {self._broken} in a row: {fault.detail}"
        self._unsaid = self._fault("damaged", first.offset, length, detail)
        if self._broken == self._say_at:
            self._say_at *= 2
            self._say(items)

    def _say(self, items: Items) -> None:
        if self._unsaid is not None:
            items.append(self._unsaid)
            self._unsaid = None

    def _continuity(self, lsn: int, offset: int, items: Items) -> None:
        expected = self._next_lsn
        if expected is None:
            return
        if lsn < expected:
            items.append(self._fault("repeated", offset, 0, f"lsn {lsn} comes again", lsn))
        elif lsn - expected > self._broken:
            missing = lsn - expected
            detail = f"lsn {expected} to {lsn - 1} are missing"
            items.append(self._fault("gap", offset, 0, detail, lsn, missing))

    def _fault(
        self,
        kind: FaultKind,
        offset: int,
        length: int,
        detail: str,
        lsn: int | None = None,
        missing: int = 0,
    ) -> Fault:
        return Fault(kind, self._segment, offset, length, detail, lsn, missing)
