"""Textual's driver with fewer bytes, a count of them, and no fear of a dead terminal."""

from __future__ import annotations

import contextlib
import os
import sys
import termios
from typing import Any, TextIO, cast

from textual.app import App
from textual.drivers.linux_driver import LinuxDriver

from memwatch.ui.line import ascii_text
from memwatch.ui.terminal.cells import CellScreen
from memwatch.ui.terminal.lifeline import Lifeline

_RESTORE = (
    b"\x1b[m\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1004l"
    b"\x1b[?2004l\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?7h"
)


class _Sink:
    """The file that Textual's writer thread writes to: counts, and outlives the terminal."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.characters = 0
        self.dead = False

    def write(self, text: str) -> None:
        """Write; a terminal that is gone swallows everything, so that nobody waits for it."""
        self.characters += len(text)
        if not self.dead:
            try:
                self._file.write(text)
            except OSError:
                self.dead = True

    def flush(self) -> None:
        """Flush."""
        if not self.dead:
            try:
                self._file.flush()
            except OSError:
                self.dead = True

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._file.fileno()


class ThriftyDriver(LinuxDriver):
    """Sends only cells that changed. The mouse is off over SSH until it is switched on."""

    def __init__(
        self,
        app: App[Any],
        *,
        debug: bool = False,
        mouse: bool = True,
        size: tuple[int, int] | None = None,
    ) -> None:
        over_ssh = "SSH_CONNECTION" in os.environ  # each movement would cost a round trip
        super().__init__(app, debug=debug, mouse=mouse and not over_ssh, size=size)
        self.bytes_written = 0
        self._cells = CellScreen()
        self._queued = 0
        self._sink = _Sink(cast("TextIO", sys.__stderr__))
        self._file = cast("Any", self._sink)
        self._ascii_only = bool(getattr(app, "ascii_only", False))
        self._lifeline = Lifeline(self.fileno, self._leave, self._restore)

    @property
    def backlog(self) -> int:
        """Characters on their way to the terminal: a slow line has many."""
        return self._queued - self._sink.characters

    def forget(self) -> None:
        """Send the next output whole: something else changed what the terminal shows."""
        self._cells.forget()

    def resize(self, columns: int, rows: int) -> None:
        """Send nothing beyond the edges of a terminal of this size, and the next output whole."""
        self._cells.resize(columns, rows)

    def write(self, data: str) -> None:
        """Send what changes something."""
        out = self._cells.feed(ascii_text(data) if self._ascii_only else data)
        if out:
            self.bytes_written += len(out) if out.isascii() else len(out.encode())
            self._queued += len(out)
            super().write(out)

    def switch_mouse(self) -> bool:
        """Turn the mouse on or off; return whether it is on now."""
        if self._mouse:
            self._disable_mouse_support()
            self._mouse = False
        else:
            self._mouse = True
            self._enable_mouse_support()
        return self._mouse

    def start_application_mode(self) -> None:
        """Take the terminal over, and watch it."""
        cast("Any", super()).start_application_mode()  # Textual ships it without types
        self._lifeline.start()

    def close(self) -> None:
        """Let the last output out and stop watching."""
        super().close()
        self._lifeline.end()

    def run_input_thread(self) -> None:
        """Read keys until the terminal is gone."""
        try:
            super().run_input_thread()
        except OSError:
            self._lifeline.ask()

    def _leave(self) -> None:
        self._app.call_later(self._app.exit)

    def _restore(self) -> None:
        """Give the terminal back without waiting for it."""
        with contextlib.suppress(termios.error):
            if self.attrs_before is not None:
                termios.tcsetattr(self.fileno, termios.TCSANOW, self.attrs_before)
        with contextlib.suppress(OSError):
            os.set_blocking(self.fileno, False)
            os.write(self.fileno, _RESTORE)
