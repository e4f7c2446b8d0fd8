"""Pages that the system keeps: asked for, and asked to go."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memwatch.host.page_cache import cached_share, forget


def test_what_was_just_written_is_cached(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(100_000))
    assert cached_share([path]) == 1.0


def test_what_is_forgotten_is_cold_or_said_to_be_warm(tmp_path: Path) -> None:
    path = tmp_path / "file"
    content = os.urandom(300_000)
    path.write_bytes(content)
    share = forget([path])
    assert share is not None
    assert share == cached_share([path])
    assert share < 0.5 or share == 1.0  # a file system in memory keeps all
    assert path.read_bytes() == content
    assert cached_share([path]) == 1.0


def test_what_is_no_file_is_passed_by(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "empty").touch()
    names = ["pipe", "link", "empty", "none", "."]
    assert forget(tmp_path / name for name in names) is None


def test_without_the_system_call_nothing_is_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "posix_fadvise")
    path = tmp_path / "file"
    path.write_bytes(b"x")
    assert forget([path]) is None
