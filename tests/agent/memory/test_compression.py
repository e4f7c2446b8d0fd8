"""Compression: there and back, chosen by measuring, bounded and plain-spoken when damaged."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
import threading
import tracemalloc
import zlib
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.agent.memory import compression
from memwatch.agent.memory.compression import (
    GZIP,
    NONE,
    PIECE_BYTES,
    ZSTD,
    ZSTD_FAST,
    Decompressor,
    choose,
    decompressor,
    methods,
    pack,
    unpack,
    unpacked,
)
from memwatch.domain.errors import DamagedError

ALL = (NONE, GZIP, ZSTD_FAST, ZSTD)
COMPRESSED = (GZIP, ZSTD)
ZSTD_MAGIC, GZIP_MAGIC = b"\x28\xb5\x2f\xfd", b"\x1f\x8b"
NOISE = random.Random(1).randbytes(300_000)
TEXT = b'{"loss":0.25,"tool":"bash"},' * 20_000
PACKED = pack(TEXT)

contents = (
    st.binary(max_size=300)
    | st.builds(bytes.__mul__, st.binary(min_size=1, max_size=20), st.integers(0, 10_000))
    | st.builds(bytes.__add__, st.sampled_from([ZSTD_MAGIC, GZIP_MAGIC]), st.binary(max_size=50))
)


def written(method: compression.Method, data: bytes) -> bytes:
    stream = method.compressor()
    pieces = [stream.compress(data[at : at + 10_000]) for at in range(0, len(data), 10_000)]
    return b"".join(pieces) + stream.flush()


def read(suffix: str, chunks: list[bytes], limit_bytes: int | None = None) -> bytes:
    stream = decompressor(suffix, limit_bytes)
    pieces = [piece for chunk in chunks for piece in stream.feed(chunk)]
    stream.finish()
    assert all(len(piece) <= PIECE_BYTES for piece in pieces) or not suffix
    return b"".join(pieces)


@pytest.fixture(params=["with zstd", "without zstd"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run a test with what is installed, and as where nothing but the standard library is."""

    def refuse(name: str) -> Any:
        if "zstd" in name:
            raise ImportError(name)
        return import_module(name)

    if request.param == "without zstd":
        compression._zstd.cache_clear()
        monkeypatch.setattr(compression, "import_module", refuse)
    yield request.param
    compression._zstd.cache_clear()


@given(contents)
def test_what_is_packed_comes_back(data: bytes) -> None:
    packed = pack(data)
    assert unpack(packed, len(data)) == data
    assert len(packed) <= max(len(data) * 0.9, len(data) if packed == data else 200)


@pytest.mark.parametrize(
    "data", [b"", b"{}", TEXT, NOISE, ZSTD_MAGIC + NOISE, GZIP_MAGIC, TEXT[:90]]
)
def test_packing_works_with_and_without_zstd(either: str, data: bytes) -> None:
    packed = pack(data)
    assert unpack(packed, len(data)) == data
    if data is TEXT:
        assert packed.startswith(GZIP_MAGIC if either == "without zstd" else ZSTD_MAGIC)
        assert len(packed) < len(data) / 50
    if data is NOISE:
        assert packed is data


def test_without_zstd_its_files_are_refused_in_words(either: str) -> None:
    if either == "with zstd":
        assert unpack(PACKED, len(TEXT)) == TEXT
        assert methods() == ALL
    else:
        with pytest.raises(DamagedError, match=r"install backports\.zstd"):
            unpack(PACKED, len(TEXT))
        assert methods() == (NONE, GZIP)


def test_importing_loads_no_zstd() -> None:
    names = "memwatch.agent.memory.compression", "memwatch.agent.memory.blobs"
    code = f"import sys, {', '.join(names)}; sys.exit(any('zstd' in name for name in sys.modules))"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("method", ALL, ids=lambda method: method.name)
@given(data=contents, cuts=st.lists(st.integers(0, 200), max_size=5))
def test_streams_come_back_whatever_the_chunks(
    method: compression.Method, data: bytes, cuts: list[int]
) -> None:
    text = written(method, data)
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    chunks = [text[start:end] for start, end in pairwise(edges)]
    assert read(method.suffix, chunks, len(data)) == data
    if method is not NONE:  # told from its first bytes, which plain data may share
        assert b"".join(unpacked(iter([text]), len(data))) == data


@pytest.mark.parametrize("method", COMPRESSED, ids=lambda method: method.name)
def test_exact_multiples_of_a_piece_come_back(method: compression.Method) -> None:
    for size in (PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES):
        data = (TEXT * 2)[:size]
        assert read(method.suffix, [written(method, data)], size) == data


@pytest.mark.parametrize("method", COMPRESSED, ids=lambda method: method.name)
def test_every_cut_of_a_stream_is_damage(method: compression.Method) -> None:
    text = written(method, TEXT[:2_000])
    for end in range(len(text)):
        with pytest.raises(DamagedError, match="ends too early"):
            read(method.suffix, [text[:end]])


