"""Nothing is sent that was not written down, and a guard that begins again repeats nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memwatch.agent.log import LogWriter
from memwatch.config.policy import Action, Enter, LevelRule, Levels, Policy
from memwatch.domain.clock import ManualClock
from memwatch.domain.command import Command, CommandInfo
from memwatch.domain.level import EngineMode
from memwatch.domain.record import Record
from memwatch.engine.facts import Facts, Now, ResourceFacts
from memwatch.engine.tick import tick
from memwatch.ingest.tailer import LogTailer
from memwatch.runtime.guard.recorder import RETRY_US, Recorder
from memwatch.runtime.guard.warden import Warden
from tests.faults.failing_files import FailingFiles

BOOT = "boot-now"
LIMIT = 1000.0
CHECKPOINT, PURGE = Action(op="checkpoint"), Action(op="purge", args={"how": "expired"})
POLICY = Policy(
    enter=Enter(warn_s=1.0, intervene_s=1.0, samples=2),
    levels=Levels(warn=LevelRule(steps=(CHECKPOINT, PURGE))),
)


class Bench:
    """A warden over facts that the test states, and a ledger that only listens."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "wal"
        self.clock = ManualClock()
        self.files = FailingFiles()
        self.used = 100.0
        self.mode: EngineMode = "act"
        self.answered: dict[str, CommandInfo] = {}
        self.sent: list[Command] = []
        self.shouts: list[str] = []
        self.begin()

    def begin(self) -> None:
        """Begin a guard; what the one before it wrote is there."""
        self.recorder = Recorder(self.folder, self.clock, self._log)
        self.told: list[Record] = []
        self.warden = Warden(self._facts, self.recorder, self.clock, BOOT)
        self.warden.send = self._send
        self.warden.tell = self.told.append
        self.warden.shout = self.shouts.append

    def look(self, used: float | None = None) -> None:
        self.clock.advance_s(1)
        self.used = self.used if used is None else used
        self.warden.look()

    def kinds(self) -> list[str]:
        return [record.kind for record in self.told]

    def records(self) -> list[Record]:
        tailer = LogTailer(self.folder, "guard")
        found = [record for batch in tailer.poll() for record in batch.records]
        while (older := tailer.backfill()) is not None:
            found += older.records
        tailer.close()
        return sorted(found, key=lambda record: record.lsn)

    def _facts(self, now: Now) -> tuple[Facts, Policy]:
        memory = ResourceFacts(
            name="memory", used=self.used, limit=LIMIT, limit_name="cgroup", measured_m_us=now.m_us
        )
        ops = frozenset({"checkpoint", "purge", "pause", "reclaim"})
        facts = Facts(
            mode=self.mode,
            allow=ops,
            ops=ops,
            start_id="s1",
            resources=(memory,),
            commands=self.answered,
        )
        return facts, POLICY

    def _send(self, command: Command) -> None:
        """Take a request; it is in the log by then."""
        written = [record.kind for record in self.records()]
        assert "plan" in written
        assert "engine.state" in written
        self.sent.append(command)
        self.answered[command.id] = CommandInfo(
            id=command.id, op=command.op, state="asked", asked_us=1, changed_us=1
        )

    def _log(self) -> LogWriter:
        return LogWriter(self.folder, clock=self.clock, files=self.files, durability="os")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def until_sent(bench: Bench, used: float = 650.0) -> Command:
    for _ in range(5):
        bench.look(used)
        if bench.sent:
            return bench.sent[-1]
    raise AssertionError("nothing was sent")


def test_a_step_is_sent_once_it_is_in_the_log(bench: Bench) -> None:
    command = until_sent(bench)
    assert (command.op, command.origin, command.by) == ("checkpoint", "engine", "engine")
    assert command.id == f"{command.plan}.0"
    assert command.why.startswith("memory 65.0% of 1.0k (cgroup)")
    assert command.ttl_us == round(CHECKPOINT.patience_s * 1e6)
    written = {record.kind: record for record in bench.records()}
    assert written["level"].members["share"] == 0.65
    assert written["level"].members["level"] == "warn"
    assert [step["op"] for step in written["plan"].members["steps"]] == ["checkpoint", "purge"]
    assert bench.warden.standing is not None
    assert bench.warden.standing.level == "warn"
    bench.look()
    assert len(bench.sent) == 1, "it waits for the answer"


def test_what_cannot_be_written_down_is_not_done(bench: Bench) -> None:
    bench.look()
    bench.files.fail_all("write", "open")
    for _ in range(10):
        bench.look(650.0)
    assert bench.sent == []
    assert "No space" in bench.warden.unwritten
    assert bench.warden.standing is not None
    assert bench.warden.standing.level == "warn", "it is seen all the same"
    assert "plan" not in bench.kinds()
    bench.files.heal()
    bench.clock.advance_s(RETRY_US / 1e6)
    until_sent(bench)
    assert bench.warden.unwritten == ""
    assert bench.kinds().count("plan") == 1


