"""Commands and answers of a control spool: what is written is read, garbage is a ValueError."""

from __future__ import annotations

import doctest

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.wal import spool_format
from memwatch.wal.spool_format import (
    PROTO,
    Ack,
    CommandFile,
    Sender,
    command_name,
    encode,
    parse_ack,
    parse_command,
    parse_name,
)

WORDS = st.text(max_size=40)
ARGS = st.dictionaries(WORDS, st.none() | st.booleans() | st.integers(-(2**53), 2**53) | WORDS)
COMMANDS = st.builds(
    CommandFile,
    proto=st.just(PROTO),
    id=WORDS,
    run_id=WORDS,
    op=WORDS,
    issued_us=st.integers(0, 2**62),
    args=ARGS,
    by=st.builds(Sender, uid=st.integers(-1, 2**31), host=WORDS),
    epoch=st.none() | st.integers(0, 2**62),
    expect=ARGS,
    dry_run=st.booleans(),
    confirm=st.none() | WORDS,
)


@given(COMMANDS)
def test_a_command_is_read_as_it_was_written(command: CommandFile) -> None:
    assert parse_command(encode(command)) == command


@given(st.binary(max_size=300))
def test_garbage_is_a_value_error(data: bytes) -> None:
    for parse in (parse_command, parse_ack):
        with pytest.raises(ValueError, match=r".+"):
            parse(data)


def test_only_members_of_others_are_ignored() -> None:
    command = CommandFile(proto=PROTO, id="a", run_id="r", op="mark", issued_us=1)
    members = msgspec.json.decode(encode(command))
    assert set(members) == {"proto", "id", "run_id", "op", "issued_us"}, "an older agent reads it"
    assert parse_command(msgspec.json.encode({**members, "x_y": [1]})) == command
    with pytest.raises(ValueError, match="unknown members: sudo"):
        parse_command(msgspec.json.encode({**members, "sudo": True}))
    answer = Ack(id="a", run_id="r", seq=1, state="done")
    assert parse_ack(encode(answer)[:-1] + b',"more":1}') == answer


@given(st.from_regex(r"[0-9A-Za-z][0-9A-Za-z._-]{0,99}", fullmatch=True), WORDS)
def test_a_name_says_id_and_priority(command_id: str, op: str) -> None:
    parsed = parse_name(command_name(command_id, op))
    assert parsed is not None
    assert parsed[1] == command_id


@pytest.mark.parametrize("name", ["1-.json", "1-../x.json", "١-a.json", "1-a.json\n", "1-a"])
def test_another_name_is_none(name: str) -> None:
    assert parse_name(name) is None


def test_examples() -> None:
    found = doctest.testmod(spool_format)
    assert found.attempted
    assert not found.failed
