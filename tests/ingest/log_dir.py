"""A log directory for tests: a writer that can be stopped anywhere, and hands that do harm."""

from __future__ import annotations

from pathlib import Path

from memwatch.domain.record import Batch, Fault, Position, Record
from memwatch.ingest.tailer import LogTailer
from memwatch.wal import codec
from memwatch.wal.segment import segment_name


def line(lsn: int, token: int = 0, pad: int = 0) -> bytes:
    """Return the line of a record that is known again by its token."""
    return codec.encode(lsn, lsn, lsn, "note", {"token": token or lsn, "text": "x" * pad})


class LogDir:
    """Writes segments as an agent's writer does."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(exist_ok=True)

    def file(self, segment: int) -> Path:
        return self.path / segment_name(segment)

    def write(self, segment: int, data: bytes = b"") -> None:
        """Append to a segment."""
        with self.file(segment).open("ab") as file:
            file.write(data)

    def fill(self, segment: int, upto: int) -> None:
        """Append records of a segment up to a number."""
        self.write(segment, b"".join(line(lsn) for lsn in range(segment, upto + 1)))

    def cut(self, segment: int, size: int) -> None:
        """Make a segment shorter."""
        with self.file(segment).open("r+b") as file:
            file.truncate(size)

    def replace(self, segment: int, data: bytes) -> None:
        """Put another file under a segment's name."""
        beside = self.path / "beside"
        beside.write_bytes(data)
        beside.rename(self.file(segment))

    def tailer(
        self, positions: dict[int, Position] | None = None, chunk_bytes: int = 1 << 16
    ) -> LogTailer:
        return LogTailer(self.path, "agent", positions, chunk_bytes)


class Reader:
    """What a consumer keeps: rows by segment and number, faults, and positions."""

    def __init__(self) -> None:
        self.rows: dict[tuple[int, int], Record] = {}
        self.order: list[int] = []
        self.faults: list[Fault] = []
        self.positions: dict[int, Position] = {}

    def take(self, batch: Batch) -> None:
        """Keep a batch; a number that comes again unannounced fails the test."""
        segment = batch.start.segment
        assert batch.end.segment == segment
        before = self.positions.get(segment, batch.start)
        assert batch.start.offset == before.offset or batch.faults, "read on elsewhere"
        for fault in batch.faults:
            if fault.kind in ("truncated", "replaced") and fault.lsn is not None:
                void = [key for key in self.rows if key[0] == segment and key[1] >= fault.lsn]
                for key in void:
                    del self.rows[key]
        for record in batch.records:
            assert (segment, record.lsn) not in self.rows, "given twice"
            self.rows[segment, record.lsn] = record
            self.order.append(record.lsn)
        self.faults += batch.faults
        self.positions[segment] = batch.end

    def poll(self, tailer: LogTailer) -> None:
        """Take one look at the live end."""
        for batch in tailer.poll():
            self.take(batch)

    def backfill(self, tailer: LogTailer) -> bool:
        """Take one look at older segments."""
        batch = tailer.backfill()
        if batch is not None:
            assert not batch.live
            self.take(batch)
        return batch is not None

    def settle(self, tailer: LogTailer) -> None:
        """Take everything there is."""
        self.poll(tailer)
        while tailer.more:
            self.poll(tailer)
        while self.backfill(tailer):
            pass

    def kinds(self) -> list[str]:
        return [fault.kind for fault in self.faults]

    def lsns(self) -> list[int]:
        """Return the numbers that are there, in order."""
        return sorted(lsn for _, lsn in self.rows)

    def tokens(self) -> set[int]:
        found = {record.number("token") for record in self.rows.values()}
        return {token for token in found if token is not None}
