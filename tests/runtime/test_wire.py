"""Frames: what is packed is unpacked, and nothing else gets through."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.domain.errors import SessionError
from memwatch.runtime.protocol import wire
from memwatch.runtime.protocol.numbers import MAX_FRAME_BYTES

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), VALUES))
def test_round_trip(message: dict[str, Any]) -> None:
    frame = wire.pack(message)
    length = wire.body_bytes(frame[: wire.HEADER_BYTES])
    assert length == len(frame) - wire.HEADER_BYTES
    assert wire.unpack(frame[wire.HEADER_BYTES :]) == message


@given(st.binary(max_size=300))
def test_any_bytes_are_a_message_or_one_sentence(body: bytes) -> None:
    try:
        message = wire.unpack(body)
    except SessionError:
        return
    assert isinstance(message, dict)


def test_oversize_is_refused_at_both_ends() -> None:
    with pytest.raises(SessionError, match="over the limit"):
        wire.pack({"text": "x" * MAX_FRAME_BYTES})
    with pytest.raises(SessionError, match="announced"):
        wire.body_bytes((MAX_FRAME_BYTES + 1).to_bytes(4, "big"))


def test_our_own_greeting_is_accepted() -> None:
    greeting = wire.check_hello(wire.hello("start", ["run"]))
    assert greeting["start_id"] == "start"
    assert greeting["run_keys"] == ["run"]


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({}, "no memwatch guard"),
        ({"hello": {}}, "no memwatch guard"),
        ({"hello": {"proto": []}}, "no memwatch guard"),
        ({"hello": {"proto": ["\x1b[31m"]}}, "no memwatch guard"),
        ({"hello": {"proto": [2, 0]}}, "protocol 2, this one 1"),
    ],
)
def test_another_greeting_is_refused_with_a_sentence(message: dict[str, Any], words: str) -> None:
    with pytest.raises(SessionError, match=words):
        wire.check_hello(message)
