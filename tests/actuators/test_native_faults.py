"""Every system call fails once, or is the last one before a kill: what is said is what is so."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memwatch.actuators.native import NativeActuator
from memwatch.domain.command import Command
from memwatch.domain.errors import MemwatchError
from memwatch.wal.spool_format import parse_command, parse_hold
from tests.actuators.bench import ENGINE_PAUSE, PAUSE, Bench
from tests.actuators.native_run import OPS, RUN_ID

CALLS = ("open", "write", "fsync", "link", "replace", "unlink", "scandir", "fstat")
MANY = 200


class KilledError(BaseException):
    """Nothing of ours runs after it."""


class Calls:
    """Counts the system calls, and lets one or all from one on fail."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.fails: Callable[[int], BaseException | None] = lambda _: None
        for name in CALLS:
            patch.setattr(os, name, self._counted(getattr(os, name)))

    def _counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            error = self.fails(self.count)
            self.count += 1
            if error is not None:
                raise error
            return real(*args, **kwargs)

        return call


@pytest.fixture(params=[PAUSE, ENGINE_PAUSE, Command(op="purge", id="p1")], ids=["a", "b", "c"])
def command(request: pytest.FixtureRequest) -> Command:
    asked: Command = request.param
    return asked


def each_bench(tmp_path: Path) -> Iterator[tuple[int, Bench]]:
    for number in range(MANY):
        folder = tmp_path / str(number)
        folder.mkdir()
        yield number, Bench(folder)


def published(bench: Bench) -> list[str]:
    """Return the ids that an agent would obey: each file is whole."""
    jobs = [parse_command(path.read_bytes()).id for path in (bench.control / "new").iterdir()]
    held = [parse_hold(path.read_bytes()).id for path in (bench.control / "hold").iterdir()]
    return jobs + held


def test_what_is_said_to_have_failed_was_not_handed_over(tmp_path: Path, command: Command) -> None:
    failed = 0
    for number, bench in each_bench(tmp_path):
        with pytest.MonkeyPatch.context() as patch:
            calls = Calls(patch)
            full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            calls.fails = lambda at, n=number, e=full: e if at == n else None  # type: ignore[misc]
            try:
                bench.begin(command)
                said = True
            except MemwatchError:
                said, failed = False, failed + 1
        assert published(bench) == (["p1"] if said else [])
        bench.begin(command)
        assert published(bench) == ["p1"], "and it can be asked again"
        if calls.count <= number:
            break
    assert 5 < failed < MANY - 1


def test_a_guard_that_is_killed_leaves_a_whole_request_or_none(
    tmp_path: Path, command: Command
) -> None:
    outcomes = set()
    for number, bench in each_bench(tmp_path):
        with pytest.MonkeyPatch.context() as patch:
            calls = Calls(patch)
            calls.fails = lambda at, n=number: KilledError() if at >= n else None  # type: ignore[misc]
            try:
                bench.begin(command)
                break
            except KilledError:
                outcomes.add(tuple(published(bench)))
        after = NativeActuator(bench.run, RUN_ID, OPS, bench.clock)
        after.claim_epoch()
        assert after.keep(bench.clock.boot_us()) == ()
        after.begin(command, bench.clock.wall_us())
        assert published(bench) == ["p1"]
    assert outcomes == {(), ("p1",)}


def test_a_release_that_failed_says_so_or_is_one(tmp_path: Path) -> None:
    for number, bench in each_bench(tmp_path):
        bench.begin(PAUSE)
        resume = Command(op="resume", id="r1", by="tui")
        with pytest.MonkeyPatch.context() as patch:
            calls = Calls(patch)
            broken = OSError(errno.EIO, os.strerror(errno.EIO))
            calls.fails = lambda at, n=number, e=broken: e if at == n else None  # type: ignore[misc]
            try:
                bench.begin(resume)
                said = True
            except MemwatchError:
                said = False
        assert published(bench) == ([] if said else ["p1"])
        assert bench.keep() == ()
        assert published(bench) == ([] if said else ["p1"]), "what was released stays so"
        assert [hold.id for hold in bench.actuator.holds()] == published(bench)
        if calls.count <= number:
            return