def test_a_shadow_sends_nothing_and_says_what_it_would(bench: Bench) -> None:
    bench.mode = "shadow"
    for _ in range(5):
        bench.look(650.0)
    assert bench.sent == []
    plans = [record.members for record in bench.records() if record.kind == "plan"]
    assert plans
    assert all(plan["dry"] for plan in plans)


def test_the_next_guard_goes_on_with_the_plan_and_repeats_no_step(bench: Bench) -> None:
    first = until_sent(bench)
    states = [record for record in bench.records() if record.kind == "engine.state"]
    bench.recorder.close()
    bench.begin()
    assert bench.warden.restore(states[-1:]) == ""
    bench.look()
    bench.look()
    assert bench.sent == [first]
    bench.answered[first.id] = CommandInfo(
        id=first.id, op=first.op, state="done", asked_us=1, changed_us=2
    )
    bench.look()
    assert [command.id for command in bench.sent] == [first.id, f"{first.plan}.1"]


def plan_record(lsn: int, name: str, state: str) -> Record:
    """Return a record as it is read: with the members of its line."""
    members = {"id": name, "level": "warn", "state": state, "why": "so"}
    own = {"lsn": lsn, "t": 1, "m": 1, "k": "plan", "crc": "0"}
    return Record(lsn, 1, 1, "plan", own | members)


def test_a_plan_that_no_guard_goes_on_with_has_an_end_on_record(bench: Bench) -> None:
    """Killed between two records of one tick, or begun in another boot."""
    until_sent(bench)
    plan = bench.sent[0].plan
    (*_, state) = (record for record in bench.records() if record.kind == "engine.state")
    bench.begin()
    told = [
        plan_record(state.lsn - 1, "old-warn", "running"),
        plan_record(state.lsn - 1, "over-warn", "done"),
        plan_record(state.lsn - 1, plan, "asked"),
        plan_record(state.lsn + 1, "new-hard", "asked"),
    ]
    bench.warden.restore([state], told)
    ends = {r.text("id"): (r.text("state"), r.text("detail")) for r in bench.told}
    assert ends == {
        "old-warn": ("unknown", "its guard ended"),
        "new-hard": ("expired", "its guard ended before it asked for anything"),
    }
    assert bench.told[0].text("why") == "so"


@pytest.mark.parametrize("state", [None, [], {"levels": 5}, {"plan": {"id": "x"}}])
def test_a_state_that_cannot_be_read_begins_anew_and_is_said(bench: Bench, state: object) -> None:
    record = Record(1, 1, 1, "engine.state", {"state": state, "boot": BOOT})
    assert "begin anew" in bench.warden.restore([record])
    bench.look()
    assert bench.warden.level == "normal"


@pytest.mark.parametrize("times", [1, 2])
def test_an_engine_that_stumbles_over_what_it_remembers_goes_on_without_it(
    bench: Bench, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    until_sent(bench)
    left = [times]

    def stumbling(*given: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise IndexError
        return tick(*given)

    monkeypatch.setattr("memwatch.runtime.guard.warden.tick", stumbling)
    for _ in range(times):
        with pytest.raises(IndexError):
            bench.look()
    bench.look(900.0)
    assert bench.warden.standing is not None
    assert bench.warden.standing.plan is not None
    assert bench.warden.standing.plan.level == "emergency"


def test_it_looks_more_often_the_higher_the_level(bench: Bench) -> None:
    bench.look()
    assert bench.warden.period_s == 0
    until_sent(bench)
    assert bench.warden.period_s == 1.0
    for _ in range(3):
        bench.look(800.0)
    assert bench.warden.period_s == 0.5


def test_what_is_remembered_is_written_when_it_changed_and_each_ten_minutes(bench: Bench) -> None:
    bench.look()
    for _ in range(30):
        bench.look()
    before = len(bench.records())
    bench.clock.advance_s(600)
    bench.look()
    assert len(bench.records()) == before + 1


def test_its_thread_begins_with_a_state_and_ends(bench: Bench) -> None:
    bench.warden.start()
    bench.warden.hear()
    bench.warden.stop()
    assert bench.records()[0].kind == "engine.state"


def test_a_plan_that_waits_for_a_person_has_a_name(bench: Bench) -> None:
    bench.mode = "ask"
    for _ in range(5):
        bench.look(650.0)
    assert bench.sent == []
    assert bench.warden.waiting_plan.endswith("-warn")
