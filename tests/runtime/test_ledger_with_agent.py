"""Ledger, actuator and a real agent: plans as the engine hands them over, step by step."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memwatch.actuators.native import NativeActuator
from memwatch.agent import Run, RunOptions
from memwatch.domain.clock import SystemClock
from memwatch.domain.command import Command, CommandInfo
from memwatch.domain.record import Record
from memwatch.runtime.guard.ledger import Ledger
from memwatch.runtime.guard.recorder import Recorder
from memwatch.wal.manifest import parse_run
from tests.waiting import until

OPTIONS = RunOptions(agent="tester", sample_s=3600.0)
CLOCK = SystemClock()


class Watched:
    """A run with an agent that works, and a guard's ledger for it."""

    def __init__(self, folder: Path) -> None:
        self.run = Run.open(folder / "run", OPTIONS)
        ops = parse_run((self.run.path / "run.json").read_bytes()).ops
        self.told: list[Record] = []
        self.recorder = Recorder(folder / "wal", CLOCK)
        actuator = NativeActuator(self.run.path, self.run.id, ops, CLOCK)
        actuator.claim_epoch()
        self.ledger = Ledger(actuator, self.recorder, CLOCK, self.told.append)
        self.rest = threading.Event()
        self.stop = threading.Event()
        self.resting = False
        self.ended: list[str] = []
        self._thread = threading.Thread(target=self._work, name="agent", daemon=True)
        self._thread.start()

    def ask(self, command_id: str, op: str, **args: Any) -> None:
        plan = command_id.partition(".")[0]
        self.ledger.submit(Command(op=op, id=command_id, origin="engine", plan=plan, args=args))

    def info(self, command_id: str) -> CommandInfo:
        self.ledger.follow({}, alive=True)
        return self.ledger.command(command_id)

    def until(self, command_id: str, *states: str) -> CommandInfo:
        until(lambda: self.info(command_id).state in states)
        return self.info(command_id)

    def close(self) -> None:
        self.stop.set()
        for hold in (self.run.path / "control" / "hold").iterdir():
            hold.unlink(missing_ok=True)
        self._thread.join(20)
        self.run.close()
        self.recorder.close()

    def _work(self) -> None:
        while not self.stop.is_set():
            with self.run.experiment("try") as experiment:
                self.resting = self.rest.is_set()
                while self.rest.is_set() and not self.stop.is_set():
                    with self.run.step("think"):  # between steps only an abort is looked for
                        self.stop.wait(0.005)
                self.resting = False
                self.run.tiers["workspace"].put("note", "x" * 1000)
            self.ended.append(experiment.status)
            self.run.safe_point()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path)
    yield made
    made.close()


def test_the_plan_of_intervene_from_pause_to_resume(watched: Watched) -> None:
    watched.ask("p1.0", "pause")
    watched.until("p1.0", "done")
    until(lambda: watched.run.mode == "paused")
    count = watched.run.experiments
    for n, (op, args) in enumerate(
        [("checkpoint", {"kind": "full"}), ("purge", {"how": "compress"}), ("reclaim", {})], 1
    ):
        watched.ask(f"p1.{n}", op, **args)
        assert watched.until(f"p1.{n}", "done", "failed").state == "done"
    assert watched.run.experiments == count, "no experiment began meanwhile"
    watched.ask("p1.9", "resume", owner="engine")
    assert watched.until("p1.9", "done").result == {"mode": "running"}
    until(lambda: watched.run.experiments > count)
    course = [(r.members["id"], r.members["state"]) for r in watched.told]
    assert course[0] == ("p1.0", "asked")
    assert course.index(("p1.1", "done")) < course.index(("p1.2", "asked"))
    assert all(record.lsn for record in watched.told)


def test_an_emergency_waits_for_no_step_of_a_lower_plan(watched: Watched) -> None:
    watched.rest.set()
    until(lambda: watched.resting)
    watched.ask("p1.0", "purge")
    watched.until("p1.0", "accepted")
    assert not watched.ledger.withdraw("p1.0", "pre-empted by emergency")
    watched.ask("p2.0", "abort_experiment", save="none")
    until(lambda: "aborted" in watched.ended)
    watched.rest.clear()
    done = watched.until("p2.0", "done", "failed")
    assert done.state == "done"
    assert watched.until("p1.0", "done", "refused").state == "done"
    assert not watched.stop.is_set(), "the agent lives on"


def test_a_person_and_the_engine_hold_the_agent_apart(watched: Watched) -> None:
    watched.ask("p1.0", "pause")
    watched.ledger.submit(Command(op="pause", id="t1", by="tui"))
    watched.until("p1.0", "done")
    watched.until("t1", "done")
    watched.ask("p1.1", "resume", owner="engine")
    assert watched.until("p1.1", "done").detail == "released; still held: pause by tui"
    assert watched.run.mode in ("draining", "paused")
    watched.ledger.submit(Command(op="resume", id="t2", by="tui"))
    watched.until("t2", "done")
    until(lambda: watched.run.mode == "running")
