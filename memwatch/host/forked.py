"""Locks that a forked child finds free, whichever of the parent's threads held them.

The thread that would release one does not exist in the child. What the lock guards may be half
changed there: good enough to be looked at, and to refuse what the child must not do.
"""

from __future__ import annotations

import os
import threading
import weakref

_locks: weakref.WeakSet[threading.Lock | threading.RLock] = weakref.WeakSet()


def new_lock() -> threading.Lock:
    """Return a `threading.Lock`."""
    lock = threading.Lock()
    _locks.add(lock)
    return lock


def new_rlock() -> threading.RLock:
    """Return a `threading.RLock`."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _free_all() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()  # type: ignore[union-attr] # not in typeshed; stdlib's own use it so


os.register_at_fork(after_in_child=_free_all)
