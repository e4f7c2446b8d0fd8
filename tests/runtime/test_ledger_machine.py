"""The ledger under everything at once: plans, people, a slow agent, restarts, a full disk."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from memwatch.domain.command import FINAL_STATES, Command, CommandInfo
from memwatch.domain.errors import SessionError
from memwatch.runtime.guard.recorder import RETRY_US
from memwatch.wal.spool_format import CUR, NEW, TTL_US
from tests.runtime.ledger_bench import GIVEN_UP_S, Bench

ORDER = ("asked", "accepted", "running")
STEP_TTL_US = 10_000_000
HOLD_OPS = ("pause", "read_only", "resume", "read_write")
PLANS = ("a1-warn", "b2-intervene", "c3-emergency")


class LedgerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory(prefix="mw-")
        self.bench = Bench(Path(self.place.name))
        self.asked_us: dict[str, int] = {}
        self.said: dict[str, set[str]] = {}
        self.held: set[str] = set()
        self.claimed: set[str] = set()
        self.withdrawn: set[str] = set()
        self.given_up: set[str] = set()
        self.dead_seen: set[str] = set()
        self.orphans: set[str] = set()
        self.seen: dict[str, list[str]] = {}
        self.wal_fails = False
        self.steps = 0

    def teardown(self) -> None:
        self.bench.recorder.close()
        self.place.cleanup()

    # -- who asks ----------------------------------------------------------------------------

    @rule(op=st.sampled_from(["checkpoint", "leak", *HOLD_OPS]), by=st.sampled_from(["ann", "bo"]))
    def a_person_asks(self, op: str, by: str) -> None:
        self.steps += 1
        try:
            name = self.bench.ledger.submit(Command(op=op, by=by, id=f"person-{self.steps}"))
        except SessionError:
            return
        self._note(name)
        if self.wal_fails:
            info = self.bench.info(name)
            assert "not recorded" in info.detail or info.state == "failed", (
                "it goes on, and is said"
            )

    @rule(
        plan=st.sampled_from(PLANS), op=st.sampled_from(["checkpoint", "purge", "pause", "resume"])
    )
    def the_engine_asks(self, plan: str, op: str) -> None:
        self.steps += 1
        blocked = self._blocking() - {plan}
        info = self.bench.ask(f"{plan}.{self.steps}", op, ttl_us=STEP_TTL_US)
        self._note(info.id)
        if blocked:
            assert info.state == "refused", "one plan in flight"
        elif self.wal_fails:
            assert (info.state, self._lies(info.id)) == ("refused", False)
        else:
            assert info.state == "asked", "people in flight keep no plan waiting"

    @precondition(lambda self: self.asked_us)
    @rule(data=st.data())
    def it_is_asked_again(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.asked_us)))
        before = self.bench.ledger.commands().get(name)
        if before is not None:
            assert self.bench.ledger.submit(Command(op=before.op, id=name)) == name
            assert self.bench.info(name) == before

    @precondition(lambda self: self.asked_us)
    @rule(data=st.data())
    def it_is_withdrawn(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.asked_us)))
        self.given_up.add(name)
        if self.bench.ledger.withdraw(name, "pre-empted"):
            self.withdrawn.add(name)
            assert self.bench.info(name).state == "expired"

    # -- the agent ---------------------------------------------------------------------------

    @precondition(lambda self: self.bench.agent.names(NEW))
    @rule(data=st.data())
    def the_agent_claims(self, data: st.DataObject) -> None:
        file = data.draw(st.sampled_from(self.bench.agent.names(NEW)))
        command, _ = self.bench.agent.read(NEW, file)
        self.bench.agent.claim(file)
        self.claimed.add(command.id)

    @precondition(lambda self: self.bench.agent.names(CUR))
    @rule(
        data=st.data(), state=st.sampled_from(["accepted", "running", "done", "failed", "refused"])
    )
    def the_agent_answers(self, data: st.DataObject, state: str) -> None:
        file = data.draw(st.sampled_from(self.bench.agent.names(CUR)))
        command, _ = self.bench.agent.read(CUR, file)
        self.bench.answer(command.id, state)
        self.said[command.id].add(state)
        if state in FINAL_STATES:
            self.bench.agent.drop(CUR, file)

    @rule()
    def the_agent_looks_at_its_holds(self) -> None:
        self.bench.say()
        state = self.bench.agent.state()
        self.held |= {hold.id for hold in state.holds} if state else set()

    # -- the world ---------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([0.1, 3.0, 12.0, 70.0, GIVEN_UP_S]))
    def time_passes(self, seconds: float) -> None:
        self.bench.clock.advance_s(seconds)

    @rule(step_s=st.sampled_from([-5000.0, 5000.0]))
    def the_clock_is_set(self, step_s: float) -> None:
        self.bench.clock.step_wall_s(step_s)

    @rule(alive=st.sampled_from([True, True, True, False]))
    def the_guard_looks(self, alive: bool) -> None:
        if not alive:
            self.dead_seen |= self._in_flight().keys()
        self.bench.ledger.follow({}, alive)
        self.bench.actuator.keep(self.bench.clock.boot_us())

    @rule()
    def the_guard_is_killed_and_begins_again(self) -> None:
        self.orphans |= self._in_flight().keys()
        known = self.bench.ledger.commands()
        self.orphans |= {  # whose end is not on record: the disk was full
            name for name in known if not FINAL_STATES & set(self._recorded(name))
        }
        self.bench.restart()
        self.seen.clear()
        self.given_up &= self.withdrawn  # what the guard before wanted back, the next knows not

    @rule()
    def the_disk_is_full(self) -> None:
        self.bench.files.fail_all("write")
        self.wal_fails = True

    @rule()
    def the_disk_has_room(self) -> None:
        self.bench.files.heal()
        self.bench.clock.advance_s(RETRY_US / 1e6)
        self.wal_fails = False

    # -- what is always so -------------------------------------------------------------------

    @invariant()
    def states_only_go_forward_and_an_end_stays(self) -> None:
        for name, info in self.bench.ledger.commands().items():
            seen = self.seen.setdefault(name, [info.state])
            if seen[-1] != info.state:
                seen.append(info.state)
            _check_course(seen)

    @invariant()
    def so_do_those_on_record(self) -> None:
        for name in self.asked_us:
            _check_course(self._recorded(name), restarted=name in self.orphans)

    @invariant()
    def done_is_what_the_agent_said(self) -> None:
        for name, info in self.bench.ledger.commands().items():
            if info.op in ("pause", "read_only") and info.state == "done":
                assert name in self.held
            elif info.op not in HOLD_OPS and info.state in ("accepted", "running", "done"):
                assert info.state in self.said[name]

    @invariant()
    def only_time_a_death_or_a_restart_gives_up(self) -> None:
        for name, info in self.bench.ledger.commands().items():
            if info.state == "unknown":
                assert name in self.dead_seen | self.orphans or self._age_us(name) > TTL_US
            if info.state == "expired" and info.op not in HOLD_OPS:
                early = name in self.withdrawn | self.dead_seen
                assert early or self._age_us(name) > min(STEP_TTL_US, TTL_US)

    @invariant()
    def what_was_taken_back_is_never_done(self) -> None:
        assert not self.withdrawn & self.claimed

    @invariant()
    def the_engine_acts_only_on_record(self) -> None:
        for folder in (NEW, CUR):
            for file in self.bench.agent.names(folder):
                command, _ = self.bench.agent.read(folder, file)
                if command.by.origin == "engine":
                    assert "asked" in self._recorded(command.id)
        for kept in self.bench.actuator.holds():
            if kept.owner == "engine":
                assert "asked" in self._recorded(kept.id)

    @invariant()
    def one_plan_waits_for_an_answer(self) -> None:
        assert len(self._blocking()) <= 1

    def _note(self, name: str) -> None:
        self.asked_us.setdefault(name, self.bench.clock.boot_us())
        self.said.setdefault(name, set())

    def _age_us(self, name: str) -> int:
        return self.bench.clock.boot_us() - self.asked_us[name]

    def _in_flight(self) -> dict[str, CommandInfo]:
        known = self.bench.ledger.commands()
        return {name: one for name, one in known.items() if one.state not in FINAL_STATES}

    def _blocking(self) -> set[str]:
        def waits(name: str, info: CommandInfo) -> bool:
            ttl_us = 30_000_000 if info.op in ("pause", "read_only") else STEP_TTL_US
            in_time = self._age_us(name) <= ttl_us and name not in self.given_up
            return bool(info.plan) and info.state == "asked" and in_time

        return {info.plan for name, info in self._in_flight().items() if waits(name, info)}

    def _recorded(self, name: str) -> list[str]:
        told = [r for r in self.bench.told if r.lsn and r.members["id"] == name]
        return [record.members["state"] for record in told]

    def _lies(self, name: str) -> bool:
        agent = self.bench.agent
        files = [*agent.names(NEW), *agent.names("hold")]
        return any(name in file for file in files)


def _check_course(states: list[Any], *, restarted: bool = False) -> None:
    ends = [state for state in states if state in FINAL_STATES]
    assert len(ends) <= 1 or restarted
    assert not ends or states[-1] in ends
    way = [ORDER.index(state) for state in states if state in ORDER]
    assert restarted or way == sorted(set(way)), states


LedgerMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=40)
TestLedgerMachine = LedgerMachine.TestCase
