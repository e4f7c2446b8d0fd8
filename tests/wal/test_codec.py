"""A line says one thing only, or is damaged: the codec never guesses."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.domain.record import Record
from memwatch.wal import codec
from tests.wal.strategies import INT64_MAX, Body, bodies, finite, signed, text

HEAD = b'{"lsn":7,"t":1,"m":2,"k":"note"'


def refused(line: bytes) -> str:
    with pytest.raises(codec.DamagedLineError) as caught:
        codec.decode(line)
    return str(caught.value)


@given(bodies, st.integers(1, INT64_MAX - 1))
def test_what_was_written_is_read(body: Body, lsn: int) -> None:
    line = codec.encode(lsn, body.t_us, body.m_us, body.kind, body.members)
    assert line.endswith(b'"}\n')
    assert line.count(b"\n") == 1
    head = {"lsn": lsn, "t": body.t_us, "m": body.m_us, "k": body.kind}
    expected = Record(lsn, body.t_us, body.m_us, body.kind, head | body.members)
    assert codec.decode(line[:-1]) == expected


@given(bodies)
def test_a_line_is_json_that_other_tools_read(body: Body) -> None:
    line = codec.encode(1, body.t_us, body.m_us, body.kind, body.members)
    read = json.loads(line)
    assert list(read)[:4] == ["lsn", "t", "m", "k"]
    assert list(read)[-1] == "crc"
    assert {name: read[name] for name in body.members} == body.members


@given(st.binary(max_size=200))
def test_no_bytes_whatever_raise_anything_else(line: bytes) -> None:
    refused(line)


@given(st.binary(max_size=80), st.booleans())
def test_nor_do_they_behind_a_right_checksum(junk: bytes, with_head: bool) -> None:
    body = HEAD + b"," + junk if with_head else junk
    try:
        record = codec.decode(signed(body)[:-1])
    except codec.DamagedLineError:
        return
    assert json.loads(body + b"}")["lsn"] == record.lsn


@pytest.mark.parametrize(
    "rest",
    [
        b',"a":NaN', b',"a":Infinity', b',"a":-Infinity', b',"a":1e400', b',"a":"\\ud800"',
        b',"a":"\xff"', b',"a":1,"a":1', b',"k":"note"', b',"a":{"b":1,"b":2}',
        b',"a":[{"b":1,"c":[{"d":0,"d":0}]}]', b',"a":' + b"[" * 100_000, b',"a":01', b',"a":+1',
        b',"a":1}{', b",", b',"a"', b'\x00,"a":1', b',"a":"\n"', b',"\\u0061":1,"a":1',
    ],
)  # fmt: skip
def test_damaged_in_spite_of_its_checksum(rest: bytes) -> None:
    refused(signed(HEAD + rest)[:-1])


@pytest.mark.parametrize(
    "body",
    [
        b'{"lsn":0,"t":1,"m":2,"k":"a"', b'{"lsn":-1,"t":1,"m":2,"k":"a"',
        b'{"lsn":1.0,"t":1,"m":2,"k":"a"', b'{"lsn":true,"t":1,"m":2,"k":"a"',
        b'{"lsn":"1","t":1,"m":2,"k":"a"', b'{"lsn":1,"t":1.5,"m":2,"k":"a"',
        b'{"lsn":1,"t":1,"m":null,"k":"a"', b'{"lsn":1,"t":1,"m":2,"k":5', b'{"t":1,"m":2,"k":"a"',
        b'{"lsn":9223372036854775808,"t":1,"m":2,"k":"a"', b"[1,2", b'{"lsn":1',
        b'{"lsn":9223372036854775807,"t":1,"m":2,"k":"a"',
        b'{"lsn":1,"t":9223372036854775808,"m":2,"k":"a"', b"",
    ],
)  # fmt: skip
def test_damaged_without_its_common_members(body: bytes) -> None:
    refused(signed(body)[:-1])


@pytest.mark.parametrize(
    ("spelled", "value"),
    [
        (b'"\\u0061\\/"', "a/"), (b" [ 1 , 2 ] ", [1, 2]), (b"1e3", 1000.0), (b"-0", 0),
        (b"1" + b"0" * 40, 10**40), (b'{"a":{"a":1},"b":{"a":1}}', {"a": {"a": 1}, "b": {"a": 1}}),
        (b"[" * 200 + b"]" * 200, None), (b'"\\ud83d\\ude00"', "\U0001f600"),
    ],
)  # fmt: skip
def test_another_way_to_spell_a_value_is_no_damage(spelled: bytes, value: Any) -> None:
    record = codec.decode(signed(HEAD + b',"a":' + spelled)[:-1])
    if value is not None:
        assert record.members["a"] == value
    assert record.lsn == 7


@pytest.mark.parametrize(
    "line",
    [
        b"", b"{}", b"\r", codec.encode(1, 1, 1, "a", {})[:-1] + b"\r",
        codec.encode(1, 1, 1, "a", {})[:-1] + b" ", b" " + codec.encode(1, 1, 1, "a", {})[:-1],
        codec.encode(1, 1, 1, "a", {}).upper()[:-1], b'{"lsn":1,"t":1,"m":1,"k":"a"}',
        codec.encode(10, 1, 1, "a", {})[:-1].replace(b"10", b"11"),
    ],
)  # fmt: skip
def test_the_tail_is_compared_to_the_byte(line: bytes) -> None:
    refused(line)


@given(bodies, st.data())
def test_any_flipped_bit_is_noticed(body: Body, data: st.DataObject) -> None:
    line = bytearray(codec.encode(3, body.t_us, body.m_us, body.kind, body.members)[:-1])
    bit = data.draw(st.integers(0, len(line) * 8 - 1))
    line[bit // 8] ^= 1 << bit % 8
    refused(bytes(line))


@given(finite | st.just(math.inf) | st.just(-math.inf) | st.just(math.nan))
def test_a_number_that_is_not_finite_is_stored_as_null(number: float) -> None:
    read = codec.decode(codec.encode(1, 1, 1, "a", {"n": number})[:-1]).members["n"]
    assert read == number if math.isfinite(number) else read is None


@given(st.sampled_from(["lsn", "t", "m", "k", "crc"]), text)
def test_the_codecs_own_members_cannot_be_given(name: str, value: str) -> None:
    with pytest.raises(ValueError, match="own members"):
        codec.encode(1, 1, 1, "a", {name: value})


def test_an_over_long_record_is_refused_when_it_is_written() -> None:
    with pytest.raises(ValueError, match="over the 16000000"):
        codec.encode(1, 1, 1, "a", {"text": "x" * codec.MAX_LINE_BYTES})


def test_the_line_in_the_docstring_is_one() -> None:
    assert codec.__doc__ is not None
    (shown,) = re.findall(r'^ *(\{"lsn".*\})\\n$', codec.__doc__, re.MULTILINE)
    record = codec.decode(shown.encode())
    assert (record.lsn, record.kind, record.text("text")) == (1, "note", "hello")
