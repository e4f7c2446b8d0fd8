"""How the demo makes a value again that left memory: from the corpus, never from a copy (R4)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from memwatch.agent import Source
from memwatch.demo.corpus import Corpus
from memwatch.demo.results import Call, Packed
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
            "pack": self.pack,
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
        compress = compressor(settings, self._dictionary(slice, settings))
        chunk = self.chunks(slice, settings.chunk_bytes)[index]
        began = time.thread_time()
        packed = compress(chunk)
        return Call("compress", index, time.thread_time() - began, packed)

    def pack(self, slice: int, codec: str, places: list[int]) -> Packed:
        """Return the compressed text of a slice, made again."""
        settings = Settings(codec, tuple(places))
        dictionary = self._dictionary(slice, settings)
        compress = compressor(settings, dictionary)
        return Packed(dictionary, tuple(map(compress, self.chunks(slice, settings.chunk_bytes))))

    def _dictionary(self, slice: int, settings: Settings) -> bytes:
        if not settings.dictionary_bytes:
            return b""
        return build_dictionary(self._corpus.slices[slice], settings.dictionary_bytes)


def call_source(slice: int, settings: Settings, index: int) -> Source:
    """Return where the output of a tool call comes from."""
    return Source("compress", _settings_of(slice, settings) | {"index": index})


def packed_source(slice: int, settings: Settings) -> Source:
    """Return where a compressed text comes from."""
    return Source("pack", _settings_of(slice, settings))


def _settings_of(slice: int, settings: Settings) -> dict[str, Any]:
    return {"slice": slice, "codec": settings.codec, "places": list(settings.places)}
