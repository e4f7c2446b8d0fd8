"""What holds for the whole suite, whoever starts it."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Heed SIGINT: a shell makes what it starts in the background ignore it, children included."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
