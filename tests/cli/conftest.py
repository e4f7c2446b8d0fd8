"""A home of its own for each test, and commands run in it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.stage import Stage

Result = subprocess.CompletedProcess[str]
Command = Callable[..., Result]
Tree = dict[str, tuple[int, int, bytes]]


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


@pytest.fixture
def memwatch(stage: Stage) -> Command:
    """Run `memwatch` with some words."""

    def run(*words: str, cwd: Path | None = None, **env: str) -> Result:
        return subprocess.run(
            [sys.executable, "-m", "memwatch", *words],
            capture_output=True,
            text=True,
            env={**stage.env, **env},
            cwd=cwd or stage.folder,
            timeout=60,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    return run


def tree(folder: Path) -> Tree:
    """Return all that lies below a folder: mode, time of change and content."""
    found: Tree = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        text = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[os.fspath(path.relative_to(folder))] = (status.st_mode, status.st_mtime_ns, text)
    return found
