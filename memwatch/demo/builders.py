"""How the demo makes a value again that left memory: from the corpus, never from a copy (R4)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from memwatch.agent import Source
from memwatch.demo.corpus import Corpus
from memwatch.demo.results import Call
from memwatch.demo.settings import Settings, build_dictionary, compressor


class Builders:
    """The functions that the sources of rebuildable entries name, over one corpus."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    def by_name(self) -> dict[str, Callable[..., Any]]:
        """Return what `RunOptions.builders` asks for."""
        return {
            "text": self.text,
            "chunks": self.chunks,
            "compress": self.compress,
            "nothing": list,
        }

    def text(self, slice: int) -> bytes:
        """Return the text of a slice, as an object of its own."""
        return bytes(bytearray(self._corpus.slices[slice]))

    def chunks(self, slice: int, chunk_bytes: int) -> tuple[bytes, ...]:
        """Return the text of a slice in pieces."""
        text = self._corpus.slices[slice]
        return tuple(text[at : at + chunk_bytes] for at in range(0, len(text), chunk_bytes))

    def compress(self, slice: int, codec: str, places: list[int], index: int) -> Call:
        """Return a tool call, made again."""
        settings = Settings(codec, tuple(places))
        text = self._corpus.slices[slice]
        dictionary = build_dictionary(text, settings.dictionary_bytes)
        chunk = self.chunks(slice, settings.chunk_bytes)[index]
        began = time.thread_time()
        packed = compressor(settings, dictionary)(chunk)
        return Call("compress", index, time.thread_time() - began, packed)


def source_of(slice: int, settings: Settings, index: int) -> Source:
    """Return where the output of a compression comes from."""
    places = list(settings.places)
    args = {"slice": slice, "codec": settings.codec, "places": places, "index": index}
    return Source("compress", args)
