"""The examples in docstrings hold."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import memwatch.engine

MODULES = [m.name for m in pkgutil.iter_modules(memwatch.engine.__path__, "memwatch.engine.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0
