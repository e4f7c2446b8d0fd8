"""What is put in the actuator's way, and what an agent that is no friend answers: nothing follows.

The test plays the agent: it writes `ack/` and `state.json` as it likes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memwatch.actuators.native import NativeActuator
from memwatch.domain.clock import ManualClock
from memwatch.domain.command import Command
from memwatch.domain.errors import MemwatchError
from memwatch.wal.segment import CONTROL_DIR
from memwatch.wal.spool_format import FOLDERS, MAX_BYTES
from tests.actuators.bench import ENGINE_PAUSE, PAUSE, Bench, ack, files_below
from tests.actuators.native_run import OPS, RUN_ID, a_native_run, write_run_file


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def replaced_directory(bench: Bench) -> None:
    bench.run.rename(bench.run.with_name("moved"))
    bench.run.mkdir()
    a_native_run(bench.run, bench.clock)


def link_to(name: str) -> Callable[[Bench], None]:
    def replace(bench: Bench) -> None:
        elsewhere = bench.run.parent / "elsewhere"
        (bench.run / name).rename(elsewhere)
        (bench.run / name).symlink_to(elsewhere)

    return replace


IN_THE_WAY: dict[str, Callable[[Bench], object]] = {
    "the directory is another": replaced_directory,
    "the directory is gone": lambda bench: shutil.rmtree(bench.run),
    "another run lies there": lambda bench: write_run_file(bench.run, "run-2"),
    "run.json is gone": lambda bench: (bench.run / "run.json").unlink(),
    "run.json is cut": lambda bench: (bench.run / "run.json").write_bytes(b'{"format":1,'),
    "run.json is linked": lambda bench: link_to("run.json")(bench),
    "control is linked": link_to("control"),
    "tmp is linked": link_to("control/tmp"),
    "hold is linked": link_to("control/hold"),
    "others may write control": lambda bench: bench.control.chmod(0o770),
    "others may write hold": lambda bench: (bench.control / "hold").chmod(0o702),
}


@pytest.mark.parametrize("way", IN_THE_WAY)
@pytest.mark.parametrize("op", ["pause", "read_only"])
def test_nothing_is_written_where_the_way_leads_elsewhere(bench: Bench, way: str, op: str) -> None:
    IN_THE_WAY[way](bench)
    before = {path: path.read_bytes() for path in files_below(bench.run.parent)}
    with pytest.raises(MemwatchError):
        bench.begin(Command(op=op, id="p1"))
    assert {path: path.read_bytes() for path in files_below(bench.run.parent)} == before
    assert bench.actuator.holds() == ()
    assert bench.keep() == ()


def test_a_spool_that_is_made_again_is_used_again(bench: Bench) -> None:
    bench.begin(PAUSE)
    shutil.rmtree(bench.control)
    (told,) = bench.keep()
    assert "cannot be renewed" in told
    a_native_run(bench.run, bench.clock)
    (told,) = bench.keep()
    assert "put back" in told
    assert bench.renewed("tui-pause.json") == 2


def half(bench: Bench, path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20])


def linked(bench: Bench, path: Path) -> None:
    path.rename(bench.run / "real.json")
    path.symlink_to(bench.run / "real.json")


def a_pipe(bench: Bench, path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def a_folder(bench: Bench, path: Path) -> None:
    path.unlink()
    path.mkdir()


def many_names(bench: Bench, path: Path) -> None:
    for n in range(2):
        (bench.run / f"name{n}").hardlink_to(path)


def others_write(bench: Bench, path: Path) -> None:
    path.chmod(0o620)


def oversize(bench: Bench, path: Path) -> None:
    path.write_bytes(path.read_bytes() + b" " * MAX_BYTES)


def deep(bench: Bench, path: Path) -> None:
    path.write_bytes(b"[" * 10_000)


def no_text(bench: Bench, path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00")


HOSTILE = (half, linked, a_pipe, a_folder, many_names, others_write, oversize, deep, no_text)


@pytest.mark.parametrize("spoil", HOSTILE, ids=lambda spoil: spoil.__name__)
def test_an_answer_that_others_could_have_written_or_nobody_finished_is_none(
    bench: Bench, spoil: Callable[[Bench, Path], None]
) -> None:
    path = bench.ack(ack())
    answer = bench.actuator.answer("c1")
    assert answer is not None
    assert answer.state == "done"
    spoil(bench, path)
    assert bench.actuator.answer("c1") is None


@pytest.mark.parametrize("spoil", HOSTILE, ids=lambda spoil: spoil.__name__)
def test_so_is_a_state_of_that_kind(bench: Bench, spoil: Callable[[Bench, Path], None]) -> None:
    bench.begin(PAUSE)
    bench.held("p1")
    assert bench.actuator.answer("p1") is not None
    spoil(bench, bench.control / "state.json")
    assert bench.actuator.answer("p1") is None
    assert [hold.effective for hold in bench.actuator.holds()] == [False]
    assert bench.actuator.claim_epoch() == 1


@pytest.mark.parametrize("spoil", HOSTILE, ids=lambda spoil: spoil.__name__)
def test_a_hold_of_ours_that_was_spoiled_is_put_back(
    bench: Bench, spoil: Callable[[Bench, Path], None]
) -> None:
    bench.begin(PAUSE)
    path = bench.control / "hold" / "tui-pause.json"
    spoil(bench, path)
    if spoil is a_folder:  # a file does not take the place of a folder: said, and nothing else
        assert "cannot be renewed" in bench.keep()[0]
        path.rmdir()
    assert "put back" in bench.keep()[0]
    assert path.is_file()
    assert not path.is_symlink()
    assert bench.renewed("tui-pause.json") == 2


@pytest.mark.parametrize("spoil", HOSTILE, ids=lambda spoil: spoil.__name__)
def test_the_next_guard_adopts_no_hold_that_it_cannot_trust(
    bench: Bench, spoil: Callable[[Bench, Path], None]
) -> None:
    bench.begin(ENGINE_PAUSE)
    spoil(bench, bench.control / "hold" / "engine-pause.json")
    after = NativeActuator(bench.run, RUN_ID, OPS, bench.clock)
    after.claim_epoch()
    assert after.holds() == ()


@pytest.mark.parametrize("state", ["", "ok", "proposed", "asked", "unknown", "\x1b[31mdone"])
def test_a_word_that_no_agent_says_is_no_answer(bench: Bench, state: str) -> None:
    bench.ack(ack(state=state))
    assert bench.actuator.answer("c1") is None


def test_what_an_agent_answers_is_inert_and_small(bench: Bench) -> None:
    evil = "\x1b]0;gotcha\x07\u202e"
    deep: Any = evil
    for _ in range(20):
        deep = {evil: [deep]}
    result = {evil: evil * 10, "deep": deep, "big": 10**30, "many": list(range(1000))}
    bench.ack(ack(detail=evil + "x" * 500, result=result))
    answer = bench.actuator.answer("c1")
    assert answer is not None
    text = repr(answer.result) + answer.detail
    assert "\\x1b" not in text
    assert "\\u202e" not in text
    assert len(answer.detail) <= 120
    assert len(text) < 2000


def test_ten_thousand_old_answers_cost_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(10_000):
        (bench.control / "ack" / f"old-{n}.json").touch(mode=0o600)
    bench.ack(ack())
    listed: set[str] = set()
    real = os.scandir

    def counting(folder: int) -> Any:
        listed.add(Path(f"/proc/self/fd/{folder}").readlink().name)
        return real(folder)

    monkeypatch.setattr(os, "scandir", counting)
    assert bench.actuator.answer("c1") is not None
    bench.begin(Command(op="checkpoint", id="c2"))
    bench.begin(PAUSE)
    bench.keep(60)
    bench.actuator.claim_epoch()
    assert listed == {"tmp", "hold"}


def test_of_two_guards_one_acts_and_the_other_takes_over_when_it_is_gone(tmp_path: Path) -> None:
    """Also where each has a home of its own: the lock lies on the run's control folder."""
    clock = ManualClock()
    first, second = (a_native_run(tmp_path, clock) for _ in range(2))
    for guard in (first, second):
        guard.claim()
        guard.claim_epoch()
    assert (first.alone, second.alone) == (True, False)
    first.begin(Command(op="pause", id="p.0", origin="engine"), clock.wall_us())
    assert second.keep(clock.boot_us()) == ()
    assert [hold.owner for hold in second.holds()] == [], "what the first one holds is not its own"
    first.let_go()
    (told,) = second.keep(clock.boot_us())
    assert "other guard is gone" in told
    assert second.alone
    assert [hold.owner for hold in second.holds()] == ["engine"]
    second.let_go()


def test_a_control_folder_that_was_replaced_is_claimed_anew(tmp_path: Path) -> None:
    clock = ManualClock()
    first, second = (a_native_run(tmp_path, clock) for _ in range(2))
    first.claim()
    (tmp_path / "control").rename(tmp_path / "before")
    shutil.copytree(tmp_path / "before", tmp_path / "control")
    first.keep(clock.boot_us())
    second.claim()
    assert (first.alone, second.alone) == (True, False)
    first.let_go()


@pytest.mark.parametrize("folder", ["", *FOLDERS])
def test_a_guard_begins_over_a_control_folder_that_others_may_write(
    tmp_path: Path, folder: str
) -> None:
    """It watches, and refuses to ask: a `chmod -R g+w` must not end the watch."""
    native = a_native_run(tmp_path, ManualClock())
    (tmp_path / CONTROL_DIR / folder).chmod(0o770)
    native.claim()
    assert native.claim_epoch(4) == 5
    assert native.holds() == ()
    assert native.keep(10**9) == ()
    assert native.has("c1") is (folder in ("", "hold")), "what cannot be seen is not asked again"
    assert native.answer("c1") is None
    assert not native.withdraw("c1")
