"""Writes a `sample` record when the tiers changed, and once in a while when they did not (R11)."""

from __future__ import annotations

import re
import threading
from pathlib import Path

from memwatch.agent.memory.tiers import Recorder, Tiers
from memwatch.domain.errors import LogError

AT_LEAST_S = 60.0
"""A sample comes at least this often."""

_STATUS = Path("/proc/self/status")
_FIELD = re.compile(rb"^(VmRSS|VmSwap):\s*(\d+) kB", re.MULTILINE)
_NAMES = {b"VmRSS": "rss_bytes", b"VmSwap": "swap_bytes"}


def own_memory() -> dict[str, int]:
    """Return `rss_bytes` and `swap_bytes` of this process, as far as the kernel tells."""
    try:
        status = _STATUS.read_bytes()
    except OSError:
        return {}
    return {_NAMES[name]: int(kib) * 1024 for name, kib in _FIELD.findall(status)}


class Sampler:
    """A thread that looks at the tiers every `period_s`."""

    def __init__(self, tiers: Tiers, record: Recorder, *, period_s: float = 5.0) -> None:
        self._tiers = tiers
        self._record = record
        self._period_s = period_s
        self._last: dict[str, dict[str, int]] = {}
        self._silent_s = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memwatch-sampler", daemon=True)

    def start(self) -> None:
        """Begin; the first sample is written at once."""
        self.sample()
        self._thread.start()

    def stop(self) -> None:
        """End the thread after a last sample."""
        self._stop.set()
        self._thread.join()
        self.sample()

    def sample(self) -> None:
        """Write a sample now; a log that refuses it only costs this sample."""
        totals = self._tiers.totals()
        try:
            self._record("sample", {"tiers": totals, "process": own_memory()})
        except LogError:
            return
        self._last, self._silent_s = totals, 0.0

    def _run(self) -> None:
        while not self._stop.wait(self._period_s):
            self._silent_s += self._period_s
            if self._silent_s >= AT_LEAST_S or self._tiers.totals() != self._last:
                self.sample()
