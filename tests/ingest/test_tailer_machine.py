"""Whatever happens to the files, each good record is given once, and each harm has a name."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from memwatch.agent.checkpoints.torn import cut, torn_tails
from memwatch.agent.files import SYSTEM_FILES
from memwatch.domain.record import Position, Record
from memwatch.wal.segment import segments
from memwatch.wal.stream import SegmentStream
from tests.ingest.log_dir import LogDir, Reader, line


class LogMachine(RuleBasedStateMachine):
    """A writer, hands that do harm, and a reader that stops and goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp())
        self.log = LogDir(self.home / "wal")
        self.reader = Reader()
        self.tailer = self.log.tailer()
        self.token = 0
        self.next = self.segment = 1
        self.rest = b""  # what is missing of a line that was begun
        self.harmed = False
        self.broken = False  # the open segment holds a broken line, or will
        self.log.write(1)

    def teardown(self) -> None:
        self.everything_good_is_read()
        self.tailer.close()
        shutil.rmtree(self.home)

    # The writer.

    def line(self) -> bytes:
        """Return a new line, longer than all before.

        A stored position does not know content: it takes a line of the same number that ends at
        the same place for the one that it was made behind, and a broken line for another. So
        lengths differ here, and what holds broken lines is not replaced by other content.
        """
        self.token += 1
        made = line(self.next, self.token, pad=self.token)
        self.next += 1
        return made

    def open_segment(self) -> None:
        while (path := self.log.file(self.next)).exists() and path.stat().st_size:
            self.next += 1  # remains of a broken line are there: that costs a number
        self.segment = self.next
        self.broken = False
        self.log.write(self.segment)

    @precondition(lambda self: not self.rest)
    @rule(count=st.integers(1, 5))
    def append(self, count: int) -> None:
        self.log.write(self.segment, b"".join(self.line() for _ in range(count)))

    @precondition(lambda self: not self.rest)
    @rule(share=st.floats(0.01, 0.99))
    def append_half(self, share: float) -> None:
        whole = self.line()
        upto = min(max(int(len(whole) * share), 1), len(whole) - 1)
        self.log.write(self.segment, whole[:upto])
        self.rest = whole[upto:]

    @precondition(lambda self: self.rest)
    @rule()
    def finish_line(self) -> None:
        self.log.write(self.segment, self.rest)
        self.rest = b""

    @precondition(lambda self: not self.rest)
    @rule()
    def rotate(self) -> None:
        self.open_segment()

    @rule()
    def writer_is_killed_and_starts_again(self) -> None:
        if self.rest:
            self.next -= 1  # nobody knows of the broken line's number
            self.rest = b""
        self.open_segment()

    @precondition(lambda self: not self.rest)
    @rule(junk=st.sampled_from([b"\n", b"{}\n", b"\x00\xff\n", b"\r\n", b'{"lsn":1}\n']))
    def write_garbage(self, junk: bytes) -> None:
        self.log.write(self.segment, junk)
        self.broken = True

    @rule()
    def torn_ends_are_cut_off(self) -> None:
        if self.log.path.exists():
            for tail in torn_tails(self.log.path, set()):
                cut(SYSTEM_FILES, tail)

    # Harm.

    def existing(self) -> list[int]:
        try:
            return segments(path.name for path in self.log.path.iterdir())
        except FileNotFoundError:
            return []

    @precondition(lambda self: not self.rest)
    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        size = self.log.file(self.segment).stat().st_size
        self.log.cut(self.segment, int(size * share))
        self.harmed = self.broken = True

    @precondition(lambda self: not self.rest)
    @rule(more=st.integers(0, 3))
    def replace_by_a_copy_that_goes_on(self, more: int) -> None:
        same = self.log.file(self.segment).read_bytes()
        self.log.replace(self.segment, same + b"".join(self.line() for _ in range(more)))
        self.harmed = True

    @precondition(lambda self: not self.rest and not self.broken)
    @rule(count=st.integers(0, 6))
    def replace_by_other_content(self, count: int) -> None:
        self.next = self.segment
        self.log.replace(self.segment, b"".join(self.line() for _ in range(count)))
        self.harmed = True

    @rule(count=st.integers(1, 3))
    def prune(self, count: int) -> None:
        for segment in self.existing()[:-1][:count]:
            self.log.file(segment).unlink()
            self.harmed = True

    @rule()
    def directory_is_recreated(self) -> None:
        shutil.rmtree(self.log.path)
        self.reader.poll(self.tailer)
        assert self.tailer.error
        self.log = LogDir(self.home / "wal")
        self.rest = b""
        self.open_segment()
        self.harmed = True

    # The reader.

    @rule()
    def poll(self) -> None:
        self.reader.poll(self.tailer)
        assert self.tailer.error is None

    @rule()
    def backfill(self) -> None:
        self.reader.backfill(self.tailer)

    @rule(chunk_bytes=st.sampled_from([50, 300, 1 << 16]))
    def reader_stops_and_goes_on(self, chunk_bytes: int) -> None:
        self.tailer.close()
        self.tailer = self.log.tailer(dict(self.reader.positions), chunk_bytes)

    @rule()
    def everything_good_is_read(self) -> None:
        self.reader.settle(self.tailer)
        assert self.tailer.error is None
        assert self.tailer.backfill_share is None
        on_disk = self.good_on_disk()
        assert on_disk <= self.reader.tokens()
        assert self.harmed or on_disk == self.reader.tokens()

    def good_on_disk(self) -> set[int]:
        found: set[int] = set()
        for segment in self.existing():
            data = self.log.file(segment).read_bytes()
            items = SegmentStream(Position(segment)).feed(data)
            found |= {item.members["token"] for item in items if isinstance(item, Record)}
        return found

    @invariant()
    def without_harm_there_are_faults_of_the_writer_only(self) -> None:
        if not self.harmed:
            assert set(self.reader.kinds()) <= {"torn", "damaged"}


TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = settings(
    max_examples=200, stateful_step_count=40, report_multiple_bugs=False
)
