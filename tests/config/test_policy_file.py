"""A change of any file that may hold a layer is noticed, and once."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from memwatch.config.policy_file import PolicyFile
from tests.config.layers import ORDER, Layers, some_layers


@pytest.fixture
def layers() -> Iterator[Layers]:
    with some_layers() as layers:
        layers.write("extra", "# empty\n")
        yield layers


@pytest.mark.parametrize("layer", ORDER)
def test_a_file_that_comes_changes_and_goes_is_noticed(layers: Layers, layer: str) -> None:
    watch = layers.load().watch()
    assert not watch.changed()
    path = layers.paths[layer]
    path.unlink(missing_ok=True)
    if layer in ("profile", "extra"):  # those that were there
        assert watch.changed()
    assert not watch.changed()
    path.write_text("# 1\n")
    assert watch.changed()
    assert not watch.changed()
    other = path.with_name("other")
    other.write_text("# 2\n")
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    other.replace(path)
    assert watch.changed(), "the same size and time, another file"
    path.unlink()
    assert watch.changed()
    assert not watch.changed()


def test_a_change_while_the_book_was_read_is_not_missed(layers: Layers) -> None:
    book = layers.load()
    layers.write("set", "mode: act\n")
    assert book.watch().changed()
    assert not PolicyFile(book.files).changed(), "without what was seen before, now counts"


def test_a_folder_that_cannot_be_looked_into_is_no_error(layers: Layers) -> None:
    watch = layers.load().watch()
    layers.paths["run"].parent.rmdir()
    assert not watch.changed()
