"""A guard that begins goes on with the requests and the engine of the one before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from memwatch.agent.control.spool import Spool as AgentSpool
from memwatch.agent.files import SYSTEM_FILES
from memwatch.agent.log import LogWriter
from memwatch.domain.clock import ManualClock
from memwatch.domain.command import Command, CommandInfo
from memwatch.runtime.guard.ledger import GRACE_US, Ledger
from memwatch.runtime.guard.recollection import recollect
from memwatch.runtime.guard.recorder import Recorder
from memwatch.wal.spool_format import DEADLINE_US, TTL_US, Ack
from tests.actuators.native_run import RUN_ID, a_native_run

CHECKPOINT = Command(op="checkpoint", origin="operator", args={"kind": "full"})


class Bench:
    """Guards that come and go over one log and one spool."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = ManualClock()
        self.actuator = a_native_run(folder, self.clock)
        self.agent = AgentSpool(folder / "control", SYSTEM_FILES)
        self.begin()

    def begin(self) -> None:
        """Begin a guard; the one before it was killed."""
        wal = self.folder / "wal"
        self.recorder = Recorder(wal, self.clock, lambda: LogWriter(wal, clock=self.clock))
        self.known = recollect(wal, self.clock.wall_us())
        self.ledger = Ledger(self.actuator, self.recorder, self.clock)
        self.ledger.serve("note", lambda _: "")
        self.ledger.restore(self.known.requests)

    def restart(self, away_s: float = 3.0) -> None:
        self.recorder.close()
        self.clock.advance_s(away_s)
        self.begin()

    def info(self) -> CommandInfo:
        return list(self.ledger.commands().values())[-1]

    def answer(self, state: str) -> None:
        self.agent.write_ack(Ack(id=self.info().id, run_id=RUN_ID, seq=1, state=state))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_an_answer_that_comes_while_no_guard_is_there_is_found(bench: Bench) -> None:
    bench.ledger.submit(CHECKPOINT)
    asked = bench.info()
    bench.answer("done")
    bench.restart()
    assert bench.info() == asked
    assert bench.ledger.follow({}, alive=True)
    assert (bench.info().state, bench.info().asked_us) == ("done", asked.asked_us)
    bench.restart()
    assert bench.info().state == "done", "and told once"
    assert not bench.ledger.waiting


def test_the_time_a_request_waits_goes_on_without_a_guard(bench: Bench) -> None:
    bench.ledger.submit(CHECKPOINT)
    bench.restart((TTL_US + GRACE_US) / 1e6 - 1)
    assert not bench.ledger.follow({}, alive=True)
    bench.clock.advance_s(2)
    assert bench.ledger.follow({}, alive=True)
    assert bench.info().state == "expired"


def test_what_the_guard_itself_was_to_do_is_not_done_later(bench: Bench) -> None:
    members = {"id": "a1", "op": "note", "state": "accepted", "detail": "", "origin": "operator"}
    bench.recorder.append("intervention", members)
    bench.restart()
    assert (bench.info().op, bench.info().state) == ("note", "unknown")


def test_requests_of_long_ago_and_garbage_are_forgotten(bench: Bench) -> None:
    bench.ledger.submit(CHECKPOINT)
    bench.restart(2 * (TTL_US + DEADLINE_US) / 1e6 + 1)
    assert bench.ledger.commands() == {}
    for members in ({}, {"id": "x", "state": "flying"}, {"id": 5, "state": "asked"}):
        bench.recorder.append("intervention", members)
    bench.restart()
    assert bench.ledger.commands() == {}


def test_the_engine_goes_on_from_its_newest_state(bench: Bench) -> None:
    assert (bench.known.state, bench.known.modes, bench.known.epoch) == ([], [], 0)
    for epoch, level in ((7, "warn"), (8, "intervene")):
        bench.recorder.append("guard.begin", {"epoch": epoch})
        bench.recorder.append("engine.mode", {"mode": "act"})
        bench.recorder.append("engine.state", {"state": {"least": level}})
    for _ in range(3):
        bench.restart(3600)
        (state,) = bench.known.state
        assert state.members["state"] == {"least": "intervene"}, "however long ago"
        assert len(bench.known.modes) == 2
        assert bench.known.epoch == 8
        bench.recorder.append("probe", {"rss_bytes": 5})
