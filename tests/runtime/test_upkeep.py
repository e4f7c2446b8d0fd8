"""What people let the engine do is written down before it counts, and outlives the guard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memwatch.agent.log import LogWriter
from memwatch.config.load import named_profile
from memwatch.config.settings import Budget
from memwatch.domain.clock import ManualClock
from memwatch.domain.command import Command
from memwatch.domain.record import Record
from memwatch.runtime.guard.authority import STOP_FILE, Authority
from memwatch.runtime.guard.budget import SelfLimits
from memwatch.runtime.guard.controls import Controls
from memwatch.runtime.guard.ledger import Ledger
from memwatch.runtime.guard.policy_keeper import PolicyKeeper
from memwatch.runtime.guard.portrait import Portrait
from memwatch.runtime.guard.probe_loop import ProbeLoop
from memwatch.runtime.guard.recorder import Recorder
from memwatch.runtime.guard.reserve import DiskReserve
from memwatch.runtime.guard.upkeep import GRANT_AGAIN_US, Upkeep
from memwatch.runtime.guard.warden import Warden
from memwatch.runtime.guard.wishes import Wishes
from memwatch.runtime.views.facts import RunFacts
from memwatch.runtime.views.ring import Ring
from memwatch.store.historian import Historian
from tests.actuators.native_run import OPS, a_native_run
from tests.faults.failing_files import FailingFiles
from tests.runtime.watched import MANIFEST


class Bench:
    """All that upkeep keeps, over a run without an agent."""

    def __init__(self, folder: Path) -> None:
        self.home, self.run_dir, self.own = folder / "home", folder / "run", folder / "own"
        for path in (self.home, self.run_dir, self.own):
            path.mkdir()
        self.clock = ManualClock()
        self.files = FailingFiles()
        self.recorder = Recorder(self.own / "wal", self.clock, self._log)
        profile = named_profile("native")
        ring = Ring(profile, self.clock, "boot")
        self.actuator = actuator = a_native_run(self.run_dir, self.clock)
        actuator.claim_epoch(4)
        self.authority = Authority(self.home, self.clock)
        self.controls = Controls(
            actuator,
            self.authority,
            Ledger(actuator, self.recorder, self.clock),
            PolicyKeeper(profile, self.run_dir, self.own, None, frozenset(OPS) | {"pause"}),
            ProbeLoop(self.run_dir, self.own, profile, ring, self.recorder, self.clock),
            Wishes(self.clock),
        )
        self.reserve = DiskReserve(self.own)
        historian = Historian(self.own / "history.duckdb", self.clock)
        limits = SelfLimits(Budget(), historian, ring)
        self.upkeep = Upkeep(self.recorder, self.clock, self.controls, self.reserve, limits)
        self.told: list[Record] = []
        self.upkeep.tell = self.told.append
        run = RunFacts(path=str(self.run_dir), manifest=MANIFEST)
        self.portrait = Portrait(profile, run, ring, self.clock, self.controls)
        self.warden = Warden(self.portrait.facts, self.recorder, self.clock, "boot")

    def members(self, kind: str) -> list[dict[str, Any]]:
        return [record.members for record in self.told if record.kind == kind]

    def set_mode(self, **args: Any) -> str:
        return self.upkeep.set_mode(Command(op="engine.mode", args=args, by="ctl"))

    def will(self) -> str:
        self.warden.look()
        return self.portrait.engine(self.warden).will

    def _log(self) -> LogWriter:
        return LogWriter(self.own / "wal", clock=self.clock, files=self.files, durability="os")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return Bench(tmp_path)


def test_a_guard_that_begins_says_under_which_epoch_policy_and_mode(bench: Bench) -> None:
    bench.upkeep.begin("1.2")
    (begin,) = bench.members("guard.begin")
    assert begin == {"epoch": 5, "version": "1.2", "policy": "default", "mode": "shadow"}
    assert bench.reserve.held_bytes == 4_000_000


def test_a_grant_counts_once_it_is_written_down(bench: Bench) -> None:
    assert bench.set_mode(mode="act", allow=["checkpoint"]) == ""
    assert bench.authority.mode == "act"
    (grant,) = bench.members("engine.mode")
    assert (grant["mode"], grant["allow"], grant["by"]) == ("act", ("checkpoint",), "ctl")
    bench.files.fail_all("write", "open")
    bench.recorder.append("note", {})
    assert "not let act" in bench.set_mode(mode="act")
    assert bench.authority.allow == {"checkpoint"}, "the grant before it stays"
    assert bench.set_mode(mode="off") == "", "to lower it is always possible"
    assert bench.authority.grant.mode == "off"


def test_what_is_no_mode_is_refused_with_the_reason(bench: Bench) -> None:
    assert "off, observe" in bench.set_mode(mode="auto")
    assert not bench.authority.asked


def test_a_grant_is_written_again_so_that_the_next_guard_finds_it(bench: Bench) -> None:
    bench.set_mode(mode="act")
    for _ in range(3):
        bench.clock.advance_s(GRANT_AGAIN_US / 1e6 - 1)
        bench.upkeep.look()
        bench.clock.advance_s(1)
        bench.upkeep.look()
    again = bench.members("engine.mode")
    assert [grant.get("again", False) for grant in again] == [False, True, True, True]


def test_it_does_not_act_while_another_guard_does(bench: Bench) -> None:
    bench.set_mode(mode="act")
    bench.actuator._claims = True
    with pytest.MonkeyPatch.context() as other:
        other.setattr(bench.actuator._folder, "claim", lambda: False)
        bench.upkeep.look()
    assert bench.will() == "WILL NOT ACT (another guard acts)"
    assert "another guard acts" in bench.members("process")[-1]["text"]
    bench.upkeep.look()
    assert bench.will().startswith("WILL ACT")
    bench.controls.actuator.let_go()


def test_what_it_will_do_is_one_line(bench: Bench) -> None:
    assert bench.will() == "WILL NOT ACT (shadow)"
    bench.set_mode(mode="act")
    assert bench.will() == "WILL ACT (warn, intervene, emergency, hard)"
    bench.set_mode(mode="act", allow=["pause"])
    assert bench.will() == "WILL ACT (intervene, emergency)"
    bench.set_mode(mode="act", allow=[])
    assert bench.will() == "WILL NOT ACT (nothing is allowed)"
    bench.set_mode(mode="act")
    (bench.home / STOP_FILE).touch()
    bench.upkeep.look()
    assert bench.will() == "WILL NOT ACT (STOP file)"
    bench.controls.probe.alive = False
    assert bench.will() == "WILL NOT ACT (the agent is not running)"
    assert bench.portrait.engine(bench.warden).stop_file == str(bench.home / STOP_FILE)
    assert [told["severity"] for told in bench.members("process")] == ["notice"]


def test_a_changed_policy_reaches_authority_and_engine(bench: Bench) -> None:
    news: list[str] = []
    bench.upkeep.on_news = lambda: news.append("news")
    (bench.own / "policy.yaml").write_text("mode: observe\ndisk_reserve_bytes: 1000000\n")
    bench.upkeep.look()
    assert bench.authority.mode == "observe"
    assert news == ["news"]
    assert bench.reserve.held_bytes == 1_000_000
    (bench.own / "policy.yaml").write_text("mode: dance\n")
    assert "dance" in bench.upkeep.reload_policy(Command(op="policy.reload"))
    assert bench.portrait.engine(bench.warden).policy_error
    assert [bool(told["error"]) for told in bench.members("policy")] == [False, True]


def test_plans_are_let_go_or_declined_by_their_name(bench: Bench) -> None:
    wishes = bench.controls.wishes
    assert "no plan" in wishes.approve(Command(op="engine.approve"))
    wishes.waiting_plan = lambda: "p1"
    assert "no plan p2 waits" in wishes.approve(Command(op="engine.approve", args={"plan": "p2"}))
    assert wishes.approve(Command(op="engine.approve", args={"plan": "p1"})) == ""
    assert wishes.decline(Command(op="engine.decline")) == ""
    assert [*wishes.approved, *wishes.declined] == ["p1", "p1"]
    wishes.reset(Command(op="engine.reset"))
    assert wishes.reset_m_us == bench.clock.boot_us()


@pytest.mark.parametrize(
    ("command", "counts"),
    [
        (Command(op="resume", args={"all": True}), True),
        (Command(op="resume", args={"owner": "engine"}), True),
        (Command(op="read_write", args={"holds": ["h1"]}), True),
        (Command(op="resume", args={"holds": ["h2"]}), False),
        (Command(op="resume"), False),
        (Command(op="resume", args={"all": True}, origin="engine"), False),
        (Command(op="resume", args={"all": True}, dry_run=True), False),
        (Command(op="pause", args={"all": True}), False),
    ],
)
def test_a_person_who_releases_what_the_engine_holds_is_heard(
    bench: Bench, command: Command, counts: bool
) -> None:
    bench.controls.wishes.notice(command, frozenset({"h1"}))
    assert (bench.controls.wishes.released_m_us is not None) == counts
