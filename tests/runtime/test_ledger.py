"""Requests: only evidence moves them, asked is never done, an end never changes."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from memwatch.agent.control.spool import Spool as AgentSpool
from memwatch.agent.files import SYSTEM_FILES
from memwatch.agent.log import LogWriter
from memwatch.domain.clock import ManualClock
from memwatch.domain.command import FINAL_STATES, Command, CommandInfo
from memwatch.domain.errors import SessionError
from memwatch.domain.record import Record
from memwatch.runtime.guard.ledger import (
    GRACE_US,
    MOST_IN_FLIGHT,
    SHOWN,
    Ledger,
)
from memwatch.runtime.guard.recorder import Recorder
from memwatch.wal.spool_format import DEADLINE_US, TTL_US, Ack, CommandFile
from tests.actuators.native_run import a_native_run
from tests.faults.failing_files import FailingFiles

RUN_ID = "run-1"
OPS: dict[str, Any] = {"checkpoint": {}, "leak": {}}
CHECKPOINT = Command(op="checkpoint", origin="operator")
SAID = ("accepted", "running", "done", "refused", "failed", "expired")
GIVEN_UP_S = (TTL_US + DEADLINE_US + GRACE_US) / 1e6 + 1


class Bench:
    """A ledger between a recorder and a real spool."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.files = FailingFiles()
        self.agent = AgentSpool(folder / "control", SYSTEM_FILES)
        self.told: list[Record] = []
        log = LogWriter(folder / "wal", clock=self.clock, files=self.files, durability="os")
        self.recorder = Recorder(folder / "wal", self.clock, lambda: log)
        self.ledger = Ledger(
            a_native_run(folder, self.clock, OPS), self.recorder, self.clock, tell=self.told.append
        )
        self._seq = 0

    def info(self, name: str) -> CommandInfo:
        return next(one for one in self.ledger.newest() if one.id == name)

    def commands(self) -> list[CommandFile]:
        return [self.agent.read("new", name)[0] for name in self.agent.names("new")]

    def answer(self, name: str, state: str, detail: str = "") -> None:
        self._seq += 1
        self.agent.write_ack(
            Ack(
                id=name,
                run_id=RUN_ID,
                seq=self._seq,
                state=state,
                wall_us=0,
                boot_us=0,
                pid=1,
                detail=detail,
            )
        )

    def states(self, name: str) -> list[str]:
        """Return the states of a request as they were recorded."""
        return [r.members["state"] for r in self.told if r.members["id"] == name]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_request_is_recorded_before_it_is_handed_over(bench: Bench) -> None:
    bench.files.fail_all("write")
    name = bench.ledger.submit(CHECKPOINT)
    assert bench.told[0].lsn == 0, "a disk that refuses stops no request"
    assert bench.info(name).state == "asked"
    (command,) = bench.commands()
    assert (command.id, command.op) == (name, "checkpoint")


def test_from_asked_to_done(bench: Bench) -> None:
    name = bench.ledger.submit(CHECKPOINT)
    assert bench.ledger.waiting
    assert not bench.ledger.follow({}, alive=True), "nobody answered"
    for state in ("accepted", "running", "done"):
        bench.clock.advance_s(1)
        bench.answer(name, state, f"{state} it is")
        assert bench.ledger.follow({}, alive=True)
        assert bench.info(name).state == state
        assert bench.info(name).detail == f"{state} it is"
        assert bench.info(name).changed_us == bench.clock.wall_us()
    assert not bench.ledger.waiting
    assert bench.states(name) == ["asked", "accepted", "running", "done"]


def test_the_log_may_be_faster_than_the_spool(bench: Bench) -> None:
    name = bench.ledger.submit(CHECKPOINT)
    bench.answer(name, "running")
    assert bench.ledger.follow({name: ("done", "300 MB", 5)}, alive=True)
    assert bench.info(name).state == "done"
    assert bench.info(name).detail == "300 MB"


def test_the_log_alone_is_enough(bench: Bench) -> None:
    name = bench.ledger.submit(CHECKPOINT)
    for state in ("accepted", "running", "failed"):
        bench.ledger.follow({name: (state, "", 5)}, alive=True)
    assert bench.states(name) == ["asked", "accepted", "running", "failed"]


@pytest.mark.parametrize("state", ["", "ok", "proposed", "asked", "unknown", "\x1b[31mdone"])
def test_a_word_that_no_agent_says_moves_nothing(bench: Bench, state: str) -> None:
    name = bench.ledger.submit(CHECKPOINT)
    bench.answer(name, state)
    assert not bench.ledger.follow({name: (state, "", 5)}, alive=True)
    assert bench.info(name).state == "asked"


