"""Ends the viewer when nobody can see it any more.

A terminal that goes away makes Textual's input thread spin when the hang-up signal is ignored
(nohup, sudo), and its output block. So a thread of our own watches: the terminal hung up, the
parent is gone, a signal came. It asks the app to leave, and after some grace leaves itself.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

EXIT_HUNG_UP = 129
"""Status of a process that SIGHUP ended."""

_BEAT_MS = 1000
_GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL


class Lifeline:
    """Watches the terminal `fd`; `leave` is called once, in the watching thread.

    `restore` puts the terminal back as far as possible, right before the hard exit.
    """

    def __init__(
        self,
        fd: int,
        leave: Callable[[], object],
        restore: Callable[[], object],
        grace_s: float = 3.0,
    ) -> None:
        self._fd = fd
        self._leave = leave
        self._restore = restore
        self._grace_s = grace_s
        self._parent = os.getppid()
        self._asked = threading.Event()
        self._ended = threading.Event()
        self._handlers: dict[int, Any] = {}

    def start(self) -> None:
        """Watch, and take over SIGTERM and SIGHUP (an ignored SIGHUP stays ignored).

        To be called in the main thread; once is enough.
        """
        if self._handlers:
            return
        for number in (signal.SIGTERM, signal.SIGHUP):
            self._handlers[number] = signal.getsignal(number)
            if self._handlers[number] is not signal.SIG_IGN:
                signal.signal(number, self._on_signal)
        threading.Thread(target=self._watch, name="viewer-lifeline", daemon=True).start()

    def end(self) -> None:
        """Stop watching and give the signals back: the app ended by itself."""
        self._ended.set()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def ask(self) -> None:
        """Have the viewer leave, from any thread."""
        self._asked.set()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._asked.set()

    def _watch(self) -> None:
        poller = select.poll()
        poller.register(self._fd, 0)  # asks for nothing: a hang-up is always reported
        while not self._ended.is_set():
            found = poller.poll(_BEAT_MS)
            gone = any(event & _GONE for _, event in found)
            if gone or self._asked.is_set() or os.getppid() != self._parent:
                break
        if self._ended.is_set():
            return
        self._leave()
        if not self._ended.wait(self._grace_s):
            self._restore()
            os._exit(EXIT_HUNG_UP)
