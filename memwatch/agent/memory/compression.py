"""Compression that is worth its time: chosen by measuring, told by the data, bounded when undone.

zstd where this Python has it (3.14, or the package backports.zstd), else gzip, which all have.
Either carries a checksum of the content. Both are imported when first needed: an agent that never
writes a checkpoint does not pay for them.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from threading import Thread
from typing import Any, Final, Protocol

from msgspec import Struct

from memwatch.domain.errors import DamagedError

WORTH: Final = 0.7
"""Compressed data larger than this share of the plain is not kept: random bytes in base64, which
shrink to 75 %, cost an agent more time to compress than to write."""

SAMPLE_BYTES: Final = 64_000
PIECE_BYTES: Final = 256_000
"""Most that comes out of a `Decompressor` at a time."""

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 31  # zlib's way to say: with header and checksum of a gzip file
_ZSTD_WINDOW_LOG = 23  # 8 MB: what a reader spends on a stream, whatever its header asks for
_TIE = 1.1
_PACK_LEVEL = 3
_MEASUREMENTS = 2


class Compressor(Protocol):
    """One stream, written in pieces."""

    def compress(self, data: bytes, /) -> bytes:
        """Take the next bytes; return those that are ready."""

    def flush(self) -> bytes:
        """End the stream; return its rest."""


class Method(Struct, frozen=True):
    """A way to compress a file."""

    name: str
    """`none`, `gzip-1`, `zstd-1`, `zstd-3`: program and level."""
    suffix: str
    """Of the file's name."""
    level: int = 0

    def compressor(self) -> Compressor:
        """Begin a stream."""
        if self.suffix == ".gz":
            return zlib.compressobj(self.level, zlib.DEFLATED, _GZIP_WINDOW)
        return _zstd_compressor(self.level) if self.suffix else _PlainWriter()


NONE: Final = Method("none", "")
GZIP: Final = Method("gzip-1", ".gz", 1)
ZSTD_FAST: Final = Method("zstd-1", ".zst", 1)
ZSTD: Final = Method("zstd-3", ".zst", 3)


def methods() -> tuple[Method, ...]:
    """Return what this Python can write, the best guess last."""
    return (NONE, GZIP) if _zstd() is None else (NONE, GZIP, ZSTD_FAST, ZSTD)


def choose(
    sample: bytes, write_bytes_per_s: float, timer: Callable[[], float] = time.perf_counter
) -> Method:
    """Return the method that brings bytes like `sample` to a disk of this speed the soonest.

    Each is measured on the sample: seconds to compress it plus seconds to write what comes out.
    Within 10 % of the best the smallest result wins.
    """
    if not sample:
        return NONE
    costs = {}
    for method in methods():
        seconds, size = min(_measure(method, sample, timer) for _ in range(_MEASUREMENTS))
        costs[method] = seconds + size / write_bytes_per_s, size
    best = min(seconds for seconds, _ in costs.values())
    ties = {method: size for method, (seconds, size) in costs.items() if seconds <= best * _TIE}
    return min(ties, key=ties.__getitem__)


def _measure(method: Method, sample: bytes, timer: Callable[[], float]) -> tuple[float, int]:
    began = timer()
    stream = method.compressor()
    size = len(stream.compress(sample)) + len(stream.flush())
    return timer() - began, size


def pack(data: bytes) -> bytes:
    """Return data compressed, or as it is where that saves too little to be worth the time."""
    ambiguous = data.startswith((_ZSTD_MAGIC, _GZIP_MAGIC))
    if len(data) > SAMPLE_BYTES and not ambiguous:
        half, middle = SAMPLE_BYTES // 2, len(data) // 2
        sample = data[:half] + data[middle : middle + half]
        if len(_packed(sample)) > len(sample) * WORTH:
            return data
    packed = _packed(data)
    return packed if ambiguous or len(packed) <= len(data) * WORTH else data


def unpack(data: bytes, limit_bytes: int) -> bytes:
    """Return what `pack` was given; raises DamagedError for what it did not make.

    Never more than `limit_bytes` are made: a small file that claims to be huge is damaged.
    """
    return b"".join(unpacked(iter((data,)), limit_bytes))


def unpacked(pieces: Iterator[bytes], limit_bytes: int) -> Iterator[bytes]:
    """Yield what `pack` was given, in pieces: `unpack` for what need not be in memory at once."""
    first = next(pieces, b"")
    suffix = ".zst" if first.startswith(_ZSTD_MAGIC) else ""
    stream = Decompressor(".gz" if first.startswith(_GZIP_MAGIC) else suffix, limit_bytes)
    yield from stream.feed(first)
    for piece in pieces:
        yield from stream.feed(piece)
    stream.finish()


