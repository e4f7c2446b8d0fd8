"""The client without msgspec reads what msgspec writes, and refuses what is broken."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.domain.errors import SessionError
from memwatch.runtime.protocol.client import GuardSession
from memwatch.runtime.protocol.numbers import MAX_FRAME_BYTES, GuardSilentError, NoGuardError
from memwatch.runtime.protocol.thin_client import pack, status_json, unpack
from tests.runtime.fakes import FakeHub, serving

PLAIN = st.none() | st.booleans() | st.integers(0, 2**64 - 1) | st.text(max_size=300)
SENT_BY_GUARD = st.recursive(
    PLAIN | st.binary(max_size=300),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=8), inner),
)
SENT_BY_US = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=15) | st.dictionaries(st.text(max_size=8), inner, max_size=15)
    ),
)
STATUS_ANSWER = {"id": 1, "ok": True, "result": {"json": b"x" * 70_000, "ready": True}}


@given(SENT_BY_GUARD)
def test_it_reads_what_a_guard_writes(message: Any) -> None:
    assert unpack(msgspec.msgpack.encode(message)) == message


@given(SENT_BY_US)
def test_a_guard_reads_what_it_writes(message: Any) -> None:
    assert msgspec.msgpack.decode(pack(message)) == message


@given(st.binary(max_size=200))
def test_broken_bytes_are_an_error_or_the_value_that_msgspec_sees(data: bytes) -> None:
    try:
        value = unpack(data)
    except SessionError:
        return
    assert value == msgspec.msgpack.decode(data, strict=False)


@given(st.data())
def test_a_message_cut_anywhere_is_an_error(data: st.DataObject) -> None:
    whole = msgspec.msgpack.encode(STATUS_ANSWER)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(SessionError):
        unpack(whole[:cut])


@pytest.mark.parametrize(
    "body",
    [
        b"\x91" * 100_000,
        b"\xdd\xff\xff\xff\xff\xc0",
        b"\x81\x80\xc0",
        b"\xcb" + bytes(8),
        b"\xc0\xc0",
    ],
    ids=["nested", "long list", "map as key", "a float", "two values"],
)
def test_what_no_guard_sends_is_one_sentence(body: bytes) -> None:
    with pytest.raises(SessionError, match="the guard sent"):
        unpack(body)


def test_status_comes_whole() -> None:
    hub = FakeHub()
    with serving(hub) as server:
        status = msgspec.json.decode(status_json(str(server.path)))
    assert status["run"]["id"] == "run-1"
    assert status["seq"] == 1


def test_it_loads_no_msgspec() -> None:
    code = "import memwatch.runtime.protocol.thin_client, sys; print('msgspec' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@contextmanager
def answering(*frames: bytes) -> Iterator[str]:
    """Listen as a strange guard that sends these bytes to whoever comes, whatever it says."""
    with tempfile.TemporaryDirectory(prefix="mw-") as folder:
        path = str(Path(folder) / "s.sock")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(path)
            listener.listen()
            listener.settimeout(10)

            def serve() -> None:
                line, _ = listener.accept()
                with line:
                    for frame in frames:
                        line.recv(1 << 16)
                        line.sendall(frame)

            thread = threading.Thread(target=serve, daemon=True)
            thread.start()
            yield path
            thread.join(timeout=10)


def framed(message: Any) -> bytes:
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(4, "big") + body


HELLO = framed({"hello": {"proto": [1, 7], "app": "memwatch 9"}})


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ([framed({"hello": {"proto": [2, 0]}})], "protocol 2.*restart the guard"),
        ([framed({"hello": {"proto": 1}})], "no memwatch guard"),
        ([framed({"hello": 1})], "no memwatch guard"),
        ([framed([1])], "something else than a message"),
        ([(MAX_FRAME_BYTES + 1).to_bytes(4, "big")], "over the limit"),
        ([HELLO, framed({"id": 1, "ok": False, "error": "not now"})], "not now"),
        ([HELLO, framed({"id": 1, "ok": True})], "told no status"),
        ([HELLO, framed({"id": 1, "ok": True, "result": {"json": 5}})], "told no status"),
    ],
)
def test_a_strange_guard_is_one_sentence(frames: list[bytes], words: str) -> None:
    with answering(*frames) as path, pytest.raises(SessionError, match=words) as caught:
        status_json(path)
    assert not isinstance(caught.value, NoGuardError), "somebody answered"


def test_a_newer_minor_is_understood() -> None:
    result = {"json": b"{}", "ready": True, "more": [1, 2]}
    with answering(HELLO, framed({"id": 1, "ok": True, "result": result, "new": 1})) as path:
        assert status_json(path) == b"{}"


@pytest.mark.parametrize("frames", [[], [HELLO], [HELLO, b"\x00\x00"]])
def test_a_guard_that_goes_is_told_apart_from_one_that_is_strange(frames: list[bytes]) -> None:
    with answering(*frames) as path, pytest.raises(NoGuardError):
        status_json(path)


def test_a_guard_that_is_stopped_is_told_apart_from_none(tmp_path: Path) -> None:
    path = str(tmp_path / "s.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen()
        with pytest.raises(GuardSilentError, match="does not answer"):
            status_json(path, timeout_s=0.1)
        with pytest.raises(GuardSilentError, match="does not answer"):
            GuardSession(Path(path), timeout_s=0.1)


def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(NoGuardError, match="no guard answers"):
        status_json(str(tmp_path / "none.sock"))
