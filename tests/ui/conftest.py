"""One zone of time and one kind of terminal, wherever the tests run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

_UNSET = ("NO_COLOR", "SSH_CONNECTION", "TEXTUAL_THEME", "TEXTUAL_COLOR_SYSTEM")


@pytest.fixture(autouse=True)
def same_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """UTC, truecolor, not over SSH, and a home of its own."""
    monkeypatch.setenv("MEMWATCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    for name in _UNSET:
        monkeypatch.delenv(name, raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
