"""Stores that lie: links, pipes, names, sizes, files that vanish; nothing is written, ever."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.domain.checkpoints import StoreLook
from memwatch.domain.clock import ManualClock
from memwatch.ingest.stores.directory import look_directory
from memwatch.ingest.stores.endings import Ending, ending
from memwatch.ingest.stores.names import entry_name, shard_of
from memwatch.ingest.stores.walk import Found, Walk, open_directory
from tests.ingest.stores.making import (
    NOW_US,
    TRAINER,
    archive,
    hf,
    look,
    put,
    row,
    safetensors,
    states,
)


def traces(places: list[Path]) -> dict[str, tuple[int, ...]]:
    """Return all that a look could leave behind, times of access among it."""
    found: dict[str, tuple[int, ...]] = {}
    for place in places:
        status = place.lstat()
        found[os.fspath(place)] = (
            status.st_mode, status.st_size, status.st_nlink,
            status.st_mtime_ns, status.st_ctime_ns, status.st_atime_ns,
        )  # fmt: skip
    return found


def test_a_look_leaves_no_trace(tmp_path: Path) -> None:
    put(tmp_path, "checkpoint-1", hf(1))
    put(tmp_path, "last.ckpt", archive(500))
    put(tmp_path, "latest", b"global_step3")
    places = [tmp_path, *tmp_path.rglob("*")]
    for place in places:  # older than its change: would be set anew
        os.utime(place, ns=(NOW_US * 1000 - 10**18, place.stat().st_mtime_ns))
    before = traces(places)
    assert look(tmp_path).count == 2
    assert traces(places) == before


def test_links_are_not_followed(tmp_path: Path) -> None:
    elsewhere = put(tmp_path, "elsewhere/checkpoint-1", hf(1))
    store = tmp_path / "store"
    real = put(store, "checkpoint-2", hf(2))
    (store / "checkpoint-3").symlink_to(elsewhere)
    (store / "checkpoint-4").symlink_to(".")
    (store / "last.ckpt").symlink_to(real / "optimizer.pt")
    (real / "loop").symlink_to("..")
    (real / "passwd.pt").symlink_to("/etc/passwd")
    (store / "latest").symlink_to("/etc/passwd")
    seen = look(store)
    assert [one.id for one in seen.checkpoints] == ["checkpoint-2"]
    assert seen.total_bytes == sum(map(len, hf(2).values()))


def test_pipes_keep_nobody_waiting(tmp_path: Path) -> None:
    place = put(tmp_path, "checkpoint-1", {**hf(1)})
    (place / TRAINER).unlink()
    for pipe in (
        place / TRAINER,
        place / "a.index.json",
        tmp_path / "last.ckpt",
        tmp_path / "latest",
    ):
        os.mkfifo(pipe)
    seen = look(tmp_path)
    assert [one.id for one in seen.checkpoints] == ["checkpoint-1"]
    assert "no trainer_state.json" in row(seen, "checkpoint-1").reason


@pytest.mark.parametrize(
    "name",
    [
        b"checkpoint-5\x1b[31m",
        b"checkpoint-5\nroot",
        b"checkpoint-5\xff\xfe",
        b"checkpoint-5\xe2\x80\xae",
    ],
)
def test_a_name_can_be_kept_and_sent(tmp_path: Path, name: bytes) -> None:
    put(tmp_path, os.fsdecode(name), hf(5))
    seen = look(tmp_path)
    (one,) = seen.checkpoints
    assert one.state == "committed"
    assert msgspec.json.decode(msgspec.json.encode(seen), type=StoreLook) == seen


def test_a_number_may_be_any(tmp_path: Path) -> None:
    put(tmp_path, f"checkpoint-{'9' * 200}", hf(1))
    assert look(tmp_path).checkpoints[0].step is None


def test_a_header_that_lies(tmp_path: Path) -> None:
    lies = {
        "a": b"\xff" * 8,
        "b": (50 << 20).to_bytes(8, "little"),
        "c": (12).to_bytes(8, "little") + b'{"a":[[[[[[[',
        "d": b"\0" * 7,
        "e": safetensors(10).replace(b'"data_offsets": [0, 10]', b'"data_offsets": [0, 99]'),
    }
    for name, text in lies.items():
        put(tmp_path, f"model_{name}_1.safetensors", text)
    assert set(states(look(tmp_path)).values()) == {"incomplete"}


def test_files_may_vanish_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "checkpoint-1", hf(1), 50)
    put(tmp_path, "checkpoint-2", hf(2), 30)
    put(tmp_path, "last.ckpt", archive(9), 20)
    count = Walk._count

    def vanishing(walk: Walk, entry: os.DirEntry[str], path: str, found: Found) -> None:
        if path in {"optimizer.pt", "last.ckpt"}:
            for place in tmp_path.rglob(path):
                place.unlink()
        count(walk, entry, path, found)

    monkeypatch.setattr(Walk, "_count", vanishing)
    seen = look(tmp_path)
    assert "last.ckpt" not in states(seen)
    assert row(seen, "checkpoint-1").files == row(seen, "checkpoint-2").files == 3


def test_a_store_that_vanishes_keeps_what_was_known(tmp_path: Path) -> None:
    put(tmp_path / "store", "checkpoint-1", hf(1))
    first = look(tmp_path / "store")
    (tmp_path / "store").rename(tmp_path / "moved")
    second = look(tmp_path / "store", first, after_s=5)
    assert second.checkpoints == first.checkpoints
    assert second.t_us == NOW_US + 5_000_000
    assert "No such file" in second.why
    assert look(tmp_path / "store").checkpoints == ()


def test_what_is_closed_to_us_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "checkpoint-1", hf(1))
    real = os.open

    def closed(path: str, flags: int, *rest: int, dir_fd: int | None = None) -> int:
        if path == "model.safetensors" or (path == "checkpoint-2" and dir_fd is not None):
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *rest, dir_fd=dir_fd)

    put(tmp_path, "checkpoint-2", hf(2))
    monkeypatch.setattr(os, "open", closed)
    seen = look(tmp_path)
    assert "checkpoint-2" not in states(seen)
    assert (
        row(seen, "checkpoint-1").reason == "model.safetensors cannot be read (Permission denied)"
    )


def test_a_hundred_thousand_files_cost_no_more_than_looking_at_them(tmp_path: Path) -> None:
    """The bound is on what is asked of the system: a directory is listed, a file is not opened."""
    place = put(tmp_path, "checkpoint-1", hf(1))
    (place / "shards").mkdir()
    folder = os.open(place / "shards", os.O_RDONLY)
    for number in range(100_000):
        os.close(os.open(f"part-{number}", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)
    asked: dict[str, int] = {}
    with pytest.MonkeyPatch.context() as patch:
        for name in ("open", "scandir", "pread", "stat"):
            real = getattr(os, name)

            def counted(
                *words: object, _real: object = real, _name: str = name, **named: object
            ) -> object:
                asked[_name] = asked.get(_name, 0) + 1
                return _real(*words, **named)  # type: ignore[operator] # a function of os

            patch.setattr(os, name, counted)
        seen = look_directory(tmp_path, clock=ManualClock(NOW_US), deadline_s=60)
    assert (row(seen, "checkpoint-1").files, seen.why) == (100_004, "")
    assert asked["scandir"] < 2_000  # three of ours, and one a process for who holds what
    assert asked["open"] < 5_000
    assert asked["pread"] < 20


def test_names_and_states_take_bounded_memory(tmp_path: Path) -> None:
    place = put(tmp_path, "checkpoint-1", hf(1))
    for number in range(5_000):
        (place / f"part-{number}").touch()
    tracemalloc.start()
    seen = look_directory(tmp_path, clock=ManualClock(NOW_US))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert row(seen, "checkpoint-1").files == 5_004
    assert peak < 2_000_000


def test_more_than_can_be_looked_at_is_said(tmp_path: Path) -> None:
    for step in range(20):
        put(tmp_path, f"checkpoint-{step}", hf(step), 60 - step)
    seen = look_directory(tmp_path, clock=ManualClock(NOW_US), most_files=50)
    assert seen.why.startswith("too much to be looked at in one go: 7 of 20 checkpoints")
    assert [one.step for one in seen.checkpoints] == [13, 14, 15, 16, 17, 18, 19]
    assert seen.count == 20
    late = look_directory(tmp_path, clock=ManualClock(NOW_US), deadline_s=0)
    assert "too much" in late.why


_NAMES = [
    TRAINER, "model.safetensors", "optimizer.pt", "a.pt.tmp", "sub/.metadata", "sub/__0_0.distcp",
    "m-00001-of-00002.pt", "m-00002-of-00002.pt", "a.index.json", "random_states_0.pkl", "x.json",
]  # fmt: skip
_CONTENTS = [b"", b"{}", b"[", archive(9), archive(9)[:-1], safetensors(9), b"\0" * 9_000]
_FILES = st.dictionaries(st.sampled_from(_NAMES), st.sampled_from(_CONTENTS), max_size=5)
_TOPS = ["checkpoint-1", "checkpoint-2", "tmp-checkpoint-3", "global_step4", "epoch_5", "epoch_6"]


@given(st.dictionaries(st.sampled_from(_TOPS), _FILES, max_size=4), st.sampled_from(_CONTENTS))
def test_any_store_has_an_answer_and_the_same_again(
    tmp_path_factory: pytest.TempPathFactory, tops: dict[str, dict[str, bytes]], tag: bytes
) -> None:
    store = tmp_path_factory.mktemp("store")
    put(store, "latest", tag)
    for minutes, (name, files) in enumerate(tops.items()):
        put(store, name, files, 60 - minutes)
    first = look(store)
    assert (set(states(first)), first.why) == (set(tops), "")
    assert states(first).get("tmp-checkpoint-3") != "committed"
    assert all((one.state == "committed") == (one.reason == "") for one in first.checkpoints)
    assert look(store, first, after_s=30).checkpoints == first.checkpoints


def test_of_very_many_only_those_that_are_told_are_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in range(300):
        put(tmp_path, f"model-{step}.pt", archive(9), 400 - step)
    looked: list[str] = []

    def counted(root: int, name: str) -> str:
        looked.append(name)
        return ending(root, name)

    monkeypatch.setattr("memwatch.ingest.stores.whole.ending", counted)
    first = look_directory(tmp_path, clock=ManualClock(NOW_US), most=5)
    assert (first.count, first.why) == (300, "")
    assert first.total_bytes == 300 * len(archive(9))
    assert [one.step for one in first.checkpoints] == [295, 296, 297, 298, 299]
    assert len(looked) < 50
    again = look_directory(tmp_path, first, clock=ManualClock(NOW_US), most=5)
    assert again.checkpoints == first.checkpoints
    assert len(looked) < 100


@given(st.text(min_size=1, max_size=60), st.booleans())
def test_any_name_has_an_answer(name: str, folder: bool) -> None:
    entry_name(name, folder=folder)
    shard_of(name)


@given(data=st.data())
def test_no_beginning_of_a_file_is_whole(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("torn")
    name, whole = data.draw(
        st.sampled_from(
            [
                ("a.pt", archive(300)),
                ("a.safetensors", safetensors(300)),
                ("a.json", b'{"a": [1, {}]}'),
            ]
        )
    )
    cut = data.draw(st.integers(0, len(whole)))
    (folder / name).write_bytes(whole[:cut])
    root = open_directory(os.fspath(folder))
    try:
        found = ending(root, name)
    finally:
        os.close(root)
    assert (found == Ending.WHOLE) == (cut == len(whole))
    assert found != Ending.UNKNOWN or (name == "a.pt" and cut < 4)