def test_what_an_agent_answers_is_inert_on_screen(bench: Bench) -> None:
    name = bench.ledger.submit(CHECKPOINT)
    bench.answer(name, "failed", "\x1b]0;gotcha\x07" + "x" * 500)
    bench.ledger.follow({}, alive=True)
    detail = bench.info(name).detail
    assert "\x1b" not in detail
    assert len(detail) <= 120


def test_nobody_answers_and_it_expires(bench: Bench) -> None:
    name = bench.ledger.submit(CHECKPOINT)
    bench.clock.advance_s((TTL_US + GRACE_US) / 1e6)
    assert not bench.ledger.follow({}, alive=True)
    bench.clock.advance_s(1)
    assert bench.ledger.follow({}, alive=True)
    assert bench.info(name).state == "expired"
    assert bench.info(name).detail == "the agent did not answer"


def test_a_step_of_the_wall_clock_expires_nothing(bench: Bench) -> None:
    name = bench.ledger.submit(CHECKPOINT)
    for step_s in (86_400, -2 * 86_400):
        bench.clock.step_wall_s(step_s)
        assert not bench.ledger.follow({}, alive=True)
    assert bench.info(name).state == "asked"


def test_one_that_began_and_never_ended_is_unknown(bench: Bench) -> None:
    name = bench.ledger.submit(CHECKPOINT)
    bench.answer(name, "running")
    bench.ledger.follow({}, alive=True)
    bench.clock.advance_s(TTL_US / 1e6 + 60)
    assert not bench.ledger.follow({}, alive=True), "it may take its time"
    bench.clock.advance_s(GIVEN_UP_S)
    bench.ledger.follow({}, alive=True)
    assert bench.info(name).state == "unknown"


def test_of_a_dead_agent_is_said_what_it_answered_what_is_not_known_and_what_never_began(
    bench: Bench,
) -> None:
    unread = bench.ledger.submit(CHECKPOINT)
    claimed = bench.ledger.submit(CHECKPOINT)
    bench.agent.claim(f"1-{claimed}.json")
    answered = bench.ledger.submit(CHECKPOINT)
    bench.answer(answered, "done")
    bench.ledger.follow({}, alive=False)
    assert (bench.info(unread).state, bench.info(claimed).state) == ("expired", "unknown")
    assert "taken back" in bench.info(unread).detail
    assert "not known" in bench.info(claimed).detail
    assert bench.info(answered).state == "done"
    assert f"1-{unread}.json" not in bench.agent.names("new"), "the next start does not do it"


@pytest.mark.parametrize(
    ("op", "alive", "words"),
    [("fly", True, "does not offer 'fly'"), ("checkpoint", False, "not running")],
)
def test_what_nobody_can_do_is_refused_and_not_recorded(
    bench: Bench, op: str, alive: bool, words: str
) -> None:
    with pytest.raises(SessionError, match=words):
        bench.ledger.submit(Command(op=op), alive=alive)
    assert bench.told == []
    assert bench.agent.names("new") == []
    assert bench.ledger.newest() == ()


def test_a_refusal_names_the_operation_inertly(bench: Bench) -> None:
    with pytest.raises(SessionError) as caught:
        bench.ledger.submit(Command(op="\x1b[31m\u202efly"))
    assert str(caught.value).isprintable()


def test_a_spool_that_cannot_be_written_fails_the_request(bench: Bench) -> None:
    os.rename(bench.agent.path / "new", bench.agent.path / "gone")  # noqa: PTH104 -- as rm would
    name = bench.ledger.submit(CHECKPOINT)
    assert bench.info(name).state == "failed"
    assert "cannot be handed over" in bench.info(name).detail
    assert bench.states(name) == ["asked", "failed"]


def test_the_guard_does_its_own_operations(bench: Bench) -> None:
    served: list[Command] = []

    def serve(command: Command) -> str:
        served.append(command)
        return ""

    bench.ledger.serve("note", serve)
    bench.ledger.serve("guard.stop", lambda _: "it does not want to")
    note = bench.ledger.submit(Command(op="note", args={"text": "hi"}), alive=False)
    stop = bench.ledger.submit(Command(op="guard.stop"), alive=False)
    assert served[0].args == {"text": "hi"}
    assert bench.states(note) == ["accepted", "done"], "nobody else is asked"
    assert bench.info(stop).state == "failed"
    assert bench.info(stop).detail == "it does not want to"
    assert bench.agent.names("new") == []


