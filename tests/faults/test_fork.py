"""A forked child of an agent looks, changes nothing, and waits for none of the parent's threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from memwatch.agent import LogError, Run, RunOptions
from tests.waiting import wait_for


def files_of(path: Path) -> dict[str, str]:
    """Return the content of all files that no thread of the parent writes meanwhile."""
    files = [each for each in path.rglob("*") if each.is_file() and each.name != "state.json"]
    return {str(each): sha256(each.read_bytes()).hexdigest() for each in files}


def child_ends_with(act: Callable[[], object]) -> int:
    """Fork, and return how the child ended; -9 for one that never did."""
    child = os.fork()
    if child == 0:
        try:
            act()
        except BaseException:  # noqa: BLE001 - nothing of the child may reach pytest
            os._exit(1)
        os._exit(0)
    try:
        _, status = wait_for(lambda: _ended(child), "the child")
    except AssertionError:
        os.kill(child, 9)
        _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _ended(child: int) -> tuple[int, int] | None:
    pid, status = os.waitpid(child, os.WNOHANG)
    return (pid, status) if pid else None


def refused(act: Callable[[], object]) -> None:
    try:
        act()
    except LogError:
        return
    raise AssertionError("it was not refused")


def test_a_child_reads_changes_nothing_and_waits_for_nobody(tmp_path: Path) -> None:
    options = RunOptions(agent="a", workspace=tmp_path / "files", sample_s=1_000)
    held, enough = threading.Event(), threading.Event()
    with Run.open(tmp_path / "run", options) as run:
        tier = run.tiers["verified"]
        tier.put("a", "x" * 9_000)
        run.write_file("f", "parent's")
        run.log.sync()
        before = files_of(tmp_path)

        def hold() -> None:
            with run.tiers.lock, run.tiers._shared.places.blobs._lock:
                held.set()
                enough.wait()

        def child() -> None:
            assert tier.get("a") == "x" * 9_000
            refused(lambda: tier.put("b", 1))
            refused(lambda: tier.put("b", "y" * 9_000))
            refused(lambda: tier.delete("a"))
            refused(lambda: run.write_file("f", "child's"))
            refused(lambda: run.delete_file("f"))
            refused(lambda: run.call("s", 1, lambda: 1))
            refused(lambda: run.experiment("c").__enter__())
            run.tiers.purge(how="reclaim", cause="agent")
            assert not run.checkpoints.take("full").committed
            run.safe_point()
            with run:
                pass

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        try:
            assert child_ends_with(child) == 0
        finally:
            enough.set()
            thread.join()
        assert files_of(tmp_path) == before
        tier.put("b", 1)
