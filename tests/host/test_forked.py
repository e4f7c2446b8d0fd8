"""A forked child finds locks free, whoever held them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import pytest

from memwatch.host.forked import new_lock, new_rlock


@pytest.mark.parametrize("make", [new_lock, new_rlock])
def test_a_child_finds_a_lock_free(make: Callable[[], threading.Lock | threading.RLock]) -> None:
    lock, held, enough = make(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            enough.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        child = os.fork()
        if child == 0:
            os._exit(0 if lock.acquire(timeout=5) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert not lock.acquire(blocking=False)
    finally:
        enough.set()
        thread.join()
