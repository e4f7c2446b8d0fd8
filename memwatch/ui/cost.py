"""What this viewer costs, measured now and then: memory, processor time, bytes to the terminal."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from memwatch.ui.frame import OwnCost

PERIOD_S = 5.0
_STATM = Path("/proc/self/statm")


class CostMeter:
    """Measures over spans of five seconds, so that the figure itself costs next to nothing."""

    def __init__(self, bytes_written: Callable[[], int | None]) -> None:
        self._bytes_written = bytes_written
        self._at = time.monotonic()
        self._cpu = time.process_time()
        self._written = 0
        self.latest = OwnCost()

    def look(self) -> OwnCost:
        """Return the newest figures, measuring again when it is time."""
        now = time.monotonic()
        span = now - self._at
        if span < PERIOD_S:
            return self.latest
        cpu, written = time.process_time(), self._bytes_written()
        self.latest = OwnCost(
            rss_bytes=resident_bytes(),
            cpu_percent=(cpu - self._cpu) / span * 100,
            terminal_bytes_per_s=None if written is None else (written - self._written) / span,
        )
        self._at, self._cpu, self._written = now, cpu, written or 0
        return self.latest


def resident_bytes() -> int | None:
    """Return our own resident memory; None where the system does not say."""
    try:
        pages = int(_STATM.read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
