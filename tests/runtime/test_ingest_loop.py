"""Reading a log for ring and history: a restart tells no loss that was none."""

from __future__ import annotations

from pathlib import Path

import pytest

from memwatch.agent.log import LogWriter
from memwatch.domain.clock import ManualClock
from memwatch.runtime.guard.history import History
from memwatch.runtime.guard.ingest_loop import IngestLoop
from memwatch.runtime.guard.own_log import OwnLog
from memwatch.runtime.views.ring import Ring
from tests.builders import M0_US, T0_US, profile

S = 1_000_000


class Bench:
    """A run directory with a log of several segments, and guards that come and go."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock(T0_US, M0_US)
        self.run_dir = folder / "run"
        self.wal_dir = self.run_dir / "wal"
        self.home = folder / "home"
        self.home.mkdir()

    def write(self, *texts: str) -> None:
        """Write a segment."""
        log = LogWriter(self.wal_dir, clock=self.clock, durability="os")
        for text in texts:
            log.append("note", {"text": text})
            self.clock.advance_s(1)
        log.close()

    def prune(self, count: int) -> None:
        for path in sorted(self.wal_dir.glob("*.wal"))[:count]:
            path.unlink()

    def guard(self) -> Ring:
        """Let a guard read everything there is, as at its start, and end."""
        ring = Ring(profile(), self.clock, "boot")
        history = History(self.home / "history.duckdb", self.clock)
        own = OwnLog(self.home / "wal", history.historian)
        loop = IngestLoop(self.run_dir, own, ring, history.historian, lambda: None)
        history.start()
        try:
            loop.open()
            loop.read_present()
            while loop._read_older():
                pass
            loop.stop()
        finally:
            history.close()
        return ring


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def pruned(ring: Ring) -> list[str]:
    return [e.text for e in ring.events(0, 99) if e.kind == "fault" and "pruned" in e.text]


def test_what_an_earlier_guard_has_read_is_not_told_as_a_loss(bench: Bench) -> None:
    bench.write("a", "b")
    bench.write("c")
    assert pruned(bench.guard()) == []
    bench.prune(1)
    bench.write("d")
    again = bench.guard()
    assert pruned(again) == []
    assert [e.text for e in again.events(0, 99, ("note",))] == ["d"], "the rest is past"
    assert again.state.records == 2, "what is on disk is read anew"


def test_the_true_hole_is_told_and_only_once(bench: Bench) -> None:
    bench.write("a", "b")
    bench.guard()
    bench.write("c", "d")
    bench.write("e")
    bench.prune(2)
    (told,) = pruned(bench.guard())
    assert "lsn 3 to 4" in told
    assert pruned(bench.guard()) == []


def test_one_batch_that_cannot_be_folded_costs_the_others_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("a")
    take = Ring.take
    calls: list[int] = []

    def fail(self: Ring, *batch: object, **options: object) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise ArithmeticError("a defect of ours")
        take(self, *batch, **options)  # type: ignore[arg-type]  # handed on as they came

    monkeypatch.setattr(Ring, "take", fail)
    ring = Ring(profile(), bench.clock, "boot")
    history = History(bench.home / "history.duckdb", bench.clock)
    own = OwnLog(bench.home / "wal", history.historian)
    loop = IngestLoop(bench.run_dir, own, ring, history.historian, lambda: None)
    history.start()
    loop.open()
    with pytest.raises(ArithmeticError):
        loop.read_present()
    bench.write("b")
    loop.read_present()
    loop.stop()
    history.historian.flush()
    assert [e.text for e in ring.events(0, 9)] == ["b"]
    stored = history.events(0, T0_US + 99 * S, 9)
    assert [e.text for e in stored] == ["a", "b"], "the history has both"
    history.close()
