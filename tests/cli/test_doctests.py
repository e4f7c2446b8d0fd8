"""The examples in docstrings hold."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = ("amounts", "engine_text", "unit")


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(f"memwatch.cli.{name}"))
    assert failed == 0
    assert tried > 0
