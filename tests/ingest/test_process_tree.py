"""Which processes are ours, on made-up machines where anything can happen between two looks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from memwatch.host.process import Identity
from memwatch.ingest.process_tree import ProcessTree
from tests.host.fake_proc import BOOT_ID, FakeProc

AGENT = 100


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    made = FakeProc(tmp_path)
    made.add(1, 0, start_ticks=1)
    made.add(50, 1)
    made.add(AGENT, 50, group=AGENT, session=50)
    return made


def tree(proc: FakeProc, exclude: Iterable[int] = (), boot: str = BOOT_ID) -> ProcessTree:
    return ProcessTree(Identity(boot, AGENT, AGENT * 10), proc.path, exclude)


def test_children_and_their_children(proc: FakeProc) -> None:
    proc.add(101, AGENT)
    proc.add(102, 101)
    proc.add(103, 50)
    proc.add(104, 103)
    assert set(tree(proc).look()) == {AGENT, 101, 102}


def test_a_parent_with_a_higher_number_than_its_child(proc: FakeProc) -> None:
    proc.add(900, AGENT, start_ticks=2000)
    proc.add(300, 900, start_ticks=2000)
    proc.add(200, 300, start_ticks=2000)
    assert set(tree(proc).look()) == {AGENT, 900, 300, 200}


def test_ours_stays_ours_when_its_parent_is_gone(proc: FakeProc) -> None:
    proc.add(101, AGENT)
    proc.add(102, 101)
    it = tree(proc)
    it.look()
    proc.remove(101)
    proc.add(102, 1)
    assert set(it.look()) == {AGENT, 102}
    proc.add(103, 102)
    assert set(it.look()) == {AGENT, 102, 103}
    proc.remove(AGENT)
    assert set(it.look()) == {102, 103}


def test_what_a_child_left_behind_between_two_looks(proc: FakeProc) -> None:
    proc.add(101, AGENT, group=101, session=50)
    it = tree(proc)
    it.look()
    proc.remove(101)
    proc.add(105, 1, group=101, session=50)
    proc.add(106, 1, group=106, session=50)
    assert set(it.look()) == {AGENT, 105}, "of its group; a session of strangers says nothing"


def test_what_the_leader_of_a_session_left_behind(proc: FakeProc) -> None:
    proc.add(101, AGENT, group=101, session=101)
    it = tree(proc)
    it.look()
    proc.remove(101)
    proc.add(105, 1, group=105, session=101)
    assert set(it.look()) == {AGENT, 105}


def test_the_number_of_a_leader_long_gone_means_nothing(proc: FakeProc) -> None:
    proc.add(101, AGENT, group=101, session=101)
    it = tree(proc)
    it.look()
    proc.remove(101)
    for _ in range(4):
        it.look()
    proc.add(101, 50, start_ticks=9000, group=101, session=101)
    proc.add(105, 101, start_ticks=9001, group=101, session=101)
    assert set(it.look()) == {AGENT}


def test_a_group_that_lives_on_keeps_its_meaning(proc: FakeProc) -> None:
    proc.add(101, AGENT, group=101, session=101)
    proc.add(102, 101, group=101, session=101)
    it = tree(proc)
    it.look()
    proc.remove(101)
    proc.add(102, 1, group=101, session=101)
    for _ in range(5):
        it.look()
    proc.add(106, 1, group=106, session=101)
    assert set(it.look()) == {AGENT, 102, 106}


def test_a_number_given_again_is_a_stranger(proc: FakeProc) -> None:
    proc.add(101, AGENT)
    it = tree(proc)
    it.look()
    proc.add(101, 50, start_ticks=7777)
    assert set(it.look()) == {AGENT}
    proc.add(AGENT, 50, start_ticks=7778)
    assert set(it.look()) == set()
    assert set(it.look()) == set()


def test_a_strangers_number_given_to_one_of_ours_is_found_in_time(proc: FakeProc) -> None:
    proc.add(101, 50)
    it = tree(proc)
    assert set(it.look()) == {AGENT}
    proc.add(101, AGENT, start_ticks=5000)
    looks = [set(it.look()) for _ in range(30)]
    assert looks[-1] == {AGENT, 101}


@pytest.mark.parametrize("state", ["Z", "X"])
def test_the_dead_do_not_count(proc: FakeProc, state: str) -> None:
    proc.add(101, AGENT)
    proc.add(102, AGENT, state=state)
    it = tree(proc)
    assert set(it.look()) == {AGENT, 101}
    proc.add(101, AGENT, state=state)
    assert set(it.look()) == {AGENT}


def test_our_own_guard_never_counts_nor_what_it_starts(proc: FakeProc) -> None:
    proc.add(101, AGENT)
    proc.add(200, AGENT, group=AGENT)
    proc.add(201, 200, group=AGENT)
    proc.add(202, 201, group=AGENT)
    it = tree(proc, [200])
    for _ in range(40):
        assert set(it.look()) == {AGENT, 101}
    proc.add(203, 202, group=AGENT)
    assert set(it.look()) == {AGENT, 101}


def test_an_agent_that_an_excluded_process_started_counts(proc: FakeProc) -> None:
    proc.add(101, AGENT)
    proc.add(51, 50, group=50)
    assert set(tree(proc, [50]).look()) == {AGENT, 101}


@pytest.mark.parametrize("boot", ["", "another boot"])
def test_an_agent_of_another_boot_has_no_processes(proc: FakeProc, boot: str) -> None:
    assert tree(proc, boot=boot).look() == {}


def test_an_agent_that_is_gone_from_the_start(proc: FakeProc) -> None:
    proc.add(101, AGENT)
    proc.remove(AGENT)
    assert tree(proc).look() == {}


def test_unreadable_and_broken_files_are_no_process(proc: FakeProc) -> None:
    proc.add(101, AGENT)
    (proc.path / "101" / "stat").write_bytes(b"\xff\xfe")
    (proc.path / "102").mkdir()
    (proc.path / "103").write_text("a file")
    (proc.path / "\u0664").mkdir()
    assert set(tree(proc).look()) == {AGENT}
    proc.remove(101)
    (proc.path / "102").rmdir()


def test_thousands_of_short_lived_children_leave_nothing_behind(proc: FakeProc) -> None:
    it = tree(proc)
    for pid in range(1000, 1500):
        proc.add(pid, AGENT, group=pid, session=pid)
        it.look()
        proc.remove(pid)
    for _ in range(4):
        it.look()
    assert set(it._alive_at) == {AGENT}
    assert len(it._ours) == 1
    assert len(it._strangers) <= 2
