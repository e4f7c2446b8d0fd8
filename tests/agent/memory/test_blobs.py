"""Blobs: what is acknowledged is there and whole, what is damaged is named, nothing live goes."""

from __future__ import annotations

import hashlib
import os
import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from memwatch.agent.files import SYSTEM_FILES, Files
from memwatch.agent.memory.blobs import BlobStore
from memwatch.agent.memory.entry import Blob
from memwatch.domain.errors import DamagedError, LogError
from tests.faults.failing_files import FailingFiles

TEXT = b'{"tool":"bash","out":"' + b"one line\\n" * 2_000 + b'"}'
NOISE = b'"%s"' % random.Random(1).randbytes(20_000).hex().encode()
RAW = b"\x1f\x8b" + random.Random(2).randbytes(9_000)
"""No JSON, and begins as a gzip file does: a file of the agent's workspace may."""


def store(folder: Path, files: Files = SYSTEM_FILES) -> BlobStore:
    return BlobStore(folder / "blobs", files)


def file_of(folder: Path, blob: Blob) -> Path:
    return folder / "blobs" / blob.sha256


def names(folder: Path) -> set[str]:
    return {path.name for path in (folder / "blobs").iterdir()}


@pytest.mark.parametrize(
    "text", [TEXT, NOISE, RAW, b"", b"{}"], ids=["text", "noise", "raw", "empty", "tiny"]
)
def test_a_text_comes_back_also_to_another_start(tmp_path: Path, text: bytes) -> None:
    blob = store(tmp_path).save(text)
    assert blob == Blob(hashlib.sha256(text).hexdigest(), len(text))
    assert store(tmp_path).load(blob) == text
    assert names(tmp_path) == {blob.sha256}


def test_the_folder_is_made_by_the_first_save(tmp_path: Path) -> None:
    blobs = store(tmp_path / "run")
    blobs.adopt([], 0)
    blobs.sync()
    assert blobs.collect(9) == (0, 0)
    assert not (tmp_path / "run").exists()
    blobs.save(TEXT)
    assert names(tmp_path / "run")


def test_text_is_compressed_and_the_stored_size_told(tmp_path: Path) -> None:
    blobs = store(tmp_path)
    blob = blobs.save(TEXT)
    size = file_of(tmp_path, blob).stat().st_size
    assert size < len(TEXT) / 10
    assert blobs.stored_bytes(blob.sha256) == size == store(tmp_path).stored_bytes(blob.sha256)
    assert blobs.stored_bytes("0" * 64) == 0


def test_a_content_that_is_stored_costs_no_write(tmp_path: Path) -> None:
    files = FailingFiles()
    blobs = store(tmp_path, files)
    blob = blobs.save(TEXT)
    files.calls.clear()
    assert blobs.save(TEXT) == blob
    assert files.calls == []
    again = store(tmp_path, files)
    again.adopt([], 5)
    assert again.save(TEXT) == blob
    assert files.calls == []


@pytest.mark.parametrize("of_earlier_start", [False, True], ids=["ours", "of an earlier start"])
@pytest.mark.parametrize("cut", [0, 10])
def test_a_file_that_lost_bytes_is_replaced(
    tmp_path: Path, cut: int, of_earlier_start: bool
) -> None:
    blobs = store(tmp_path)
    blob = blobs.save(TEXT)
    os.truncate(file_of(tmp_path, blob), cut)
    if of_earlier_start:
        blobs = store(tmp_path)
    assert blobs.save(TEXT) == blob
    assert blobs.load(blob) == TEXT


def test_a_flipped_bit_of_an_earlier_start_is_replaced(tmp_path: Path) -> None:
    blob = store(tmp_path).save(NOISE)
    flip(file_of(tmp_path, blob), 300)
    blobs = store(tmp_path)
    blobs.save(NOISE)
    assert blobs.load(blob) == NOISE


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


