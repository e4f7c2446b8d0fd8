"""Frames of the session protocol: u32 big-endian length + msgpack.

Described in `memwatch.runtime.session`. The `thin_client` beside this speaks the same without
msgspec, for commands whose cost is their start-up.
"""

from __future__ import annotations

from typing import Any

import msgspec

from memwatch import __version__
from memwatch.domain.errors import SessionError
from memwatch.runtime.protocol.numbers import MAX_FRAME_BYTES, PROTOCOL, refusal

HEADER_BYTES = 4
_encoder = msgspec.msgpack.Encoder()


def pack(message: Any) -> bytes:
    """Return the frame of a message; raises SessionError when it is over the limit."""
    body = _encoder.encode(message)
    if len(body) > MAX_FRAME_BYTES:
        raise SessionError(f"a message of {len(body)} bytes is over the limit of a frame")
    return len(body).to_bytes(HEADER_BYTES, "big") + body


def body_bytes(header: bytes) -> int:
    """Return the length that a header states; raises SessionError when it is over the limit."""
    length = int.from_bytes(header, "big")
    if length > MAX_FRAME_BYTES:
        raise SessionError(f"the other end announced a frame of {length} bytes")
    return length


def unpack(body: bytes) -> dict[str, Any]:
    """Return the message of a frame's body; raises SessionError when it is none."""
    try:
        return msgspec.msgpack.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise SessionError(f"the other end sent something else than a message: {error}") from None


def hello(start_id: str, run_keys: list[str]) -> dict[str, Any]:
    """Return the first message of either side."""
    return {
        "hello": {
            "proto": list(PROTOCOL),
            "app": f"memwatch {__version__}",
            "start_id": start_id,
            "run_keys": run_keys,
        }
    }


def viewer_hello(viewer: str, *, view_only: bool) -> dict[str, Any]:
    """Return the first message of a viewer: who it is, and whether it only looks on."""
    message = hello("", [])
    message["hello"] |= {"viewer": viewer, "view": view_only}
    return message


def check_hello(message: dict[str, Any]) -> dict[str, Any]:
    """Return the other side's greeting; raises SessionError when it speaks another protocol."""
    greeting = message.get("hello")
    proto = greeting.get("proto") if isinstance(greeting, dict) else None
    why = refusal(proto)
    if why or not isinstance(greeting, dict):
        raise SessionError(why)
    return greeting