def decompressor(suffix: str, limit_bytes: int | None = None) -> Decompressor:
    """Begin to read a file whose name ends with `suffix`; raises DamagedError, see the class."""
    return Decompressor(suffix, limit_bytes)


class Decompressor:
    """One compressed stream, read in pieces of at most PIECE_BYTES.

    Raises DamagedError for bytes that are no such stream, for any after its end, for more than
    `limit_bytes` out of it, and for a method that this Python does not have.
    """

    def __init__(self, suffix: str, limit_bytes: int | None = None) -> None:
        self._stream, self._errors = _stream(suffix)
        self._left = limit_bytes

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Take the next bytes; yield what they hold, in pieces."""
        try:
            if self._stream.eof and chunk:
                raise DamagedError("bytes follow the end of a compressed stream")
            for piece in self._stream.pieces(chunk):
                if self._left is not None:
                    self._left -= len(piece)
                    if self._left < 0:
                        raise DamagedError("a stream is longer than it was when it was written")
                yield piece
            if self._stream.unused:
                raise DamagedError("bytes follow the end of a compressed stream")
        except self._errors as error:
            raise DamagedError(f"a compressed stream is damaged: {error}") from error

    def finish(self) -> None:
        """Say that the file is at its end; raises DamagedError when the stream is not."""
        if not self._stream.complete:
            raise DamagedError("a compressed stream ends too early")


class _PlainReader:
    """A stream that is not compressed: any place may be its end."""

    eof = False
    complete = True
    unused = b""

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        yield chunk


class _GzipReader:
    def __init__(self) -> None:
        self._stream = zlib.decompressobj(_GZIP_WINDOW)

    @property
    def eof(self) -> bool:
        return self._stream.eof

    complete = eof

    @property
    def unused(self) -> bytes:
        return self._stream.unused_data

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        while chunk and not self._stream.eof:  # the checksum at the end is read last of all
            piece = self._stream.decompress(chunk, PIECE_BYTES)
            chunk = self._stream.unconsumed_tail
            yield piece


class _ZstdReader:
    def __init__(self, zstd: Any) -> None:
        window = {zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG}
        self._stream = zstd.ZstdDecompressor(options=window)

    @property
    def eof(self) -> bool:
        return bool(self._stream.eof)

    complete = eof

    @property
    def unused(self) -> bytes:
        unused: bytes = self._stream.unused_data
        return unused

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        while not self._stream.eof:
            yield self._stream.decompress(chunk, PIECE_BYTES)
            chunk = b""
            if self._stream.needs_input:
                return


_Errors = tuple[type[Exception], ...]


def _stream(suffix: str) -> tuple[_PlainReader | _GzipReader | _ZstdReader, _Errors]:
    """Return a reader, and what it raises for damage."""
    if suffix == "":
        return _PlainReader(), ()
    if suffix == ".gz":
        return _GzipReader(), (zlib.error,)
    if suffix != ".zst":
        raise DamagedError(f"nothing is known of files whose name ends with {suffix!r:.20}")
    zstd = _zstd()
    if zstd is None:
        raise DamagedError("this is compressed with zstd: install backports.zstd to read it")
    return _ZstdReader(zstd), (zstd.ZstdError,)


class _PlainWriter:
    """A stream that is not compressed."""

    def compress(self, data: bytes, /) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


def _packed(data: bytes) -> bytes:
    if _zstd() is None:
        return zlib.compress(data, GZIP.level, _GZIP_WINDOW)
    stream = _zstd_compressor(_PACK_LEVEL)
    return stream.compress(data) + stream.flush()


def _zstd_compressor(level: int) -> Compressor:
    zstd = _zstd()
    names = zstd.CompressionParameter
    stream: Compressor = zstd.ZstdCompressor(
        options={names.compression_level: level, names.checksum_flag: 1}
    )
    return stream


@cache
def _zstd() -> Any:
    """Return the module, or None; importing takes milliseconds.

    It is done by a thread, as none but the main one is interrupted (Ctrl-C): an interrupt in an
    import may leave the module's lock taken for ever, and whoever compresses next waits for it.
    """
    found: list[Any] = []
    thread = Thread(target=_import_zstd, args=(found,), name="memwatch-import", daemon=True)
    thread.start()
    thread.join()
    return found[0] if found else None


def _import_zstd(found: list[Any]) -> None:
    for name in ("compression.zstd", "backports.zstd"):
        with suppress(ImportError):
            found.append(import_module(name))
            return
