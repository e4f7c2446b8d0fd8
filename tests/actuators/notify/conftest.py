"""A server for the tests of what is sent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.actuators.notify.listening import Listener, listening


@pytest.fixture
def server() -> Iterator[Listener]:
    with listening() as listener:
        yield listener
