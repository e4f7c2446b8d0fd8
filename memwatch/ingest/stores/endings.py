"""Whether a file ends as its format says it must: a few bytes are read, nothing is loaded."""

from __future__ import annotations

import os
import struct

import msgspec

from memwatch.ingest.stores.names import WEIGHTS
from memwatch.ingest.stores.walk import open_file

CHECKED = (*WEIGHTS, ".json")
_TAIL_BYTES = 1 << 16
_MOST_HEADER_BYTES = 100 << 20
"""Of the safetensors library itself."""
_MOST_READ_HEADER_BYTES = 16 << 20
_MOST_PARSED_BYTES = 1 << 20
_ZIP = b"PK\x03\x04"
_ZIP_END = b"PK\x05\x06"
_ZIP_END_BYTES = 22


class _Tensor(msgspec.Struct):
    data_offsets: tuple[int, int] | None = None
    """Absent in the entry that holds free text."""


class Ending:
    """How a file was found to end."""

    WHOLE = "whole"
    UNKNOWN = ""
    """The format does not say where it ends."""


def ending(root: int, path: str) -> str:
    """Return `Ending.WHOLE`, `Ending.UNKNOWN`, or in words what is wrong with the file."""
    try:
        with open_file(root, path) as fd:
            size = os.fstat(fd).st_size
            return _ending(fd, size, path.lower())
    except OSError as error:
        return f"cannot be read ({error.strerror or 'it is no file'})"


def _ending(fd: int, size: int, name: str) -> str:
    if size == 0:
        return "is empty"
    if name.endswith(".safetensors"):
        return _safetensors(fd, size)
    if name.endswith(".json"):
        return _json(fd, size)
    if os.pread(fd, len(_ZIP), 0) == _ZIP:
        return _zip(fd, size)
    return Ending.UNKNOWN


def _zip(fd: int, size: int) -> str:
    """Find the end record: it is what is written last, and it says its own length."""
    tail = os.pread(fd, _TAIL_BYTES, max(0, size - _TAIL_BYTES))
    at = tail.rfind(_ZIP_END)
    while at >= 0:
        if at + _ZIP_END_BYTES <= len(tail):
            (comment,) = struct.unpack_from("<H", tail, at + 20)
            if at + _ZIP_END_BYTES + comment == len(tail):
                return Ending.WHOLE
        at = tail.rfind(_ZIP_END, 0, at)
    return "is torn: its archive has no end"


def _safetensors(fd: int, size: int) -> str:
    """Compare the end of the last tensor, as the header tells it, with the file's own."""
    head = os.pread(fd, 8, 0)
    length = int.from_bytes(head, "little")
    if len(head) < 8 or length > min(size - 8, _MOST_HEADER_BYTES):
        return "is torn in its header"
    if length > _MOST_READ_HEADER_BYTES:
        return Ending.UNKNOWN
    try:
        tensors = msgspec.json.decode(os.pread(fd, length, 8), type=dict[str, _Tensor])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return "has a damaged header"
    ends = [one.data_offsets[1] for one in tensors.values() if one.data_offsets is not None]
    needed = 8 + length + max(ends, default=0)
    return Ending.WHOLE if size == needed else f"has {size} of {needed} bytes"


def _json(fd: int, size: int) -> str:
    """Check the grammar of a small file without building anything, of a large one its brackets."""
    if size <= _MOST_PARSED_BYTES:
        try:
            msgspec.json.decode(os.pread(fd, size, 0), type=msgspec.Raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return "is torn or no JSON"
        return Ending.WHOLE
    head = os.pread(fd, _TAIL_BYTES, 0).lstrip()[:1]
    tail = os.pread(fd, _TAIL_BYTES, max(0, size - _TAIL_BYTES)).rstrip()[-1:]
    if (head, tail) in {(b"{", b"}"), (b"[", b"]")}:
        return Ending.WHOLE
    return "is torn: its last bracket is missing"
