"""The space that the demo searches: three compressors of the standard library, their knobs.

Not every combination is valid: lzma refuses literal and position bits over 4 together. Such an
experiment fails, as experiments do.
"""

from __future__ import annotations

import bz2
import lzma
import random
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

from msgspec import Struct

Codec = Callable[[bytes], bytes]

SPACE: dict[str, dict[str, tuple[int, ...]]] = {
    "zlib": {
        "chunk": (128, 256, 512, 1024),
        "level": (1, 2, 3, 4, 5, 6, 7, 8, 9),
        "window": (11, 12, 13, 14, 15),
        "mem": (5, 6, 7, 8, 9),
        "strat": (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED),
        "dict": (0, 4, 8, 16, 32),
    },
    "bz2": {
        "chunk": (128, 256, 512, 1024),
        "level": (1, 2, 3, 4, 5, 6, 7, 8, 9),
    },
    "lzma": {
        "chunk": (128, 256, 512, 1024),
        "dict": (32, 64, 128, 256, 512, 1024),
        "lc": (0, 1, 2, 3, 4),
        "lp": (0, 1, 2, 3),
        "pb": (0, 1, 2, 3, 4),
        "nice": (8, 16, 32, 64, 128, 273),
        "mode": (lzma.MODE_FAST, lzma.MODE_NORMAL),
        "mf": (lzma.MF_HC3, lzma.MF_HC4, lzma.MF_BT2, lzma.MF_BT3, lzma.MF_BT4),
        "delta": (0, 1, 2, 4),
    },
}
"""Values of each knob, in order: neighbours differ by one place in one knob.

`chunk` and `dict` (lzma's window, zlib's preset dictionary) are in KiB.
"""

FAILURES = (ValueError, zlib.error, lzma.LZMAError)
"""What a compressor raises for a combination that it refuses."""


class Settings(Struct, frozen=True):
    """A point of the space."""

    codec: str
    places: tuple[int, ...]
    """Index of the value of each knob."""

    def values(self) -> dict[str, int]:
        """Return the knobs and their values."""
        knobs = SPACE[self.codec].items()
        return {name: all_[at] for (name, all_), at in zip(knobs, self.places, strict=True)}

    @property
    def title(self) -> str:
        """The settings in one line."""
        chunk, *others = self.values().items()
        return f"{self.codec} {chunk[1]}k " + " ".join(f"{name}{value}" for name, value in others)

    @property
    def chunk_bytes(self) -> int:
        """Length of the pieces that are compressed apart."""
        return self.values()["chunk"] * 1024

    @property
    def dictionary_bytes(self) -> int:
        """Length of the preset dictionary; 0 for none."""
        return self.values()["dict"] * 1024 if self.codec == "zlib" else 0


def anywhere(rng: random.Random) -> Settings:
    """Return a random point."""
    codec = rng.choice(sorted(SPACE))
    return Settings(codec, tuple(rng.randrange(len(all_)) for all_ in SPACE[codec].values()))


def beside(settings: Settings, rng: random.Random, knobs: int = 1) -> Settings:
    """Return a point that differs by one place in up to `knobs` knobs."""
    places = list(settings.places)
    sizes = [len(all_) for all_ in SPACE[settings.codec].values()]
    for at in rng.sample(range(len(places)), min(knobs, len(places))):
        step = rng.choice((-1, 1))
        places[at] = places[at] + step if 0 <= places[at] + step < sizes[at] else places[at] - step
    return Settings(settings.codec, tuple(places))


def compressor(settings: Settings, dictionary: bytes) -> Codec:
    """Return the function that compresses one chunk."""
    knobs = settings.values()
    if settings.codec == "bz2":
        return lambda chunk: bz2.compress(chunk, knobs["level"])
    if settings.codec == "lzma":
        filters = _filters(knobs)
        return lambda chunk: lzma.compress(chunk, format=lzma.FORMAT_RAW, filters=filters)
    return lambda chunk: _deflate(chunk, knobs, dictionary)


def decompressor(settings: Settings, dictionary: bytes) -> Codec:
    """Return the function that takes one chunk back."""
    if settings.codec == "bz2":
        return bz2.decompress
    if settings.codec == "lzma":
        filters = _filters(settings.values())
        return lambda packed: lzma.decompress(packed, format=lzma.FORMAT_RAW, filters=filters)
    return lambda packed: zlib.decompressobj(zdict=dictionary).decompress(packed)


def build_dictionary(text: bytes, length: int) -> bytes:
    """Return a preset dictionary: the lines that repeat most, the best at the end."""
    worth = {line: (count - 1) * len(line) for line, count in Counter(text.splitlines()).items()}
    chosen: list[bytes] = []
    for line in sorted(worth, key=worth.__getitem__, reverse=True):
        if length <= 0 or worth[line] == 0:
            break
        chosen.append(line)
        length -= len(line) + 1
    return b"\n".join(reversed(chosen))


def _deflate(chunk: bytes, knobs: dict[str, int], dictionary: bytes) -> bytes:
    stream = zlib.compressobj(
        knobs["level"],
        zlib.DEFLATED,
        knobs["window"],
        knobs["mem"],
        knobs["strat"],
        dictionary,
    )
    return stream.compress(chunk) + stream.flush()


def _filters(knobs: dict[str, int]) -> list[dict[str, Any]]:
    packed: dict[str, Any] = {
        "id": lzma.FILTER_LZMA2,
        "dict_size": knobs["dict"] * 1024,
        "lc": knobs["lc"],
        "lp": knobs["lp"],
        "pb": knobs["pb"],
        "nice_len": knobs["nice"],
        "mode": knobs["mode"],
        "mf": knobs["mf"],
    }
    if not knobs["delta"]:
        return [packed]
    return [{"id": lzma.FILTER_DELTA, "dist": knobs["delta"]}, packed]
