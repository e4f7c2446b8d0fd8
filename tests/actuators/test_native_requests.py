"""Holds, their release, what is taken back, and on what time all of it goes."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from memwatch.actuators.hold_requests import owner_of
from memwatch.actuators.native import FRESH_US, NativeActuator
from memwatch.domain.clock import ManualClock
from memwatch.domain.command import Command
from memwatch.domain.errors import MemwatchError
from memwatch.wal.spool_format import LEASE_US, parse_command
from tests.actuators.bench import ENGINE_PAUSE, PAUSE, Bench, files_below
from tests.actuators.native_run import OPS, RUN_ID, say_state, write_run_file


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])
def test_a_disk_that_refuses_is_said_and_the_pause_ends_with_its_lease(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    bench.actuator.claim_epoch()
    bench.begin(ENGINE_PAUSE)
    with monkeypatch.context() as patch:
        refuse_to_write(patch, error)
        for command in (Command(op="checkpoint", id="c1"), Command(op="read_only", id="o1")):
            with pytest.raises(MemwatchError, match="cannot be handed over"):
                bench.begin(command)
        (told,) = bench.keep(after_s=40)
        assert "the pause by engine cannot be renewed" in told
        assert bench.keep(after_s=1) == (), "said once a minute"
        assert len(bench.keep(after_s=61)) == 1
    assert bench.renewed() == 1
    assert files_below(bench.control / "tmp") == []
    assert bench.keep() == ()
    assert bench.renewed() == 2, "tried again at once"
    assert [hold.id for hold in bench.actuator.holds()] == ["p1"], "no hold that was never written"


def refuse_to_write(patch: pytest.MonkeyPatch, error: int) -> None:
    def refuse(*_: Any) -> int:
        raise OSError(error, os.strerror(error))

    patch.setattr(os, "write", refuse)


def test_a_lease_is_renewed_each_quarter_whatever_the_wall_clock_does(bench: Bench) -> None:
    bench.begin(ENGINE_PAUSE)
    for expected, step_s in ((1, 3600), (2, -7200), (3, 0)):
        assert bench.renewed() == expected
        bench.clock.step_wall_s(step_s)
        assert bench.keep(after_s=LEASE_US / 4e6 - 1) == ()
        assert bench.renewed() == expected, "not before"
        assert bench.keep(after_s=1) == ()


def test_an_old_state_answers_nothing_whatever_the_wall_clock_does(bench: Bench) -> None:
    bench.begin(PAUSE)
    bench.held("p1")
    bench.clock.step_wall_s(7200)
    assert bench.actuator.answer("p1") is not None
    bench.clock.advance_s(FRESH_US / 1e6 + 1)
    assert bench.actuator.answer("p1") is None, "the agent is busy, or gone"
    assert bench.actuator.state() is None


def test_a_state_from_another_boot_or_run_answers_nothing(bench: Bench) -> None:
    bench.begin(PAUSE)
    bench.held("p1", boot_us=bench.clock.boot_us() + 10**12)
    assert bench.actuator.answer("p1") is None
    bench.held("p1", run_id="run-2")
    assert bench.actuator.answer("p1") is None


def test_a_release_is_done_when_the_agent_says_so_and_its_generation_rose(bench: Bench) -> None:
    bench.begin(PAUSE)
    bench.held("p1", gen=4)
    bench.begin(Command(op="resume", id="r1", by="tui"))
    assert bench.actuator.answer("r1") is None
    bench.held(gen=4)
    assert bench.actuator.answer("r1") is None, "an answer from before"
    bench.held(gen=5)
    answer = bench.actuator.answer("r1")
    assert answer is not None
    assert answer.state == "done"
    assert bench.keep(after_s=600) == ()
    assert files_below(bench.control / "hold") == []


def test_a_pause_that_was_released_unseen_never_was(bench: Bench) -> None:
    bench.begin(PAUSE)
    bench.held()
    bench.begin(Command(op="resume", id="r1", by="tui"))
    never = bench.actuator.answer("p1")
    assert never is not None
    assert (never.state, never.detail) == ("expired", "released before the agent saw it")
    bench.clock.advance_s(0.1)
    bench.held()
    assert bench.actuator.answer("r1") is not None


def test_only_what_lies_unclaimed_and_is_ours_is_taken_back(bench: Bench) -> None:
    for name in ("c1", "c2"):
        bench.begin(Command(op="purge", id=name))
    new = bench.control / "new"
    (new / "2-c2.json").rename(bench.control / "cur" / "2-c2.json")
    real = bench.run / "precious"
    real.write_bytes((new / "2-c1.json").read_bytes().replace(b'"c1"', b'"c3"'))
    (new / "2-c3.json").symlink_to(real)
    (new / "1-c4.json").write_bytes((new / "2-c1.json").read_bytes())
    assert [bench.actuator.withdraw(f"c{n}") for n in (1, 2, 3, 4, 5)] == [True] + [False] * 4
    assert not bench.actuator.withdraw("../../precious")
    assert real.exists()
    assert sorted(path.name for path in new.iterdir()) == ["1-c4.json", "2-c3.json"]


def test_what_is_destructive_is_meant_for_the_start_that_was_seen(bench: Bench) -> None:
    say_state(bench.run, bench.clock, start_id="s7")
    bench.begin(Command(op="purge", id="c1", ttl_us=5_000_000, origin="engine"))
    bench.begin(Command(op="checkpoint", id="c2"))
    purge, checkpoint = (
        parse_command((bench.control / "new" / name).read_bytes())
        for name in ("2-c1.json", "1-c2.json")
    )
    assert (purge.expect, purge.ttl_us, purge.epoch) == ({"start_id": "s7"}, 5_000_000, 0)
    assert (checkpoint.expect, checkpoint.epoch) == ({}, None)


def test_an_epoch_is_above_all_that_were_seen(bench: Bench) -> None:
    say_state(bench.run, bench.clock, epoch=41)
    assert bench.actuator.claim_epoch(known=7) == 42
    assert bench.actuator.claim_epoch(known=50) == 51
    assert bench.actuator.claim_epoch() == 52


@pytest.mark.parametrize(
    ("by", "owner"),
    [
        ("tui", "tui"),
        ("", "operator"),
        ("engine", "operator"),
        ("../../etc", "etc"),
        ("a b/c\x1b", "a-b-c-"),
        ("名", "operator"),
        (".-.", "operator"),
        ("x" * 300, "x" * 60),
    ],
)
def test_an_owner_is_a_part_of_a_file_name_and_never_the_engine(by: str, owner: str) -> None:
    assert owner_of(Command(op="pause", by=by)) == owner
    assert owner_of(Command(op="pause", by=by, origin="engine")) == "engine"


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("pause", {"lease_us": 0}),
        ("pause", {"lease_us": True}),
        ("pause", {"lease_us": 1 << 63}),
        ("pause", {"on_lease_end": "explode"}),
        ("pause", {"forever": 1}),
        ("resume", {"every": True}),
        ("resume", {"holds": "p1"}),
        ("resume", {"owner": 3}),
    ],
)
def test_a_wrong_argument_holds_and_releases_nothing(
    bench: Bench, op: str, args: dict[str, Any]
) -> None:
    with pytest.raises(MemwatchError):
        bench.begin(Command(op=op, id="x1", args=args))
    assert files_below(bench.control / "hold") == []


def test_a_run_without_a_spool_offers_nothing_and_says_why(tmp_path: Path) -> None:
    write_run_file(tmp_path)
    actuator = NativeActuator(tmp_path, RUN_ID, {"checkpoint": "?", "\x1b": {}}, ManualClock())
    offers = actuator.offers()
    assert "no control folder" in offers["checkpoint"].why_not
    assert "no control folder" in offers["pause"].why_not
    assert all(op.isprintable() for op in offers)


def test_a_pause_that_a_busy_agent_was_seen_to_heed_is_not_taken_back(bench: Bench) -> None:
    bench.begin(PAUSE)
    bench.held("p1")
    bench.clock.advance_s(30)
    assert not bench.actuator.withdraw("p1")
    assert [hold.id for hold in bench.actuator.holds()] == ["p1"]


@pytest.mark.parametrize("command", [ENGINE_PAUSE, PAUSE], ids=["engine", "person"])
def test_a_pause_that_ended_while_no_guard_lived_stays_over(bench: Bench, command: Command) -> None:
    bench.actuator.claim_epoch()
    bench.begin(command)
    bench.clock.advance_s(600)
    bench.held()  # by its own word nothing holds the agent
    after = NativeActuator(bench.run, RUN_ID, OPS, bench.clock)
    after.claim_epoch()
    after.keep(bench.clock.boot_us())
    kept = [] if command is ENGINE_PAUSE else ["p1"]
    assert [hold.id for hold in after.holds()] == kept, "a person's ends by a person's word"
    assert len(files_below(bench.control / "hold")) == len(kept)


def test_of_an_agent_that_says_nothing_all_holds_are_kept(bench: Bench) -> None:
    bench.begin(ENGINE_PAUSE)
    after = NativeActuator(bench.run, RUN_ID, OPS, bench.clock)
    after.claim_epoch()
    after.keep(bench.clock.boot_us())
    assert [hold.id for hold in after.holds()] == ["p1"]
    assert bench.renewed() == 2


def test_an_engine_that_acts_again_does_not_begin_a_pause_again_that_lapsed(bench: Bench) -> None:
    bench.actuator.claim_epoch()
    bench.begin(ENGINE_PAUSE)
    acts = False
    bench.actuator.renew_engine_while(lambda: acts)
    bench.keep(after_s=LEASE_US / 1e6 - 1)
    assert len(bench.actuator.holds()) == 1, "it runs to its end"
    bench.keep(after_s=1)
    acts = True
    assert bench.keep(after_s=1) == ()
    assert bench.actuator.holds() == ()
    assert files_below(bench.control / "hold") == []
