"""What a start promises to survive a power loss does, also what an earlier, killed one had written.

Kills and power losses at random: `test_kills`.
"""

from __future__ import annotations

import errno
import os
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memwatch.agent import Run, RunOptions, recover
from memwatch.agent.checkpoints.cadence import Kind
from memwatch.agent.files import Files
from memwatch.domain.errors import LogError
from tests.faults.failing_files import OPERATIONS
from tests.faults.forgetful_disk import ForgetfulDisk
from tests.faults.killing_files import KillingFiles

OPTIONS = RunOptions(agent="a", durability="os")
NEVER = 1 << 30


class Watched(Files):
    """Tells `watch` the name of each call and its last argument, before it is made."""

    def __init__(self, watch: Callable[[str, object], None]) -> None:
        for name in OPERATIONS:
            setattr(self, name, self._watched(name, getattr(Files, name), watch))

    def _watched(self, name: str, real: Any, watch: Callable[[str, object], None]) -> Any:
        def call(*args: Any) -> Any:
            watch(name, args[-1])
            return real(*args)

        return call


def in_a_child(work: Callable[[], None]) -> None:
    """Do something in a process that is killed at its end."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            traceback.print_exc()
            os._exit(3)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL


def test_a_killed_start_that_never_synced_is_durable_after_the_next_ones_sync(
    tmp_path: Path,
) -> None:
    root, memory, left = (tmp_path / name for name in ("disk", "memory", "left"))
    (root / "run").mkdir(parents=True)

    def unsynced() -> None:
        disk = ForgetfulDisk(root, memory)
        run = Run.open(root / "run", OPTIONS, files=KillingFiles(NEVER, "before", disk=disk))
        run.checkpoints.take("full")  # none is due at the next start: it would sync
        run.tiers["verified"].put("small", 1)
        run.tiers["verified"].put("large", "x" * 9_000)
        disk.remember(memory)

    def synced() -> None:
        disk = ForgetfulDisk(root, memory)
        run = Run.open(root / "run", OPTIONS, files=KillingFiles(NEVER, "before", disk=disk))
        assert run.log.durable_lsn == 0, "nothing is promised before the first sync"
        run.tiers["verified"].put("more", 2)
        assert run.log.sync() == run.log.last_lsn
        disk.save(left)

    in_a_child(unsynced)
    in_a_child(synced)
    state, report = recover(left / "run")
    assert report.lost == ()
    assert dict(state["verified"]) == {"small": 1, "large": "x" * 9_000, "more": 2}


def test_a_checkpoint_has_its_name_when_the_log_up_to_it_is_durable(tmp_path: Path) -> None:
    durable = list[int]()

    def named(name: str, new: object) -> None:
        if name == "rename" and Path(str(new)).parent.name == "checkpoints":
            durable.append(run.log.durable_lsn)

    with Run.open(tmp_path, OPTIONS, files=Watched(named)) as run:
        kinds: tuple[Kind, ...] = ("full", "incremental")
        for kind in kinds:
            run.tiers["verified"].put("a", kind)
            reached = run.log.last_lsn
            assert run.checkpoints.take(kind).committed
            assert durable.pop() >= reached


def test_a_log_whose_end_is_gone_is_told_by_the_checkpoints_and_makes_no_second_loss(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run"
    with Run.open(path, OPTIONS) as run:
        run.tiers["verified"].put("a", 1)
        run.checkpoints.take("full")
        run.tiers["verified"].put("b", 2)
        outcome = run.checkpoints.take("incremental")
    reached = int(outcome.id.rpartition("-")[2])
    newest = max((path / "wal").iterdir())
    lines = newest.read_bytes().splitlines(keepends=True)
    newest.write_bytes(b"".join(line for line in lines if b'"b"' not in line)[:500])
    state, report = recover(path)
    assert "b" not in state["verified"]
    assert any(f"was written when it reached {reached}" in lost for lost in report.lost)
    with Run.open(path, OPTIONS) as run:
        assert run.log.last_lsn > reached, "numbers that were given are not given again"
        run.tiers["verified"].put("c", 3)
    state, report = recover(path)
    assert (report.lost, set(state["verified"])) == ((), {"a", "c"})


def test_a_start_that_cannot_close_a_hole_in_the_log_is_refused_and_the_next_one_goes_on(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run"
    with Run.open(path, OPTIONS) as run:
        for number in range(3):
            run.tiers["verified"].put(f"key/{number}", number)
    (segment,) = (path / "wal").iterdir()
    segment.write_bytes(segment.read_bytes().replace(b'"key/1"', b'"key/X"'))

    def full_disk(name: str, new: object) -> None:
        if name == "rename" and Path(str(new)).parent.name == "checkpoints":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(LogError, match=r"behind the hole.*No space left.*make room"):
        Run.open(path, OPTIONS, files=Watched(full_disk))
    with Run.open(path, OPTIONS) as run:
        assert "key/0" in run.tiers["verified"]
        run.tiers["verified"].put("new", 1)
    state, report = recover(path)
    assert (report.lost, set(state["verified"])) == ((), {"key/0", "new"})
