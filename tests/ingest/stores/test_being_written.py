"""Being written, given up, damaged, on its way out: what a second look and living writers tell."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memwatch.host.holders import holders
from tests.ingest.stores.making import NOW_US, TRAINER, age, archive, hf, look, put, row, states

_HOLD = """
import sys
file = open(sys.argv[1], sys.argv[2])
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held(path: Path, mode: str) -> Iterator[int]:
    """Let another process have a file open; yields its pid."""
    command = [sys.executable, "-c", _HOLD, os.fspath(path), mode]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process.pid
        process.communicate()


def half(step: int) -> dict[str, bytes]:
    return {name: text for name, text in hf(step).items() if name != TRAINER}


def test_what_was_just_touched_is_being_written(tmp_path: Path) -> None:
    put(tmp_path, "checkpoint-1", half(1), minutes_ago=0.1)
    first = look(tmp_path)
    assert states(first) == {"checkpoint-1": "begun"}
    assert states(look(tmp_path, first, after_s=60)) == {"checkpoint-1": "incomplete"}


def test_what_grew_since_the_last_look_is_being_written(tmp_path: Path) -> None:
    """Times of files can be anything on a copy or a network mount; sizes tell as well."""
    place = put(tmp_path, "checkpoint-1", half(1))
    first = look(tmp_path)
    (place / "rng_state.pth").write_bytes(archive(9))
    age(place, NOW_US - 3_600_000_000)
    grown = look(tmp_path, first, after_s=30)
    assert states(grown) == {"checkpoint-1": "begun"}
    assert states(look(tmp_path, grown, after_s=60)) == {"checkpoint-1": "incomplete"}


def test_a_file_without_a_known_end_must_settle(tmp_path: Path) -> None:
    put(tmp_path, "model_1.pt", b"\x80\x02 a pickle of old", minutes_ago=0.05)
    first = look(tmp_path)
    assert states(first) == {"model_1.pt": "begun"}
    settled = row(look(tmp_path, first, after_s=30), "model_1.pt")
    assert settled.state == "committed"


def test_an_archive_with_its_end_needs_no_time(tmp_path: Path) -> None:
    put(tmp_path, "model_1.pt", archive(100), minutes_ago=0.05)
    assert states(look(tmp_path)) == {"model_1.pt": "committed"}


def test_who_has_it_open_for_writing_is_writing_it(tmp_path: Path) -> None:
    place = put(tmp_path, "model_1.pt", archive(100)[:-9])
    with held(place, "r+b") as pid:
        seen = look(tmp_path)
        assert (states(seen), seen.writers) == ({"model_1.pt": "begun"}, (pid,))
    seen = look(tmp_path)
    assert (states(seen), seen.writers) == ({"model_1.pt": "incomplete"}, ())


def test_who_only_reads_is_no_writer(tmp_path: Path) -> None:
    place = put(tmp_path, "model_1.pt", archive(100)[:-9])
    with held(place, "rb") as pid:
        (holder,) = holders((os.fspath(tmp_path),))
        assert (holder.pid, holder.path, holder.writing) == (pid, os.fspath(place), False)
        assert states(look(tmp_path)) == {"model_1.pt": "incomplete"}


def test_no_descriptor_is_looked_at_behind_the_deadline(tmp_path: Path) -> None:
    with held(put(tmp_path, "model_1.pt", b"x"), "r+b"):
        assert holders((os.fspath(tmp_path),), deadline_s=-1) == ()


def test_its_duration_counts_from_when_it_was_seen(tmp_path: Path) -> None:
    place = put(tmp_path, "last.ckpt", archive(9_000)[:5_000], minutes_ago=0)
    first = look(tmp_path)
    assert row(first, "last.ckpt").began_us == NOW_US
    place.write_bytes(archive(9_000))
    age(place, NOW_US + 40_000_000)
    one = row(look(tmp_path, first, after_s=60), "last.ckpt")
    assert (one.state, one.duration_s) == ("committed", 40)


def test_a_folder_that_was_seen_while_empty_keeps_when_it_began(tmp_path: Path) -> None:
    put(tmp_path, "checkpoint-1", hf(1), 30)
    place = put(tmp_path, "checkpoint-2", {}, minutes_ago=0)
    first = look(tmp_path, look(tmp_path), after_s=1)
    assert row(first, "checkpoint-2").began_us == NOW_US
    for second, (name, content) in enumerate(hf(2).items(), 3):
        (place / name).write_bytes(content)
        age(place / name, NOW_US + second * 1_000_000)
    second_look = look(tmp_path, first, after_s=7)
    third = look(tmp_path, second_look, after_s=8)
    for seen in (second_look, third, look(tmp_path, third, after_s=60)):
        one = row(seen, "checkpoint-2")
        assert (one.state, one.began_us, one.duration_s) == ("committed", NOW_US, 6)


def test_one_that_is_written_over_begins_anew(tmp_path: Path) -> None:
    place = put(tmp_path, "last.ckpt", archive(9_000)[:5_000], minutes_ago=0)
    first = look(tmp_path, look(tmp_path), after_s=1)
    place.write_bytes(archive(9_000))
    age(place, NOW_US + 4_000_000)
    whole = look(tmp_path, first, after_s=5)
    assert row(whole, "last.ckpt").duration_s == 4
    place.write_bytes(archive(9_100))
    age(place, NOW_US + 600_000_000)
    assert row(look(tmp_path, whole, after_s=601), "last.ckpt").duration_s is None


def test_damaged_is_what_was_whole(tmp_path: Path) -> None:
    place = put(tmp_path, "checkpoint-1", hf(1))
    first = look(tmp_path)
    (place / "optimizer.pt").write_bytes(b"")
    age(place, NOW_US + 1_000_000)
    second = look(tmp_path, first, after_s=30)
    assert states(second) == {"checkpoint-1": "damaged"}
    assert row(second, "checkpoint-1").reason == "optimizer.pt is empty"
    assert states(look(tmp_path, second, after_s=60)) == {"checkpoint-1": "damaged"}
    (place / "optimizer.pt").write_bytes(hf(1)["optimizer.pt"])
    age(place, NOW_US + 61_000_000)
    assert states(look(tmp_path, second, after_s=90)) == {"checkpoint-1": "committed"}


def test_what_is_on_its_way_out_is_gone(tmp_path: Path) -> None:
    old = put(tmp_path, "checkpoint-1", hf(1), 50)
    put(tmp_path, "checkpoint-2", hf(2), 30)
    first = look(tmp_path)
    (old / TRAINER).unlink()
    os.utime(old, ns=(NOW_US * 1000, NOW_US * 1000))
    second = look(tmp_path, first, after_s=2)
    assert states(second) == {"checkpoint-2": "committed"}
    assert states(look(tmp_path, second, after_s=60))["checkpoint-1"] == "incomplete"  # it stuck


def test_what_did_not_change_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "checkpoint-1", hf(1))
    first = look(tmp_path)
    read: list[int] = []
    monkeypatch.setattr(os, "pread", lambda fd, *_rest: read.append(fd))
    assert look(tmp_path, first, after_s=5).checkpoints == first.checkpoints
    assert read == []
