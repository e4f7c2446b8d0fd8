"""Requests: only evidence moves them, asked is never done, an end never changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memwatch.domain.command import Command
from memwatch.domain.errors import SessionError
from memwatch.runtime.guard.ledger import GRACE_US, MOST_IN_FLIGHT
from memwatch.wal.spool_format import TTL_US
from tests.runtime.ledger_bench import CHECKPOINT, GIVEN_UP_S, Bench


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
    assert bench.ledger.commands() == {}


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


def test_an_operation_of_the_guard_with_a_defect_comes_to_an_end(bench: Bench) -> None:
    def serve(_: Command) -> str:
        raise RuntimeError("a defect")

    bench.ledger.serve("note", serve)
    with pytest.raises(RuntimeError, match="a defect"):
        bench.ledger.submit(Command(op="note"))
    assert not bench.ledger.waiting
    assert next(iter(bench.ledger.commands().values())).state == "failed"


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


def test_of_what_ended_the_newest_is_remembered_in_its_order(bench: Bench) -> None:
    bench.ledger.serve("note", lambda _: "")
    names = [bench.ledger.submit(Command(op="note")) for _ in range(200)]
    known = list(bench.ledger.commands())
    assert 32 <= len(known) < 100
    assert known == names[-len(known) :]