@pytest.mark.parametrize("method", COMPRESSED, ids=lambda method: method.name)
def test_a_flipped_bit_never_gives_other_content(method: compression.Method) -> None:
    data = TEXT[:500] + NOISE[:100]
    text = written(method, data)
    refused = 0
    for bit in range(len(text) * 8):
        flipped = bytearray(text)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            found = read(method.suffix, [bytes(flipped)], len(data))
        except DamagedError:
            refused += 1
        else:  # the header holds bits that say nothing of the content, such as a time
            assert found == data
    assert refused > len(text) * 8 * 0.8


@given(st.binary(max_size=200), st.sampled_from([".gz", ".zst"]), st.booleans())
def test_any_bytes_are_a_stream_or_damage(data: bytes, suffix: str, with_magic: bool) -> None:
    magic = ZSTD_MAGIC if suffix == ".zst" else GZIP_MAGIC + b"\x08\x00\0\0\0\0\0\xff"
    with pytest.raises(DamagedError):
        read(suffix, [magic + data if with_magic else data, b"\x00garbage"], 10_000)


@pytest.mark.parametrize("method", COMPRESSED, ids=lambda method: method.name)
def test_bytes_after_the_end_are_damage(method: compression.Method) -> None:
    text = written(method, TEXT)
    for chunks in ([text + b"x"], [text, b"x"], [text + text], [text, text]):
        with pytest.raises(DamagedError, match="bytes follow the end"):
            read(method.suffix, chunks)
    assert read(method.suffix, [text, b""]) == TEXT


@pytest.mark.parametrize("method", COMPRESSED, ids=lambda method: method.name)
def test_a_bomb_costs_a_piece_of_memory(method: compression.Method) -> None:
    stream = method.compressor()
    bomb = b"".join(stream.compress(bytes(1_000_000)) for _ in range(200)) + stream.flush()
    assert len(bomb) < 1_000_000
    tracemalloc.start()
    try:
        with pytest.raises(DamagedError, match="longer than it was"):
            unpack(bomb, 1_000_000)
        for piece in Decompressor(method.suffix).feed(bomb):
            assert len(piece) <= PIECE_BYTES
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 4_000_000


def test_a_stream_that_asks_for_a_huge_window_is_refused() -> None:
    names = compression._zstd().CompressionParameter
    options = {names.window_log: 27, names.compression_level: 1}
    stream = compression._zstd().ZstdCompressor(options=options)
    text = stream.compress(TEXT) + stream.flush()
    with pytest.raises(DamagedError, match="damaged"):
        unpack(text, len(TEXT))


def test_raw_data_has_the_limit_too() -> None:
    assert unpack(b"plain", 5) == b"plain"
    with pytest.raises(DamagedError, match="longer than it was"):
        unpack(b"plain", 4)


def test_an_unknown_suffix_is_refused() -> None:
    with pytest.raises(DamagedError, match=r"'\.xz'"):
        decompressor(".xz")


def test_other_programs_read_the_files() -> None:
    assert gzip.decompress(written(GZIP, TEXT)) == TEXT
    assert zlib.decompress(written(GZIP, TEXT), wbits=31) == TEXT
    assert compression._zstd().decompress(written(ZSTD, TEXT)) == TEXT


class Timer:
    """Tells the time that each method is said to take: called before and after each."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.now = 0.0
        self.steps = [step for value in seconds.values() for step in (0.0, value) * 2]

    def __call__(self) -> float:
        self.now += self.steps.pop(0)
        return self.now


FAST = {"none": 0.0, "gzip-1": 0.02, "zstd-1": 0.002, "zstd-3": 0.003}
WORDS = " ".join(random.Random(3).choices([f"word{n}" for n in range(500)], k=20_000)).encode()
CHOICES = {
    "a usual disk": (TEXT, 200e6, FAST, "zstd-1"),
    "within a tenth the smaller": (WORDS, 10e6, FAST | {"zstd-1": 0.003}, "zstd-3"),
    "a disk faster than any program": (TEXT, 100e9, FAST, "none"),
    "nothing to save": (NOISE, 200e6, FAST, "none"),
    "a slow program": (TEXT, 20e6, FAST | {"zstd-1": 1.0, "zstd-3": 1.0}, "gzip-1"),
    "no sample": (b"", 200e6, FAST, "none"),
}


@pytest.mark.parametrize("case", CHOICES)
def test_the_method_that_is_done_first_is_chosen(case: str) -> None:
    sample, bytes_per_s, seconds, name = CHOICES[case]
    assert choose(sample, bytes_per_s, Timer(seconds)).name == name


def test_without_zstd_gzip_is_measured(either: str) -> None:
    assert choose(TEXT, 1e6).suffix == (".gz" if either == "without zstd" else ".zst")
    assert choose(NOISE, 1e9).suffix == ""


def test_zstd_is_imported_where_no_interrupt_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    importers: list[threading.Thread] = []

    def watched(name: str) -> Any:
        importers.append(threading.current_thread())
        return import_module(name)

    monkeypatch.setattr(compression, "import_module", watched)
    compression._zstd.cache_clear()
    compression.pack(b"x" * 10_000)
    assert importers
    assert threading.main_thread() not in importers
