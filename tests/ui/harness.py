"""Opens the dashboard on a fake run, waits until it stands still, and reads its screen."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from memwatch.domain.snapshot import Snapshot
from memwatch.ui.app import DashboardApp
from memwatch.ui.frame import Frame
from memwatch.ui.line import Line, text_of
from tests.ui.fake_session import FakeRun

THEMES = Path(__file__).resolve().parents[2] / "themes"
DEADLINE_S = 20.0


def dashboard(run: FakeRun, **options: Any) -> DashboardApp:
    """Return the app on a fake run, with quick frames."""
    settings: dict[str, Any] = {
        "theme": "memwatch",
        "target": "demo",
        "refresh_s": 0.02,
        "dirs": [THEMES],
    }
    return DashboardApp(run.connect, **(settings | options))


@asynccontextmanager
async def opened(
    run: FakeRun, size: tuple[int, int] = (120, 40), **options: Any
) -> AsyncIterator[tuple[DashboardApp, Pilot[None]]]:
    """Open the app in a terminal of that size, settled."""
    app = dashboard(run, **options)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        yield app, pilot


async def settle(pilot: Pilot[Any], condition: Callable[[], object] = lambda: True) -> None:
    """Wait until nothing is left to do and `condition` holds: the queue is empty, the jobs are
    answered, and a frame was painted since. Fails the test after a deadline."""
    app = pilot.app
    assert isinstance(app, DashboardApp)
    quiet = 0
    until = time.monotonic() + DEADLINE_S
    while quiet < 3:
        await pilot.pause()
        shown = app.frame.snapshot is not None or app.frame.link.state == "lost"
        done = shown and not app.bridge.unanswered and bool(condition())
        quiet = quiet + 1 if done else 0
        assert time.monotonic() < until, f"not settled:\n{screen_text(app)}"


def screen_lines(app: DashboardApp) -> list[str]:
    """Return what the terminal shows, line by line."""
    return [strip.text for strip in app.screen._compositor.render_strips()]


def screen_text(app: DashboardApp) -> str:
    """Return what the terminal shows."""
    return "\n".join(screen_lines(app))


def texts(lines: list[Line]) -> list[str]:
    """Return lines without their styles and trailing blanks."""
    return [text_of(line).rstrip() for line in lines]


def frame_of(run: FakeRun | None = None, **changes: Any) -> Frame:
    """Return a frame of a fake run at the start of its clock."""
    return Frame(**({"snapshot": snapshot_of(run)} | changes))


def snapshot_of(run: FakeRun | None = None) -> Snapshot:
    """Return a snapshot of a fake run at the start of its clock."""
    return (run or FakeRun()).snapshot()
