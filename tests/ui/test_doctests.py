"""The examples in docstrings hold."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import memwatch.ui

MODULES = [
    module.name
    for module in pkgutil.walk_packages(memwatch.ui.__path__, "memwatch.ui.")
    if not module.ispkg
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0
