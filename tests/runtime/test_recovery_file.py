"""Recoveries are kept one a line; the newest that can be read are given, newest first."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from memwatch.agent.files import Files
from memwatch.domain.recovery import MeasuredTerm, PastRecovery, Span
from memwatch.runtime.runs.recovery_file import (
    RECOVERY_FILE,
    RecoveryNews,
    append_recovery,
    read_recoveries,
)
from tests.faults.failing_files import FailingFiles

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


class HalfWriting(Files):
    """A disk that fills while a line is written."""

    def __init__(self) -> None:
        self.write = lambda fd, data: os.write(fd, bytes(data)[: len(bytes(data)) // 2])


def test_half_a_line_on_a_full_disk_is_said_and_spoils_no_other(tmp_path: Path) -> None:
    append_recovery(tmp_path, FIRST)
    with pytest.raises(OSError, match="No space left"):
        append_recovery(tmp_path, SECOND, HalfWriting())
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


def test_a_pipe_under_its_name_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / RECOVERY_FILE)
    assert read_recoveries(tmp_path) == ()
    assert RecoveryNews(tmp_path).look() == ()
    with pytest.raises(OSError, match="is no file"):
        append_recovery(tmp_path, FIRST)


@pytest.mark.parametrize("target", ["/dev/zero", "elsewhere"])
def test_a_link_under_its_name_is_not_followed(tmp_path: Path, target: str) -> None:
    append_recovery(tmp_path, FIRST)
    (tmp_path / RECOVERY_FILE).rename(tmp_path / "elsewhere")
    (tmp_path / RECOVERY_FILE).symlink_to(target)
    assert read_recoveries(tmp_path) == ()
    with pytest.raises(OSError, match="symbolic"):
        append_recovery(tmp_path, SECOND)


def test_a_line_that_a_power_loss_cut_spoils_no_other(tmp_path: Path) -> None:
    append_recovery(tmp_path, FIRST)
    with (tmp_path / RECOVERY_FILE).open("ab") as file:
        file.write(b'{"t_us":3,"tot')
    append_recovery(tmp_path, SECOND)
    assert read_recoveries(tmp_path) == (SECOND, FIRST)


@pytest.mark.parametrize("call", ["open", "write"])
def test_a_disk_that_refuses_leaves_it_as_it_was(tmp_path: Path, call: str) -> None:
    append_recovery(tmp_path, FIRST)
    files = FailingFiles()
    files.fail_all(call)
    with pytest.raises(OSError, match="No space left"):
        append_recovery(tmp_path, SECOND, files)
    assert read_recoveries(tmp_path) == (FIRST,)


@pytest.mark.parametrize(
    "members",
    [
        {"total_s": 1e308},
        {"total_s": -1.0},
        {"t_us": 10**20},
        {"t_us": -1},
        {"waited_s": 1e300},
        {"memory_bytes": -1},
        {"terms": [{"name": "load", "seconds": -1.0, "bytes": 1}]},
        {"terms": [{"name": "load", "seconds": 1.0, "bytes": int("9" * 400)}]},
        {"expected": [{"name": "load", "seconds": 1e308, "bytes": 1}]},
    ],
)
def test_a_recovery_that_never_was_teaches_nothing(
    tmp_path: Path, members: dict[str, object]
) -> None:
    append_recovery(tmp_path, FIRST)
    with (tmp_path / RECOVERY_FILE).open("ab") as file:
        file.write(json.dumps({"t_us": 1, "total_s": 1.0, **members}).encode() + b"\n")
    assert read_recoveries(tmp_path) == (FIRST,)


def test_what_it_holds_is_harmless_on_a_screen(tmp_path: Path) -> None:
    terms = [{"name": "\x1b[2J" * 20, "seconds": 1.0, "bytes": 1}] * 100
    told = {
        "t_us": 1,
        "total_s": 1.0,
        "terms": terms,
        "estimate": {"low": 1, "likely": -1, "high": 1},
    }
    (tmp_path / RECOVERY_FILE).write_text(json.dumps(told) + "\n")
    (done,) = read_recoveries(tmp_path)
    assert len(done.terms) <= 16
    assert all(term.name.isprintable() and len(term.name) <= 20 for term in done.terms)
    assert done.estimate is None
