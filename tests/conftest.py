"""What holds for the whole suite, whoever starts it."""

from __future__ import annotations

import signal

import pytest
from hypothesis import settings

# How long an example takes says how busy the machine is: speed is for the benchmarks. What a gate
# says depends on the code alone, so its examples are the same each time; campaigns try others.
settings.register_profile("gate", deadline=None, derandomize=True)
settings.register_profile("campaign", deadline=None)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Long campaigns run only when they are asked for."""
    parser.addoption(
        "--campaign",
        action="store_true",
        help="long campaigns as well, and new examples of properties",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Choose the examples of properties, and heed SIGINT.

    A shell makes what it starts in the background ignore it, children included.
    """
    settings.load_profile("campaign" if config.getoption("--campaign") else "gate")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is marked `campaign`, unless asked."""
    if config.getoption("--campaign"):
        return
    long = [item for item in items if item.get_closest_marker("campaign")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]
