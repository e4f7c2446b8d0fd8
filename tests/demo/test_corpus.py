"""The corpus: real files, in order, bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from memwatch.demo.corpus import read_corpus
from memwatch.domain.errors import UsageError


def test_reads_the_standard_library_of_this_machine() -> None:
    corpus = read_corpus(slices=2, slice_bytes=300_000)
    assert [len(text) for text in corpus.slices] == [300_000, 300_000]
    assert corpus.bytes == 600_000
    assert b"import" in corpus.slices[0]
    assert corpus.files > 3


def test_same_files_same_slices_and_no_more_than_asked(tmp_path: Path) -> None:
    for name in ("b.py", "a.py", "c.txt", "tests/d.py", "pkg/e.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{name}\n" * 10)
    corpus = read_corpus(tmp_path, slices=5, slice_bytes=40)
    assert b"".join(corpus.slices).startswith(b"a.py\n" * 10 + b"b.py\n")
    assert (corpus.files, len(corpus.slices)) == (3, 4)
    assert b"tests" not in b"".join(corpus.slices)


def test_too_little_text_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="0 bytes of Python source"):
        read_corpus(tmp_path)
