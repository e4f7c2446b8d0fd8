"""What the engine asks and people ask: what is refused, what is typed, what a restart knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memwatch.domain.command import Command
from memwatch.domain.errors import SessionError
from memwatch.runtime.guard.ledger import GRACE_US, MOST_IN_FLIGHT
from memwatch.runtime.guard.requests import BUSY_US
from memwatch.wal.spool_format import NEW
from tests.runtime.ledger_bench import CHECKPOINT, GIVEN_UP_S, Bench

DONE = "done"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def follow(bench: Bench, after_s: float = 0.0) -> None:
    bench.clock.advance_s(after_s)
    bench.ledger.follow({}, alive=True)


# -- the engine ------------------------------------------------------------------------------


def test_a_step_is_on_record_with_plan_reason_and_words(bench: Bench) -> None:
    bench.ask("p1.0", "purge", args={"how": "expired"}, why="memory 76% of 8.0G")
    record = bench.told[0]
    assert record.lsn > 0
    told = {"plan": "p1", "origin": "engine", "what": "purge what is expired"}
    assert told.items() <= record.members.items()
    assert record.members["why"] == "memory 76% of 8.0G"
    (command,) = bench.commands()
    assert (command.by.origin, command.epoch) == ("engine", 1)


def test_a_log_that_cannot_be_written_forbids_what_nobody_asked_for(bench: Bench) -> None:
    bench.files.fail_all("write")
    info = bench.ask("p1.0", "purge")
    assert (info.state, bench.agent.names(NEW)) == ("refused", [])
    assert "guard.wal cannot be written" in info.detail


def test_it_does_not_forbid_what_a_person_asks_and_says_that_it_is_not_on_record(
    bench: Bench,
) -> None:
    bench.files.fail_all("write")
    name = bench.ledger.submit(CHECKPOINT)
    assert "not recorded" in bench.info(name).detail
    bench.answer(name, DONE, "saved")
    follow(bench)
    assert bench.info(name).state == DONE
    assert "saved; not recorded" in bench.info(name).detail


@pytest.mark.parametrize(("op", "alive"), [("fly", True), ("checkpoint", False)])
def test_what_nobody_can_do_is_an_answer_to_the_engine(bench: Bench, op: str, alive: bool) -> None:
    bench.ledger.submit(Command(op=op, id="p1.0", origin="engine", plan="p1"), alive)
    assert bench.info("p1.0").state == "refused"
    assert bench.states("p1.0") == ["refused"]
    assert bench.agent.names(NEW) == []


def test_people_who_ask_too_much_keep_no_plan_waiting(bench: Bench) -> None:
    for _ in range(MOST_IN_FLIGHT):
        bench.ledger.submit(CHECKPOINT)
    with pytest.raises(SessionError, match="wait for the agent"):
        bench.ledger.submit(CHECKPOINT)
    assert bench.ask("p1.0").state == "asked"


def test_one_plan_is_in_flight_until_its_step_is_answered(bench: Bench) -> None:
    bench.ask("p1.0", ttl_us=20_000_000)
    assert bench.ask("p1.1").state == "asked", "its own next step"
    refused = bench.ask("p2.0")
    assert (refused.state, refused.detail) == ("refused", "plan p1 waits for an answer")
    for name in ("p1.0", "p1.1"):
        bench.answer(name, "running")
    follow(bench)
    assert bench.ask("p2.1").state == "asked", "an emergency waits for no checkpoint that goes on"


def test_what_is_wanted_back_keeps_no_plan_waiting_and_is_not_done(bench: Bench) -> None:
    bench.ask("p1.0", "purge")
    bench.ask("p1.1", "pause")
    assert bench.ledger.withdraw("p1.0", "pre-empted by emergency")
    assert bench.ledger.withdraw("p1.1", "pre-empted by emergency")
    info = bench.info("p1.0")
    assert (info.state, info.detail) == ("expired", "withdrawn: pre-empted by emergency")
    assert (bench.agent.names(NEW), bench.agent.names("hold")) == ([], [])
    assert not bench.ledger.withdraw("p1.0", "again")
    assert bench.ask("p2.0").state == "asked"


def test_what_the_agent_claimed_goes_on_and_keeps_no_plan_waiting_either(bench: Bench) -> None:
    bench.ask("p1.0", "purge")
    bench.agent.claim("2-p1.0.json")
    assert not bench.ledger.withdraw("p1.0", "pre-empted by emergency")
    assert bench.info("p1.0").state == "asked"
    assert bench.ask("p2.0", "abort_experiment").state == "asked"
    bench.answer("p1.0", DONE)
    follow(bench)
    assert bench.info("p1.0").state == DONE


def test_a_step_that_nobody_answered_in_its_time_keeps_no_plan_waiting(bench: Bench) -> None:
    bench.ask("p1.0", ttl_us=10_000_000)
    bench.clock.advance_s(10.1)
    assert bench.ask("p2.0").state == "asked"
    follow(bench, GRACE_US / 1e6)
    assert bench.info("p1.0").state == "expired"
    assert bench.agent.names(NEW) == ["1-p2.0.json"], "it is not done late"


def test_a_pause_waits_for_an_agent_that_is_busy(bench: Bench) -> None:
    bench.ask("p1.0", "pause", ttl_us=5_000_000)
    follow(bench, 29)
    assert bench.info("p1.0").state == "asked"
    bench.say()
    follow(bench)
    assert bench.info("p1.0").state == DONE


def test_a_pause_that_expired_is_not_in_force_and_will_not_be(bench: Bench) -> None:
    bench.ask("p1.0", "pause", ttl_us=5_000_000)
    follow(bench, (BUSY_US + GRACE_US) / 1e6 + 0.1)
    assert bench.info("p1.0").state == "expired"
    assert bench.agent.names("hold") == []
    assert bench.actuator.holds() == ()


def test_what_an_agent_returns_is_kept_small_and_on_record(bench: Bench) -> None:
    bench.ask("p1.0", "purge")
    bench.answer("p1.0", DONE)
    path = bench.agent.path / "ack" / "p1.0.json"
    path.write_bytes(path.read_bytes().replace(b'"result":{}', b'"result":{"freed":5,"\\u001b":1}'))
    follow(bench)
    assert bench.info("p1.0").result == {"freed": 5, "\ufffd": 1}
    assert bench.told[-1].members["result"] == {"freed": 5, "\ufffd": 1}


# -- a guard's restart -----------------------------------------------------------------------


def test_the_next_guard_goes_on_with_what_was_asked(bench: Bench) -> None:
    bench.ask("p1.0", "purge", ttl_us=20_000_000, why="why it was")
    bench.ask("p1.1", "pause")
    bench.answer("p1.0", "running")
    follow(bench)
    before = bench.info("p1.0")
    bench.restart()
    assert bench.info("p1.0") == before
    assert bench.ledger.submit(Command(op="purge", id="p1.0", origin="engine", plan="p1")) == "p1.0"
    assert len(bench.commands()) == 1, "it is not handed over again"
    bench.answer("p1.0", DONE)
    bench.say()
    follow(bench)
    assert [bench.info(name).state for name in ("p1.0", "p1.1")] == [DONE, DONE]
    assert [hold.owner for hold in bench.actuator.holds()] == ["engine"]


def test_its_time_goes_on_too_whatever_the_wall_clock_did(bench: Bench) -> None:
    bench.ask("p1.0", ttl_us=20_000_000)
    bench.clock.step_wall_s(7200)
    bench.restart()
    follow(bench, 19)
    assert bench.info("p1.0").state == "asked"
    follow(bench, 7)
    assert bench.info("p1.0").state == "expired"


def test_a_release_that_the_guard_did_not_see_answered_is_unknown(bench: Bench) -> None:
    bench.ask("p1.0", "pause")
    bench.say()
    follow(bench)
    bench.ask("p1.1", "resume")
    bench.restart()
    info = bench.info("p1.1")
    assert (info.state, info.detail) == ("unknown", "the guard ended meanwhile")
    assert bench.agent.names("hold") == []


def never_sent(bench: Bench, command_id: str, op: str = "purge") -> None:
    """Ask for a step by a guard that is killed between its record and the spool."""
    with pytest.MonkeyPatch.context() as killed:
        killed.setattr(bench.actuator, "begin", lambda *_: None)
        bench.ask(command_id, op)
    bench.restart()


@pytest.mark.parametrize("op", ["purge", "pause"])
def test_what_was_on_record_and_never_handed_over_may_be_asked_again(bench: Bench, op: str) -> None:
    never_sent(bench, "p1.0", op)
    assert "p1.0" not in bench.ledger.commands(), "the engine hears that it is lost"
    assert bench.ledger.command("p1.0").state == "asked"
    assert bench.ask("p1.0", op).state == "asked"
    assert bench.actuator.has("p1.0")
    bench.answer("p1.0", DONE)
    follow(bench)
    assert bench.info("p1.0").state == DONE


def test_what_was_never_handed_over_keeps_no_emergency_waiting(bench: Bench) -> None:
    never_sent(bench, "p1.0")
    assert bench.ask("p2.0", "abort_experiment").state == "asked"


def test_what_was_never_handed_over_has_an_end_all_the_same(bench: Bench) -> None:
    never_sent(bench, "p1.0")
    assert bench.ledger.withdraw("p1.0", "pre-empted")
    assert bench.states("p1.0") == ["asked", "expired"]
    never_sent(bench, "p1.1")
    follow(bench, GIVEN_UP_S)
    assert bench.states("p1.1") == ["asked", "expired"]


# -- people ----------------------------------------------------------------------------------

DANGEROUS = [
    ("abort_experiment", {}),
    ("end_run", {}),
    ("purge", {"tier": "verified"}),
    ("purge", {"keys": ["a"]}),
]


@pytest.mark.parametrize(("op", "args"), DANGEROUS)
def test_the_name_of_the_run_is_typed_for_what_does_not_come_back(
    bench: Bench, op: str, args: dict[str, Any]
) -> None:
    for confirm in ("", "yes", "night-8", "NIGHT-7"):
        with pytest.raises(SessionError, match="type the name of the run, night-7"):
            bench.ledger.submit(Command(op=op, args=args, confirm=confirm))
    assert bench.told == []
    for confirm in ("night-7", "run-1"):
        bench.ledger.submit(Command(op=op, args=args, confirm=confirm))
    assert all(command.confirm is None for command in bench.commands()), "the agent can check none"
    assert bench.ask("p1.0", op, args=args).state == "asked", "the engine goes by its policy"


@pytest.mark.parametrize(
    ("op", "args"), [("purge", {"tier": "workspace"}), ("purge", {}), ("checkpoint", {})]
)
def test_nothing_is_typed_for_the_rest(bench: Bench, op: str, args: dict[str, Any]) -> None:
    bench.ledger.submit(Command(op=op, args=args))


def test_nothing_is_typed_to_learn_what_would_be_done(bench: Bench) -> None:
    name = bench.ledger.submit(Command(op="purge", args={"keys": ["a"]}, dry_run=True))
    assert bench.info(name).dry_run
    assert bench.commands()[0].dry_run


def test_an_operation_without_a_dry_run_is_not_done_instead(bench: Bench) -> None:
    with pytest.raises(SessionError, match="leak has no dry run"):
        bench.ledger.submit(Command(op="leak", dry_run=True))
    assert bench.commands() == []


def test_an_id_that_leads_elsewhere_is_none(bench: Bench) -> None:
    with pytest.raises(SessionError, match="id that is none"):
        bench.ledger.submit(Command(op="checkpoint", id="../../etc/passwd"))


def test_of_a_request_that_nobody_knows_is_said_so(bench: Bench) -> None:
    info = bench.ledger.command("never\x1b")
    assert (info.state, info.id) == ("unknown", "never\ufffd")
    name = bench.ledger.submit(CHECKPOINT)
    assert bench.ledger.command(name) == bench.info(name)
