"""A loop of the guard outlives a defect: it is told, and tried again later and later.

A guard that ends in the night because of one record it did not foresee guards nothing.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable

from memwatch.domain.units import duration_text

FIRST_S = 1.0
LONGEST_S = 60.0
"""A loop that fails again and again is tried again this often, for ever."""

Tell = Callable[[str], None]


def lasting(
    what: str,
    loop: Callable[[], None],
    stop: threading.Event,
    tell: Tell,
    first_s: float = FIRST_S,
    longest_s: float = LONGEST_S,
) -> None:
    """Run `loop` until it returns; when it raises, say so, wait, and run it again.

    Only exceptions that end no program are survived. The wait doubles with each failure, and
    begins anew once the loop went well for longer than the longest wait.
    """
    wait_s = first_s
    while True:
        began = time.monotonic()
        try:
            loop()
        except Exception as error:  # noqa: BLE001 - whatever it is, the watch goes on
            traceback.print_exc()  # into guard.log
            if time.monotonic() - began > longest_s:
                wait_s = first_s
            why = f"{type(error).__name__}: {error}"
            tell(f"{what} failed, tried again in {duration_text(wait_s)} ({why})")
        else:
            return
        if stop.wait(wait_s):
            return
        wait_s = min(wait_s * 2, longest_s)
