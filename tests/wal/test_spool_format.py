"""Commands and answers of a control spool: what is written is read, garbage is a ValueError."""

from __future__ import annotations

import doctest
import json
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.domain.operations import HoldOp
from memwatch.wal import spool_format
from memwatch.wal.spool_format import (
    PROTO,
    Ack,
    AgentState,
    Busy,
    CommandFile,
    HoldFile,
    HoldState,
    LeaseEnd,
    Sender,
    command_name,
    encode,
    hold_name,
    parse_ack,
    parse_command,
    parse_hold,
    parse_hold_name,
    parse_name,
    parse_state,
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


HOLDS = st.builds(
    HoldFile,
    proto=st.just(PROTO),
    id=st.from_regex(r"[0-9A-Za-z][0-9A-Za-z._-]{0,99}", fullmatch=True),
    run_id=WORDS,
    op=st.sampled_from(["pause", "read_only"]),
    lease_us=st.integers(1, 2**62),
    on_lease_end=st.sampled_from([None, "release", "keep"]),
    reason=WORDS,
    renewed=st.integers(0, 2**62),
    epoch=st.none() | st.integers(0, 2**62),
)


@given(HOLDS)
def test_a_hold_is_read_as_it_was_written(hold: HoldFile) -> None:
    assert parse_hold(encode(hold)) == hold


@pytest.mark.parametrize(
    ("op", "on_lease_end", "kept"),
    [
        ("pause", None, False),
        ("read_only", None, True),
        ("pause", "keep", True),
        ("read_only", "release", False),
    ],
)
def test_only_read_only_is_kept_unless_it_says_so(
    op: HoldOp, on_lease_end: LeaseEnd | None, kept: bool
) -> None:
    hold = HoldFile(proto=PROTO, id="h", run_id="any", op=op, on_lease_end=on_lease_end)
    assert hold.kept is kept


def test_a_state_is_read_leniently() -> None:
    state = AgentState(
        run_id="r",
        mode="paused",
        holds=[HoldState(id="h", op="pause", ends_us=7)],
        busy=Busy(op="purge", id="c", progress={"entries": 1}),
    )
    assert parse_state(encode(state)) == state
    assert parse_state(encode(state)[:-1] + b',"more":1}') == state
    assert parse_state(b'{"run_id":"r"}') == AgentState(run_id="r")


@given(st.from_regex(r"[0-9A-Za-z][0-9A-Za-z._-]{0,99}", fullmatch=True))
def test_a_holds_name_says_owner_and_kind(owner: str) -> None:
    for op in get_args(HoldOp):
        assert parse_hold_name(hold_name(owner, op)) == (owner, op)


@given(st.binary(max_size=300))
def test_garbage_is_a_value_error(data: bytes) -> None:
    for parse in (parse_command, parse_ack, parse_hold, parse_state):
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


@pytest.mark.parametrize("lease_us", [0, -5, 1 << 63, 1 << 70])
def test_a_lease_that_no_clock_can_tell_is_refused(lease_us: int) -> None:
    hold = {"proto": PROTO, "id": "h", "run_id": "any", "op": "pause", "lease_us": lease_us}
    with pytest.raises(ValueError, match="its lease"):
        parse_hold(json.dumps(hold).encode())
