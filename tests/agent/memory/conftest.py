"""Tiers in a folder of their own, closed when the test is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agent.memory.holding import Held


@pytest.fixture
def hold(tmp_path: Path) -> Iterator[Callable[..., Held]]:
    """Make tiers; takes what `Held` takes but for the folder."""
    made: list[Held] = []

    def make(*args: Any, **more: Any) -> Held:
        made.append(Held(tmp_path / f"run{len(made)}", *args, **more))
        return made[-1]

    yield make
    for held in made:
        held.log_files.heal()
        held.log.close()
