"""Any order of saves, releases, collections, faults and restarts: no blob goes that is needed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from memwatch.agent.memory.blobs import BlobStore
from memwatch.agent.memory.entry import Blob
from memwatch.domain.errors import DamagedError, LogError
from tests.faults.failing_files import FailingFiles

TEXTS = [b"{}", b'"%s"' % (b"a" * 5_000), b"\x1f\x8braw", b'"three"', b"[4]"]
texts = st.sampled_from(TEXTS)


class Lifetimes(RuleBasedStateMachine):
    """A run that refers to blobs, checkpoints that do so longer, and a disk that fails."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.files = FailingFiles()
        self.blobs = BlobStore(self.folder / "blobs", self.files)
        self.lsn = 1
        self.kept_lsn = 0
        """The oldest state that a checkpoint still holds."""
        self.known: dict[bytes, Blob] = {}
        self.live: Counter[bytes] = Counter()
        self.released: dict[bytes, int] = {}
        self.damaged: set[bytes] = set()

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def path(self, text: bytes) -> Path:
        return self.folder / "blobs" / self.known[text].sha256

    @rule(text=texts)
    def save(self, text: bytes) -> None:
        self.known[text] = self.blobs.save(text)
        self.damaged.discard(text)
        self.took(text)

    @rule(text=texts, calls=st.integers(0, 3))
    def save_on_a_full_disk(self, text: bytes, calls: int) -> None:
        began = len(self.files.calls)
        self.files.fail = lambda number, name: number >= began + calls and name != "unlink"
        try:
            blob = self.blobs.save(text)
        except LogError:
            return
        finally:
            self.files.heal()
        self.known[text] = blob
        self.damaged.discard(text)
        self.took(text)

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def retain(self, data: st.DataObject) -> None:
        text = data.draw(st.sampled_from(sorted(self.live)))
        self.blobs.retain(self.known[text].sha256)
        self.took(text)

    def took(self, text: bytes) -> None:
        self.live[text] += 1
        self.released.pop(text, None)

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        text = data.draw(st.sampled_from(sorted(self.live)))
        self.lsn += 1
        self.blobs.release(self.known[text].sha256, self.lsn)
        self.live[text] -= 1
        if not self.live[text]:
            del self.live[text]
            self.released[text] = self.lsn

    @rule(steps=st.integers(0, 3))
    def collect(self, steps: int) -> None:
        self.kept_lsn = min(self.kept_lsn + steps, self.lsn)
        gone = {text for text, lsn in self.released.items() if lsn <= self.kept_lsn}
        assert self.blobs.collect(self.kept_lsn)[0] == len(gone)
        for text in gone:
            assert not self.path(text).exists()
            assert self.blobs.stored_bytes(self.known[text].sha256) == 0
            del self.released[text]
            self.damaged.discard(text)

    @rule(fails=st.booleans())
    def sync(self, fails: bool) -> None:
        if fails:
            self.files.fail_all("fsync")
        try:
            self.blobs.sync()
        except OSError:
            assert fails or self.damaged
        finally:
            self.files.heal()

    @precondition(lambda self: self.live or self.released)
    @rule(data=st.data(), size=st.integers(0, 1))
    def lose_bytes(self, data: st.DataObject, size: int) -> None:
        text = data.draw(st.sampled_from(sorted({*self.live, *self.released})))
        if self.path(text).stat().st_size > size:
            os.truncate(self.path(text), size)
            self.damaged.add(text)

    @rule()
    def restart(self) -> None:
        """The process was killed while it wrote: drafts lie about, all else is as it was."""
        if (self.folder / "blobs").exists():
            (self.folder / "blobs" / f".{'0' * 64}.7.draft").write_bytes(b"half")
        self.lsn += 1
        self.blobs = BlobStore(self.folder / "blobs", self.files)
        self.blobs.adopt((self.known[text].sha256 for text in self.live.elements()), self.lsn)
        self.released = dict.fromkeys(self.released, self.lsn)

    @invariant()
    def what_is_needed_is_there(self) -> None:
        for text in (*self.live, *self.released):
            try:
                assert self.blobs.load(self.known[text]) == text
            except DamagedError:
                assert text in self.damaged

    @invariant()
    def nothing_else_is_there(self) -> None:
        if (self.folder / "blobs").exists():
            names = {path.name for path in (self.folder / "blobs").iterdir()}
            assert names == {self.known[text].sha256 for text in (*self.live, *self.released)}


def test_no_order_of_events_loses_a_blob_that_is_needed() -> None:
    run_state_machine_as_test(
        Lifetimes, settings=settings(max_examples=100, stateful_step_count=30)
    )


def test_adopting_touches_only_what_is_ours(tmp_path: Path) -> None:
    folder = tmp_path / "blobs"
    first = BlobStore(folder, FailingFiles())
    kept, gone = first.save(TEXTS[0]), first.save(TEXTS[1])
    (folder / f".{kept.sha256}.12.draft").write_bytes(b"half")
    (folder / "notes.txt").write_text("of a person")
    (folder / ("e" * 64)).mkdir()
    (folder / ("f" * 64)).symlink_to("notes.txt")
    blobs = BlobStore(folder, FailingFiles())
    blobs.adopt([kept.sha256, kept.sha256], 7)
    names = {path.name for path in folder.iterdir()}
    assert names == {kept.sha256, gone.sha256, "notes.txt", "e" * 64, "f" * 64}
    assert blobs.collect(6) == (0, 0)
    assert blobs.collect(7)[0] == 2  # the released one and the link
    assert {path.name for path in folder.iterdir()} == {kept.sha256, "notes.txt", "e" * 64}
    blobs.release(kept.sha256, 8)
    assert blobs.collect(8) == (0, 0)  # one of two references
    blobs.release(kept.sha256, 9)
    assert blobs.collect(8) == (0, 0)
    assert blobs.collect(9)[0] == 1


def test_a_blob_that_is_saved_again_is_not_collected(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "blobs", FailingFiles())
    blob = blobs.save(TEXTS[1])
    blobs.release(blob.sha256, 3)
    blobs.save(TEXTS[1])
    assert blobs.collect(100) == (0, 0)
    assert blobs.load(blob) == TEXTS[1]


def test_a_collection_that_fails_goes_on_later(tmp_path: Path) -> None:
    files = FailingFiles()
    blobs = BlobStore(tmp_path / "blobs", files)
    for text in TEXTS:
        blobs.release(blobs.save(text).sha256, 3)
    began = len(files.calls)
    files.fail = lambda number, name: name == "unlink" and number > began
    with pytest.raises(OSError, match="No space"):
        blobs.collect(3)
    files.heal()
    assert blobs.collect(3)[0] == len(TEXTS) - 1
    assert list((tmp_path / "blobs").iterdir()) == []
    blobs.sync()
