"""Help has an example and costs nothing; output may end anywhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from memwatch.cli.entry import COMMANDS
from tests.cli.conftest import Command
from tests.e2e.stage import Stage


@pytest.mark.parametrize("command", [None, *COMMANDS])
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_has_an_example(memwatch: Command, command: str | None, option: str) -> None:
    words = [option] if command is None else [command, option]
    done = memwatch(*words)
    assert done.returncode == 0
    assert done.stderr == ""
    assert re.search(r"^examples?:$", done.stdout, re.MULTILINE)
    shown = "memwatch" if command is None else f"memwatch {command}"
    examples = done.stdout[done.stdout.index("example") :]
    assert f"  {shown}" in examples


def test_help_says_what_each_exit_status_means(memwatch: Command) -> None:
    for command in ("status", "inspect", "drill", "ctl", "tonight", "report"):
        assert "exit status: 0 " in memwatch(command, "--help").stdout


def test_help_writes_nothing(stage: Stage, memwatch: Command) -> None:
    memwatch("--help")
    memwatch("help")
    assert not stage.home.exists()


def test_version(memwatch: Command) -> None:
    done = memwatch("--version")
    assert done.returncode == 0
    assert re.fullmatch(r"memwatch \d+\.\d+\.\d+\S*\n", done.stdout)


@pytest.mark.parametrize("words", [["ls"], ["--help"], ["status", "--help"], ["--version"]])
def test_a_reader_that_has_gone_is_no_error(stage: Stage, words: list[str]) -> None:
    """As in `memwatch ls | head -0`."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "memwatch", *words],
        stdout=writing,
        stderr=subprocess.PIPE,
        env=stage.env,
        timeout=60,
        check=False,
    )
    os.close(writing)
    assert done.stderr == b""
    assert done.returncode == 141


def test_without_any_output_it_still_works(stage: Stage) -> None:
    """As in `memwatch ls >&-`."""
    done = subprocess.run(
        ["sh", "-c", f'exec "{sys.executable}" -m memwatch ls >&-'],
        stderr=subprocess.PIPE,
        env=stage.env,
        timeout=60,
        check=False,
    )
    assert done.stderr == b""
    assert done.returncode == 0
