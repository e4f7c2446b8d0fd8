"""Gives memory back to the system: caches dropped, garbage collected, the allocator trimmed.

In this order, as each leaves something for the next; each is measured apart, in bytes that left
the process and in time. What is freed inside Python but stays with the allocator counts nothing.
Source: R8 ("memory is reclaimed fully").
"""

from __future__ import annotations

import gc
import os
import re
import time
from collections.abc import Callable
from typing import Any

from memwatch.host.procfs import PROC, read, read_memory

_RSS = re.compile(rb"^Rss:\s+(\d+) kB", re.MULTILINE)


class Reclaimer:
    """What can give memory back; caches of the agent register themselves."""

    def __init__(self) -> None:
        self._caches: dict[str, Callable[[], object]] = {}

    def register(self, name: str, drop: Callable[[], object]) -> None:
        """Have `drop` called to empty a cache that fills again by itself."""
        self._caches[name] = drop

    def reclaim(self) -> dict[str, Any]:
        """Do all of it; returns `freed_bytes`, `duration_us` and `steps` with the same of each.

        A step that cannot be done says why (`error`), and the others are done.
        """
        began_ns, before = time.monotonic_ns(), resident_bytes()
        steps = [_measured(f"cache {name}", drop) for name, drop in list(self._caches.items())]
        steps.append(_measured("garbage", gc.collect))
        steps.append(_measured("allocator", trim_allocator))
        return {"steps": steps, **_spent(began_ns, before)}


def resident_bytes() -> int:
    """Return what this process holds in memory, 0 where the kernel does not tell."""
    exact = _RSS.search(read(f"{PROC}/self/smaps_rollup") or b"")  # the others count in batches
    return int(exact[1]) * 1024 if exact else read_memory(PROC, os.getpid()).rss_bytes


def trim_allocator() -> None:
    """Return free memory of the C allocator to the system; OSError where there is no glibc."""
    import ctypes  # not loaded by an agent that is never short of memory

    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        raise OSError("this C library has no malloc_trim") from None
    trim(0)


def _measured(name: str, act: Callable[[], object]) -> dict[str, Any]:
    began_ns, before = time.monotonic_ns(), resident_bytes()
    done: dict[str, Any] = {"name": name}
    try:
        act()
    except Exception as error:  # noqa: BLE001 - caches are the agent's: one that fails is told
        done["error"] = str(error) or type(error).__name__
    return done | _spent(began_ns, before)


def _spent(began_ns: int, before: int) -> dict[str, int]:
    """Return what was freed (less than nothing where others took it) and how long it took."""
    freed_bytes = before - resident_bytes()
    return {"freed_bytes": freed_bytes, "duration_us": (time.monotonic_ns() - began_ns) // 1000}
