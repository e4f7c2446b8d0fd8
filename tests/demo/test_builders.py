"""What left memory is made again from the corpus, equal to what it was."""

from __future__ import annotations

import random

import pytest

from memwatch.demo.builders import Builders, call_source, packed_source
from memwatch.demo.corpus import Corpus
from memwatch.demo.results import Call
from memwatch.demo.settings import FAILURES, anywhere, build_dictionary, compressor, decompressor

TEXT = b"".join(b"def text_%d(self) -> str:\n    return self.words\n" % n for n in range(9000))
CORPUS = Corpus((b"x" * len(TEXT), TEXT), files=1, source="here")


@pytest.mark.parametrize("seed", range(12))
def test_a_call_is_made_again_from_its_source(seed: int) -> None:
    settings = anywhere(random.Random(seed))
    chunk = TEXT[settings.chunk_bytes : 2 * settings.chunk_bytes] or TEXT[: settings.chunk_bytes]
    index = 1 if len(TEXT) > settings.chunk_bytes else 0
    source = call_source(1, settings, index)
    build = Builders(CORPUS).by_name()[source.by]
    try:
        packed = compressor(settings, build_dictionary(TEXT, settings.dictionary_bytes))(chunk)
    except FAILURES as error:
        with pytest.raises(type(error)):
            build(**source.args)
        return
    made = build(**source.args)
    assert isinstance(made, Call)
    assert (made.tool, made.index, made.output) == ("compress", index, packed)
    source = packed_source(1, settings)
    whole = Builders(CORPUS).by_name()[source.by](**source.args)
    back = decompressor(settings, whole.dictionary)
    assert whole.chunks[index] == packed
    assert b"".join(map(back, whole.chunks)) == TEXT


def test_texts_and_chunks_are_those_of_the_slice() -> None:
    builders = Builders(CORPUS)
    text = builders.text(slice=1)
    assert text == TEXT
    assert text is not CORPUS.slices[1], "memory of its own, as the value that it stands for"
    chunks = builders.chunks(slice=1, chunk_bytes=1000)
    assert b"".join(chunks) == TEXT
    assert {len(chunk) for chunk in chunks[:-1]} == {1000}
