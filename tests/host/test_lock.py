"""One holder, known by its pid; nothing outlives the process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memwatch.host.lock import FileLock, LockHeldError, holder

HOLD = "import sys; from pathlib import Path; from memwatch.host.lock import FileLock as L; \
lock = L.acquire(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"


def test_a_second_one_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    with FileLock.acquire(path):
        with pytest.raises(LockHeldError, match=f"process {os.getpid()}") as caught:
            FileLock.acquire(path)
        assert (caught.value.pid, holder(path)) == (os.getpid(), os.getpid())
    assert holder(path) is None
    FileLock.acquire(path).release()


def test_nobody_holds_what_is_not_there(tmp_path: Path) -> None:
    assert holder(tmp_path / "none") is None
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic"):
        FileLock.acquire(tmp_path / "link")
    assert not (tmp_path / "target").exists()


@pytest.mark.e2e
def test_it_dies_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLD, path], stdin=pipe, stdout=pipe) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        with pytest.raises(LockHeldError) as caught:
            FileLock.acquire(path)
        assert caught.value.pid == child.pid
        child.kill()
        child.wait()
    FileLock.acquire(path).release()


def test_a_forked_child_does_not_keep_it(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    lock = FileLock.acquire(path)
    release_child, child_may_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(child_may_end)
        os.read(release_child, 1)
        os._exit(1 if lock.mine else 0)
    lock.release()
    FileLock.acquire(path).release()
    os.close(child_may_end)
    os.close(release_child)
    assert os.waitpid(pid, 0)[1] == 0


def test_those_who_only_look_keep_nobody_from_the_lock(tmp_path: Path) -> None:
    """`ls` and `status` look at the locks of agents that may be just starting."""
    path = tmp_path / "lock"
    FileLock.acquire(path).release()
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            holder(path)

    looking = [threading.Thread(target=look, daemon=True) for _ in range(2)]
    for thread in looking:
        thread.start()
    try:
        for _ in range(200):
            FileLock.acquire(path).release()
    finally:
        done.set()
        for thread in looking:
            thread.join(timeout=10)
