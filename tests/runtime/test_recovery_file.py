"""Recoveries are kept one a line; the newest that can be read are given, newest first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memwatch.domain.recovery import MeasuredTerm, PastRecovery, Span
from memwatch.runtime.runs.recovery_file import (
    RECOVERY_FILE,
    RecoveryNews,
    append_recovery,
    read_recoveries,
)

FIRST = PastRecovery(t_us=1, total_s=2.5, terms=(MeasuredTerm("load", 1.0, 5),), matches=True)
SECOND = PastRecovery(
    t_us=2, total_s=3.5, kind="restart", estimate=Span(low=2.0, likely=3.0, high=4.0)
)


def test_the_newest_is_read(tmp_path: Path) -> None:
    assert read_recoveries(tmp_path) == ()
    append_recovery(tmp_path, FIRST)
    assert read_recoveries(tmp_path) == (FIRST,)
    append_recovery(tmp_path, SECOND)
    assert read_recoveries(tmp_path) == (SECOND, FIRST)
    assert read_recoveries(tmp_path, most=1) == (SECOND,)
    assert len((tmp_path / RECOVERY_FILE).read_bytes().splitlines()) == 2


def test_what_cannot_be_read_is_passed_by(tmp_path: Path) -> None:
    append_recovery(tmp_path, FIRST)
    with (tmp_path / RECOVERY_FILE).open("ab") as file:
        file.write(b'{"t_us":"soon"}\n' + b"[" * 5_000 + b'\n\xff\xfe\n{"t_us":3,"tot')
    assert read_recoveries(tmp_path) == (FIRST,)


def test_only_the_end_of_a_long_file_is_read(tmp_path: Path) -> None:
    (tmp_path / RECOVERY_FILE).write_bytes(b"x" * 200_000 + b"\n")
    append_recovery(tmp_path, SECOND)
    assert read_recoveries(tmp_path) == (SECOND,)


def test_half_a_line_on_a_full_disk_is_said_and_spoils_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append_recovery(tmp_path, FIRST)
    write = os.write
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda fd, data: write(fd, data[: len(data) // 2]))
        with pytest.raises(OSError, match="No space left"):
            append_recovery(tmp_path, SECOND)
    assert read_recoveries(tmp_path) == (FIRST,)
    append_recovery(tmp_path, SECOND)
    assert read_recoveries(tmp_path) == (SECOND, FIRST)


def test_news_are_told_once(tmp_path: Path) -> None:
    news = RecoveryNews(tmp_path)
    assert news.look() is None
    append_recovery(tmp_path, FIRST)
    assert [news.look(), news.look()] == [(FIRST,), None]
    append_recovery(tmp_path, SECOND)
    assert [news.look(), news.look()] == [(SECOND, FIRST), None]
