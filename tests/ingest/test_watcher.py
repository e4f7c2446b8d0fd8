"""A hint comes soon after a change, whatever becomes of the directories."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import watchfiles

from memwatch.ingest import watcher as module
from memwatch.ingest.watcher import Watcher

PATIENCE_S = 20.0


class Watched:
    """A running watcher, and a way to see whether it noticed something."""

    def __init__(self, *paths: Path) -> None:
        self.wake = threading.Event()
        self.watcher = Watcher(paths, self.wake)
        self.watcher.start()

    def notices(self, change: Callable[[], object]) -> None:
        """Make a change, again and again until the watcher is armed and says so."""
        until = time.monotonic() + PATIENCE_S
        self.wake.clear()
        while True:
            change()
            if self.wake.wait(0.5):
                return
            assert time.monotonic() < until, "no hint"

    def becomes(self, mode: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while self.watcher.mode != mode:
            assert time.monotonic() < until, (self.watcher.mode, self.watcher.why)
            self.wake.wait(0.05)


@pytest.fixture
def watch() -> Iterator[Callable[..., Watched]]:
    started: list[Watched] = []

    def begin(*paths: Path) -> Watched:
        started.append(Watched(*paths))
        return started[-1]

    yield begin
    for one in started:
        one.watcher.stop()
        assert not one.watcher._thread.is_alive()


def append(path: Path) -> Callable[[], object]:
    def change() -> None:
        with path.open("ab") as file:
            file.write(b"x")

    return change


def test_an_append_and_a_new_file_are_noticed(
    tmp_path: Path, watch: Callable[..., Watched]
) -> None:
    (tmp_path / "a.wal").touch()
    it = watch(tmp_path)
    it.notices(append(tmp_path / "a.wal"))
    it.notices(append(tmp_path / "b.wal"))
    it.notices(append(tmp_path / ".git"))
    assert (it.watcher.mode, it.watcher.why) == ("events", "")


def test_a_directory_that_was_replaced_is_watched_again(
    tmp_path: Path, watch: Callable[..., Watched]
) -> None:
    wal = tmp_path / "wal"
    wal.mkdir()
    it = watch(wal)
    it.notices(append(wal / "a"))
    for _ in range(2):
        shutil.rmtree(wal)
        wal.mkdir()
        it.notices(append(wal / "a"))
    it.becomes("events")


def test_directories_may_come_later_and_go(tmp_path: Path, watch: Callable[..., Watched]) -> None:
    wal = tmp_path / "wal"
    it = watch(wal, tmp_path / "never")
    it.becomes("polling")
    assert it.watcher.why == "the directories are not there"
    wal.mkdir()
    it.becomes("events")
    it.notices(append(wal / "a"))
    shutil.rmtree(wal)
    it.becomes("polling")


def test_a_file_system_without_events_is_polled(
    tmp_path: Path, watch: Callable[..., Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "file_system", {tmp_path: "nfs4"}.get)
    it = watch(tmp_path)
    it.becomes("polling")
    assert it.watcher.why == "nfs4 tells nothing of changes made elsewhere"
    it.notices(lambda: None)


def test_a_disk_that_does_not_answer_is_polled(
    tmp_path: Path, watch: Callable[..., Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ask", Mock(return_value=None))
    it = watch(tmp_path)
    it.becomes("polling")
    assert it.watcher.why == "the file system does not answer"


@pytest.mark.parametrize(
    "error", [FileNotFoundError("limit"), OSError(28, "limit"), RuntimeError()]
)
def test_without_events_to_be_had_it_polls_and_tries_again(
    tmp_path: Path,
    watch: Callable[..., Watched],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    def refuse(*paths: Path, **options: Any) -> Iterator[set[Any]]:
        raise error
        yield set()

    real = watchfiles.watch
    monkeypatch.setattr(module, "_RETRY_S", 0.3)
    monkeypatch.setattr(watchfiles, "watch", refuse)
    it = watch(tmp_path)
    it.becomes("polling")
    assert it.watcher.why.startswith("no file events to be had")
    it.notices(lambda: None)
    monkeypatch.setattr(watchfiles, "watch", real)
    it.becomes("events")
    it.notices(append(tmp_path / "a"))


def test_a_writer_that_never_pauses_is_followed_by_a_beat(
    tmp_path: Path, watch: Callable[..., Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[float] = []

    def busy(*paths: Path, **options: Any) -> Iterator[set[str]]:
        calls.append(time.monotonic())
        for _ in range(module._BUSY_BATCHES):
            yield {"change"}
        raise AssertionError("no event is waited for any more")

    monkeypatch.setattr(module, "_BUSY_S", 0.3)
    monkeypatch.setattr(watchfiles, "watch", busy)
    it = watch(tmp_path)
    until = time.monotonic() + PATIENCE_S
    while len(calls) < 3 and time.monotonic() < until:
        it.wake.clear()
        assert it.wake.wait(PATIENCE_S)
    assert calls[2] - calls[0] >= 0.6, "events are not asked for meanwhile"


def test_it_can_be_stopped_before_it_was_started(tmp_path: Path) -> None:
    Watcher([tmp_path], threading.Event()).stop()