def test_an_agent_cannot_take_an_operation_of_the_guard(bench: Bench) -> None:
    bench.ledger.serve("note", lambda _: "")
    bench.ledger.submit(Command(op="note"))
    assert bench.agent.names("new") == []


def test_too_many_in_flight_are_refused_and_none_is_forgotten(bench: Bench) -> None:
    names = [bench.ledger.submit(CHECKPOINT) for _ in range(MOST_IN_FLIGHT)]
    with pytest.raises(SessionError, match="wait for the agent"):
        bench.ledger.submit(CHECKPOINT)
    bench.answer(names[0], "done")
    bench.ledger.follow({}, alive=True)
    assert bench.states(names[0])[-1] == "done"
    bench.ledger.submit(CHECKPOINT)


def test_the_newest_few_are_shown(bench: Bench) -> None:
    bench.ledger.serve("note", lambda _: "")
    names = [bench.ledger.submit(Command(op="note")) for _ in range(3 * SHOWN)]
    assert [one.id for one in bench.ledger.newest()] == names[-SHOWN:]


class LedgerMachine(RuleBasedStateMachine):
    """Requests, answers by spool and log, time, and the agent's death, in any order."""

    names: Bundle[str] = Bundle("names")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="mw-")
        self.bench = Bench(Path(self.folder.name))
        self.evidence: dict[str, set[str]] = {}
        self.logged: dict[str, Any] = {}
        self.finals: dict[str, str] = {}
        self.submitted_us: dict[str, int] = {}
        self.dead_seen: set[str] = set()

    def teardown(self) -> None:
        self.bench.recorder.close()
        self.folder.cleanup()

    @rule(target=names, op=st.sampled_from(sorted(OPS)))
    def submit(self, op: str) -> str:
        if len(self._in_flight()) >= MOST_IN_FLIGHT:
            return next(iter(self.evidence))
        name = self.bench.ledger.submit(Command(op=op))
        self.evidence[name] = {"asked"}
        self.submitted_us[name] = self.bench.clock.boot_us()
        return name

    @rule(name=names, state=st.sampled_from(SAID))
    def answer_in_spool(self, name: str, state: str) -> None:
        self.bench.answer(name, state)
        self.evidence[name].add(state)

    @rule(name=names, state=st.sampled_from(SAID))
    def answer_in_log(self, name: str, state: str) -> None:
        self.logged[name] = (state, "", 1)
        self.evidence[name].add(state)

    @rule(seconds=st.sampled_from([0.1, 10.0, 70.0, GIVEN_UP_S]))
    def pass_time(self, seconds: float) -> None:
        self.bench.clock.advance_s(seconds)

    @rule(step_s=st.sampled_from([-5000.0, 5000.0]))
    def step_the_clock(self, step_s: float) -> None:
        self.bench.clock.step_wall_s(step_s)

    @rule(alive=st.booleans())
    def follow(self, alive: bool) -> None:
        if not alive:
            self.dead_seen |= set(self._in_flight())
        self.bench.ledger.follow(self.logged, alive)

    @invariant()
    def only_evidence_moved_states(self) -> None:
        for name in self.evidence:
            states = self.bench.states(name)
            last = states[-1]
            waited_us = self.bench.clock.boot_us() - self.submitted_us[name]
            if last == "unknown":
                assert name in self.dead_seen or waited_us > TTL_US
            elif last == "expired":
                gone = name in self.dead_seen
                assert "expired" in self.evidence[name] or waited_us > TTL_US or gone
            else:
                assert last in self.evidence[name]

    @invariant()
    def an_end_never_changes(self) -> None:
        for name in self.evidence:
            states = self.bench.states(name)
            ends = [state for state in states if state in FINAL_STATES]
            assert len(ends) <= 1
            assert not ends or states[-1] == ends[0]
            assert states == list(dict.fromkeys(states)), "and none comes twice"
            assert self.finals.setdefault(name, states[-1]) == states[-1] or not ends
            if not ends:
                del self.finals[name]

    @invariant()
    def what_is_shown_is_what_was_recorded(self) -> None:
        for info in self.bench.ledger.newest():
            assert info.state == self.bench.states(info.id)[-1]

    def _in_flight(self) -> list[str]:
        return [n for n in self.evidence if self.bench.states(n)[-1] not in FINAL_STATES]


LedgerMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
TestLedgerMachine = LedgerMachine.TestCase