class TestDamage:
    """Whatever lies under the name: the right text, or an error with the name of the file."""

    @pytest.mark.parametrize("text", [TEXT, NOISE, RAW], ids=["text", "noise", "raw"])
    def test_any_flipped_bit_is_found(self, tmp_path: Path, text: bytes) -> None:
        blobs = store(tmp_path)
        blob = blobs.save(text)
        path = file_of(tmp_path, blob)
        bits = path.stat().st_size * 8
        for bit in {*range(0, 160), *random.Random(3).sample(range(bits), 150), bits - 1}:
            flip(path, bit)
            assert loaded(blobs, blob) in (text, f"the blob {path} is damaged")
            flip(path, bit)
        assert blobs.load(blob) == text

    @pytest.mark.parametrize(
        "damage",
        [
            lambda path: os.truncate(path, 0),
            lambda path: os.truncate(path, 5),
            lambda path: os.truncate(path, path.stat().st_size - 1),
            lambda path: os.truncate(path, 1 << 30),
            lambda path: path.write_bytes(path.read_bytes() + b"x"),
            lambda path: path.write_bytes(b'{"another":"value"}'),
            lambda path: path.write_bytes(b"\x28\xb5\x2f\xfd"),
            lambda path: path.unlink(),
            lambda path: path.unlink() or path.mkdir(),
            make_pipe,
            lambda path: path.rename(path.with_name("away")) and path.symlink_to("away"),
            lambda path: path.unlink() or path.symlink_to("/dev/zero"),
        ],
        ids=[
            "empty",
            "cut",
            "one byte less",
            "huge",
            "one byte more",
            "foreign",
            "only a magic",
            "missing",
            "a directory",
            "a pipe",
            "a link to the content",
            "a link to a device",
        ],
    )
    def test_no_other_file_is_taken_for_it(
        self, tmp_path: Path, damage: Callable[[Path], object]
    ) -> None:
        blobs = store(tmp_path)
        blob = blobs.save(TEXT)
        path = file_of(tmp_path, blob)
        damage(path)
        with pytest.raises(DamagedError) as caught:
            blobs.load(blob)
        assert str(path) in str(caught.value)

    @pytest.mark.parametrize(
        "name", ["", "a", "../" * 21 + "a", "A" * 64, "0" * 63 + "\n", "x" * 9999]
    )
    def test_a_name_that_is_no_hash_is_never_opened(self, tmp_path: Path, name: str) -> None:
        blobs = store(tmp_path)
        blobs.save(TEXT)
        with pytest.raises(DamagedError, match="not the name of a blob"):
            blobs.load(Blob(name, 3))

    @pytest.mark.parametrize("size", [0, 1, -5, len(TEXT) - 1, len(TEXT) + 1])
    def test_a_wrong_length_in_a_record_is_damage(self, tmp_path: Path, size: int) -> None:
        blobs = store(tmp_path)
        blob = blobs.save(TEXT)
        with pytest.raises(DamagedError, match="damaged"):
            blobs.load(Blob(blob.sha256, size))


def loaded(blobs: BlobStore, blob: Blob) -> bytes | str:
    """Return the text, or what the error says up to its colon."""
    try:
        return blobs.load(blob)
    except DamagedError as error:
        return str(error).partition(":")[0]


def flip(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def test_threads_that_save_the_same_at_once_store_it_once(tmp_path: Path) -> None:
    blobs = store(tmp_path)
    texts = [TEXT, NOISE, b'"%s"' % (b"x" * 100_000)]
    gate = threading.Barrier(8)
    found: list[Blob] = []

    def work(number: int) -> None:
        gate.wait(10)
        for text in texts[number % 3 :] + texts[: number % 3]:
            found.append(blobs.save(text))
            blobs.sync()

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(found) == 24
    assert names(tmp_path) == {blob.sha256 for blob in found}
    for blob in found:
        assert blobs.load(blob) in texts
    for blob in found:
        assert blobs.stored_bytes(blob.sha256)  # each save took a reference of its own
        blobs.release(blob.sha256, 1)
        blobs.collect(1)
    assert names(tmp_path) == set()


def test_a_forked_child_loads_and_changes_nothing(tmp_path: Path) -> None:
    blobs = store(tmp_path)
    kept, gone = blobs.save(TEXT), blobs.save(NOISE)
    blobs.release(gone.sha256, 1)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            right = blobs.load(kept) == TEXT and blobs.collect(9) == (0, 0)
            blobs.sync()
            try:
                blobs.save(RAW)
            except LogError:
                status = 0 if right else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert names(tmp_path) == {kept.sha256, gone.sha256}
