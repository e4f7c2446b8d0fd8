"""A process goes by the name of its program or script."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.domain.text import inert
from memwatch.ingest import process_name as module
from memwatch.ingest.process_name import process_name


def test_the_examples_in_the_docstring() -> None:
    found = doctest.testmod(module)
    assert found.attempted >= 4
    assert found.failed == 0


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["/usr/bin/node", "--require", "x.js", "/opt/cli.js"], "cli.js"),
        (["python3", "-u", "-W", "error", "run.py"], "run.py"),
        (["python3", "-m"], "python3 -m"), (["python3"], "python3"), (["python3", "-"], "python3"),
        (["/usr/bin/python3.14t", "a.py"], "a.py"), (["-bash"], "-bash"), (["/bin/"], "bin"),
        (["nginx: worker process /etc/x"], "nginx: worker process /etc/x"), (["/"], "/"),
        (["pythonista", "a.py"], "pythonista"), (["ruby", "-e", "puts 1"], "ruby"),
    ],
)  # fmt: skip
def test_names(arguments: list[str], name: str) -> None:
    assert process_name(arguments, b"kernel") == name


@given(st.lists(st.text(max_size=300), max_size=5), st.binary(max_size=16))
def test_any_name_is_inert_and_short(arguments: list[str], command: bytes) -> None:
    name = process_name(arguments, command)
    assert len(name) <= 60
    assert inert(name, 60) == name
