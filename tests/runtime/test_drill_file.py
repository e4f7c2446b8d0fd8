"""Drills are kept one a line; the newest that can be read is shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memwatch.domain.recovery import MeasuredTerm, PastRecovery
from memwatch.runtime.runs.drill_file import DRILL_FILE, DrillNews, append_drill, read_drill

FIRST = PastRecovery(t_us=1, total_s=2.5, terms=(MeasuredTerm("load", 1.0, 5),), matches=True)
SECOND = PastRecovery(t_us=2, total_s=3.5, cold_cache=True)


def test_the_newest_is_read(tmp_path: Path) -> None:
    assert read_drill(tmp_path) is None
    append_drill(tmp_path, FIRST)
    assert read_drill(tmp_path) == FIRST
    append_drill(tmp_path, SECOND)
    assert read_drill(tmp_path) == SECOND
    assert len((tmp_path / DRILL_FILE).read_bytes().splitlines()) == 2


def test_what_cannot_be_read_is_passed_by(tmp_path: Path) -> None:
    append_drill(tmp_path, FIRST)
    with (tmp_path / DRILL_FILE).open("ab") as file:
        file.write(b'{"t_us":"soon"}\n' + b"[" * 5_000 + b'\n\xff\xfe\n{"t_us":3,"tot')
    assert read_drill(tmp_path) == FIRST


def test_only_the_end_of_a_long_file_is_read(tmp_path: Path) -> None:
    (tmp_path / DRILL_FILE).write_bytes(b"x" * 200_000 + b"\n")
    append_drill(tmp_path, SECOND)
    assert read_drill(tmp_path) == SECOND


def test_half_a_line_on_a_full_disk_is_said_and_spoils_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_drill(tmp_path, FIRST)
    write = os.write
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda fd, data: write(fd, data[: len(data) // 2]))
        with pytest.raises(OSError, match="No space left"):
            append_drill(tmp_path, SECOND)
    assert read_drill(tmp_path) == FIRST
    append_drill(tmp_path, SECOND)
    assert read_drill(tmp_path) == SECOND


def test_news_are_told_once(tmp_path: Path) -> None:
    news = DrillNews(tmp_path)
    assert news.look() is None
    append_drill(tmp_path, FIRST)
    assert [news.look(), news.look()] == [FIRST, None]
    append_drill(tmp_path, SECOND)
    assert [news.look(), news.look()] == [SECOND, None]
