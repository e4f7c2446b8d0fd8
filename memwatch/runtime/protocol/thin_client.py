"""The session protocol with the standard library alone, for commands that must start fast.

Knows just enough msgpack to greet a guard, ask for its status and read the answer.
"""

from __future__ import annotations

import socket
from typing import Any

from memwatch import __version__
from memwatch.domain.errors import SessionError
from memwatch.runtime.protocol.numbers import (
    MAX_FRAME_BYTES,
    PROTOCOL,
    GuardSilentError,
    NoGuardError,
    refusal,
)

TIMEOUT_S = 2.0
"""A status bar asks each few seconds: a guard that takes longer has an answer of its own."""
_HEADER_BYTES = 4


def status_json(path: str, timeout_s: float = TIMEOUT_S) -> bytes:
    """Return `status` of the guard behind a socket.

    Raises NoGuardError when none is there, GuardSilentError when one says nothing for
    `timeout_s`, SessionError when one answers something else.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(timeout_s)
        try:
            line.connect(path)
            _send(line, {"hello": {"proto": list(PROTOCOL), "app": f"memwatch {__version__}"}})
            _check_hello(_receive(line))
            _send(line, {"id": 1, "call": "status"})
            answer = _receive(line)
        except (TimeoutError, BlockingIOError):  # the latter: nobody takes our connection up
            raise GuardSilentError("the guard does not answer") from None
        except OSError as error:
            raise NoGuardError(f"no guard answers on {path}: {error}") from None
    result = answer.get("result")
    text = result.get("json") if isinstance(result, dict) else None
    if not answer.get("ok") or not isinstance(text, bytes):
        raise SessionError(str(answer.get("error", "the guard told no status")))
    return text


def _check_hello(message: dict[str, Any]) -> None:
    greeting = message.get("hello")
    proto = greeting.get("proto") if isinstance(greeting, dict) else None
    why = refusal(proto)
    if why:
        raise SessionError(why)


def _send(line: socket.socket, message: dict[str, Any]) -> None:
    body = pack(message)
    line.sendall(len(body).to_bytes(_HEADER_BYTES, "big") + body)


def _receive(line: socket.socket) -> dict[str, Any]:
    length = int.from_bytes(_exactly(line, _HEADER_BYTES), "big")
    if length > MAX_FRAME_BYTES:
        raise SessionError("the guard announced a frame over the limit")
    message = unpack(_exactly(line, length))
    if not isinstance(message, dict):
        raise SessionError("the guard sent something else than a message")
    return message


def _exactly(line: socket.socket, count: int) -> bytes:
    pieces = []
    while count:
        piece = line.recv(min(count, 1 << 16))
        if not piece:
            raise NoGuardError("the guard has gone")
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def pack(value: Any) -> bytes:
    """Encode None, booleans, integers from 0, text, lists and maps of up to 15 members."""
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return b"\xcf" + value.to_bytes(8, "big")
    if isinstance(value, str):
        text = value.encode()
        return b"\xdb" + len(text).to_bytes(4, "big") + text
    if isinstance(value, list):
        return bytes([0x90 | len(value)]) + b"".join(map(pack, value))
    pairs = b"".join(pack(name) + pack(member) for name, member in value.items())
    return bytes([0x80 | len(value)]) + pairs


def unpack(data: bytes) -> Any:
    """Decode one msgpack value; raises SessionError for what no guard sends here."""
    try:
        value, end = _value(data, 0)
    except (IndexError, UnicodeDecodeError, TypeError, RecursionError):
        raise SessionError("the guard sent a broken message") from None
    if end != len(data):
        raise SessionError("the guard sent more than a message")
    return value


_SCALARS = {0xC0: None, 0xC2: False, 0xC3: True}
_UNSIGNED = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
_TEXTS = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_BYTES = {0xC4: 1, 0xC5: 2, 0xC6: 4}
_LISTS = {0xDC: 2, 0xDD: 4}
_MAPS = {0xDE: 2, 0xDF: 4}


def _value(data: bytes, at: int) -> tuple[Any, int]:
    first = data[at]
    at += 1
    if first < 0x80:
        return first, at
    if first in _SCALARS:
        return _SCALARS[first], at
    if first in _UNSIGNED:
        return _number(data, at, _UNSIGNED[first])
    return _sized(data, at, first)


def _sized(data: bytes, at: int, first: int) -> tuple[Any, int]:
    for kinds, low, high in ((_TEXTS, 0xA0, 0xBF), (_LISTS, 0x90, 0x9F), (_MAPS, 0x80, 0x8F)):
        if low <= first <= high:
            return _body(data, at, kinds, first - low)
        if first in kinds:
            length, at = _number(data, at, kinds[first])
            return _body(data, at, kinds, length)
    if first in _BYTES:
        length, at = _number(data, at, _BYTES[first])
        return _piece(data, at, length), at + length
    raise SessionError(f"the guard sent a value of kind {first:#x}")


def _body(data: bytes, at: int, kinds: dict[int, int], length: int) -> tuple[Any, int]:
    if kinds is _TEXTS:
        return _piece(data, at, length).decode(), at + length
    members = []
    for _ in range(length if kinds is _LISTS else 2 * length):
        member, at = _value(data, at)
        members.append(member)
    if kinds is _LISTS:
        return members, at
    return dict(zip(members[::2], members[1::2], strict=True)), at


def _number(data: bytes, at: int, width: int) -> tuple[int, int]:
    return int.from_bytes(_piece(data, at, width), "big"), at + width


def _piece(data: bytes, at: int, length: int) -> bytes:
    if at + length > len(data):
        raise IndexError
    return data[at : at + length]
