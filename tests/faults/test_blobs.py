"""Blobs on a full disk or a dying device: nothing is acknowledged that is not there."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from memwatch.agent.files import SYSTEM_FILES, Files
from memwatch.agent.memory.blobs import BlobStore
from memwatch.domain.errors import LogError
from tests.faults.failing_files import FailingFiles

TEXT = b'{"tool":"bash","out":"' + b"one line\\n" * 2_000 + b'"}'
OTHER = b'"%s"' % (b"another" * 1_000)


def store(folder: Path, files: Files = SYSTEM_FILES) -> BlobStore:
    return BlobStore(folder / "blobs", files)


def fill_disk(files: FailingFiles, step: int, *, short: bool) -> None:
    """Let each call fail from the one `step` calls ahead, but for the removal of a draft.

    `short`: if the first of them is a write, it takes a half.
    """
    first = len(files.calls) + step
    files.short = short

    def fail(number: int, name: str) -> bool:
        files.short = files.short and number <= first
        return number >= first and name != "unlink"

    files.fail = fail


@pytest.mark.parametrize("short", [False, True])
def test_a_full_disk_at_any_call_leaves_nothing(tmp_path: Path, short: bool) -> None:
    files = FailingFiles()
    clean = store(tmp_path / "clean", files)
    clean.save(TEXT)
    steps = len(files.calls)
    assert steps >= 3
    for step in range(steps):
        folder = tmp_path / str(step)
        blobs = store(folder, files)
        fill_disk(files, step, short=short)
        with pytest.raises(LogError, match="No space left on device"):
            blobs.save(TEXT)
        files.heal()
        assert list((folder / "blobs").iterdir()) == []
        assert blobs.collect(1 << 60) == (0, 0)
        blob = blobs.save(TEXT)
        assert blobs.load(blob) == TEXT


def test_a_failed_save_takes_no_reference(tmp_path: Path) -> None:
    files = FailingFiles()
    blobs = store(tmp_path, files)
    blob = blobs.save(TEXT)
    blobs.release(blob.sha256, 3)
    (tmp_path / "blobs" / blob.sha256).unlink()
    files.fail_all("write")
    with pytest.raises(LogError):
        blobs.save(TEXT)
    with pytest.raises(ValueError, match="no live reference"):
        blobs.release(blob.sha256, 4)


def test_a_folder_that_was_removed_is_an_error(tmp_path: Path) -> None:
    blobs = store(tmp_path)
    blob = blobs.save(TEXT)
    (tmp_path / "blobs" / blob.sha256).unlink()
    (tmp_path / "blobs").rmdir()
    with pytest.raises(LogError, match="No such file"):
        blobs.save(OTHER)
    with pytest.raises(OSError, match="No such file"):
        blobs.sync()


def test_sync_brings_each_file_and_the_names_to_the_device_once(tmp_path: Path) -> None:
    files = FailingFiles()
    blobs = store(tmp_path, files)
    blobs.save(TEXT)
    blobs.save(OTHER)
    assert "fsync" not in files.calls
    blobs.sync()
    assert files.calls.count("fsync") == 4  # two files, their folder, and the folder's name
    blobs.sync()
    assert files.calls.count("fsync") == 4
    blobs.save(TEXT)
    blobs.sync()
    assert files.calls.count("fsync") == 4


def test_what_an_earlier_start_wrote_is_synced_before_it_is_relied_on(tmp_path: Path) -> None:
    store(tmp_path).save(TEXT)  # and was killed: nobody synced it
    files = FailingFiles()
    blobs = store(tmp_path, files)
    blobs.save(TEXT)
    blobs.sync()
    assert "fsync" in files.calls


def test_a_failed_sync_is_tried_again_with_a_new_file(tmp_path: Path) -> None:
    files = FailingFiles()
    files.error = errno.EIO
    blobs = store(tmp_path, files)
    blob = blobs.save(TEXT)
    before = (tmp_path / "blobs" / blob.sha256).stat().st_ino
    (tmp_path / "old").hardlink_to(tmp_path / "blobs" / blob.sha256)  # so that its inode stays
    files.fail_all("fsync")
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output"):
            blobs.sync()
    files.heal()
    files.calls.clear()
    blobs.sync()
    assert "write" in files.calls  # the pages of the old file count as clean, though they are not
    assert (tmp_path / "blobs" / blob.sha256).stat().st_ino != before
    assert blobs.load(blob) == TEXT
    files.calls.clear()
    blobs.sync()
    assert files.calls == []


def test_a_failed_sync_whose_content_is_gone_says_so(tmp_path: Path) -> None:
    files = FailingFiles()
    blobs = store(tmp_path, files)
    blob = blobs.save(OTHER)
    files.fail_all("fsync")
    with pytest.raises(OSError, match="No space"):
        blobs.sync()
    files.heal()
    (tmp_path / "blobs" / blob.sha256).write_bytes(b"lost")
    with pytest.raises(OSError, match="the device lost a blob"):
        blobs.sync()


def test_a_failed_sync_of_the_folder_is_tried_again(tmp_path: Path) -> None:
    files = FailingFiles()
    blobs = store(tmp_path, files)
    blobs.save(TEXT)
    began = len(files.calls)
    files.fail = lambda number, name: name == "fsync" and number > began + 1
    with pytest.raises(OSError, match="No space"):
        blobs.sync()
    files.heal()
    files.calls.clear()
    blobs.sync()
    assert files.calls.count("fsync") == 3
