"""What the history refused it gets later: nothing lost, nothing twice, whatever happens between."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memwatch.agent.log import LogWriter
from memwatch.domain.clock import ManualClock
from memwatch.domain.errors import StoreError
from memwatch.ingest.tailer import LogTailer
from memwatch.runtime.guard.history_feed import HistoryFeed
from memwatch.store.database import Database
from memwatch.store.historian import Bounds, Historian
from memwatch.store.reader import Reader

FAR_US = 1 << 60
ROOMY = Bounds(reserve_bytes=0)


class Bench:
    """A log that is written, followed, and fed into a history that may refuse."""

    def __init__(self, folder: Path, bounds: Bounds = ROOMY) -> None:
        self.clock = ManualClock()
        self.wal = folder / "wal"
        self.log = LogWriter(self.wal, clock=self.clock, durability="os")
        self.historian = Historian(folder / "history.duckdb", self.clock, 3600.0, bounds)
        self.historian.start()
        self.tailer = LogTailer(self.wal, "agent")
        self.feed = HistoryFeed(self.historian, "agent", self.wal)
        self.written = 0

    def write(self, count: int) -> None:
        for _ in range(count):
            self.written += 1
            self.clock.advance_s(1)
            self.log.append("note", {"text": f"note {self.written}"})

    def pass_once(self) -> None:
        """Do what the ingest thread does in one pass."""
        batches = self.tailer.poll()
        if not batches and not self.tailer.more:
            older = self.tailer.backfill()
            batches = [older] if older else []
        for batch in batches:
            self.feed.offer(batch)
        self.feed.catch_up()

    def settle(self) -> None:
        for _ in range(60):
            self.historian.flush()
            self.pass_once()

    def stored(self) -> list[str]:
        events = Reader(self.historian.database).events(0, FAR_US, 10**6)
        return [event.text for event in events]

    def expected(self) -> list[str]:
        return [f"note {number}" for number in range(1, self.written + 1)]

    def close(self) -> None:
        self.tailer.close()
        self.log.close()
        self.historian.close()


def test_it_hands_over_what_the_live_reader_gave(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.write(5)
    bench.pass_once()
    bench.historian.flush()
    assert bench.stored() == bench.expected()
    assert not bench.feed.catch_up(), "there was nothing to catch up with"
    bench.close()


def test_a_full_intake_is_caught_up_with(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Bounds(reserve_bytes=0, pending_rows=10))
    for _ in range(6):
        bench.write(8)
        bench.pass_once()
    bench.settle()
    assert bench.stored() == bench.expected()
    bench.close()


ACTIONS = st.lists(
    st.sampled_from(["write", "roll", "pass", "flush", "break", "mend"]), min_size=5, max_size=40
)


@settings(max_examples=20)
@given(ACTIONS)
def test_no_loss_and_no_repetition_whatever_fails_in_between(actions: list[str]) -> None:
    patch = pytest.MonkeyPatch()
    with tempfile.TemporaryDirectory(prefix="mw-") as folder:
        bench = Bench(Path(folder), Bounds(reserve_bytes=0, pending_rows=12))
        for action in actions:
            match action:
                case "write":
                    bench.write(7)
                case "roll":
                    bench.log.roll()
                case "pass":
                    bench.pass_once()
                case "flush":
                    bench.historian.flush()
                case "break":
                    patch.setattr(Database, "write", _refuse)
                case _:
                    patch.undo()
        patch.undo()
        bench.write(1)
        bench.settle()
        assert bench.stored() == bench.expected()
        bench.close()


def test_a_reader_that_catches_up_gives_its_files_back(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Bounds(reserve_bytes=0, pending_rows=3))
    bench.write(8)
    bench.pass_once()
    bench.write(8)
    bench.pass_once()
    bench.settle()
    assert bench.feed._reader is None
    assert bench.stored() == bench.expected()
    bench.close()


def _refuse(*_: object) -> None:
    raise StoreError("the disk is full")
