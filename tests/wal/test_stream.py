"""Whatever happens to the bytes: good records come out, all else is a typed fault."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memwatch.domain.record import Fault, Position, Record
from memwatch.wal import codec
from memwatch.wal.stream import SegmentStream
from tests.wal.strategies import (
    Body,
    Log,
    Reading,
    chunked,
    log_of,
    logs,
    members,
    read,
    signed,
    values,
)

SMALL = log_of([Body(n, n, "note", {"text": f"nr {n}"}) for n in range(4)], first=11)


@given(logs, st.data())
def test_any_chunking_gives_the_same_records_and_position(log: Log, data: st.DataObject) -> None:
    reading = read(data.draw(chunked(log.data)), log.first)
    assert reading.records == log.records
    assert reading.faults == []
    last = log.records[-1].lsn
    assert reading.stream.position == Position(log.first, len(log.data), last + 1)


@given(logs, st.data())
def test_cut_anywhere_the_rest_waits_and_is_read_later(log: Log, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(log.data)))
    reading = read([log.data[:cut]], log.first)
    whole = sum(end <= cut for end in log.ends())
    assert reading.records == log.records[:whole]
    assert reading.faults == []
    place = reading.stream.position
    assert place.offset == ([0, *log.ends()])[whole]
    assert reading.stream.torn_bytes == cut - place.offset
    rest = read([log.data[place.offset :]], position=place)
    assert reading.records + rest.records == log.records
    assert rest.faults == []


@given(logs, st.data())
def test_cut_anywhere_and_sealed_it_is_torn_with_a_gap(log: Log, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(log.data)))
    stream = SegmentStream(Position(log.first))
    found = [item for item in stream.feed(log.data[:cut]) if isinstance(item, Record)]
    torn = stream.torn_bytes
    successor = log.records[-1].lsn + 1
    faults = [item for item in stream.seal(successor) if isinstance(item, Fault)]
    missing = len(log.records) - len(found)
    expected = ["torn"] if torn else []
    if missing > len(expected):
        expected.append("gap")
        assert faults[-1].missing == missing
        assert faults[-1].lsn == successor
    assert [fault.kind for fault in faults] == expected
    assert stream.position == Position(log.first, cut, successor)
    assert stream.seal(successor) == [], "said once"


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def check_flip(log: Log, bit: int, reading: Reading) -> None:
    hit = sum(end <= bit // 8 for end in log.ends())
    lost = log.records[hit]
    assert reading.records == [record for record in log.records if record is not lost]
    stream = reading.stream
    end = [item for item in stream.seal(log.records[-1].lsn + 1) if isinstance(item, Fault)]
    assert reading.faults or end
    assert {fault.kind for fault in (*reading.faults, *end)} <= {"damaged", "fused", "torn"}


@given(logs, st.data())
def test_any_flipped_bit_costs_its_record_only(log: Log, data: st.DataObject) -> None:
    bit = data.draw(st.integers(0, len(log.data) * 8 - 1))
    check_flip(log, bit, read(data.draw(chunked(flipped(log.data, bit))), log.first))


def test_each_single_bit_of_a_small_log() -> None:
    for bit in range(len(SMALL.data) * 8):
        check_flip(SMALL, bit, read([flipped(SMALL.data, bit)], SMALL.first))


@given(logs, st.data())
def test_bytes_put_in_anywhere_give_no_wrong_record(log: Log, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(log.data)))
    junk = data.draw(st.binary(min_size=1, max_size=30))
    reading = read([log.data[:at] + junk + log.data[at:]], log.first)
    assert [record for record in reading.records if record not in log.records] == []
    hit = {sum(end < at for end in log.ends()), sum(end <= at for end in log.ends())}
    safe = [record for number, record in enumerate(log.records) if number not in hit]
    assert [record for record in reading.records if record in safe] == safe


@given(logs, st.data())
def test_a_missing_piece_of_the_log_is_a_gap(log: Log, data: st.DataObject) -> None:
    count = len(log.records)
    first = data.draw(st.integers(0, count - 1))
    last = data.draw(st.integers(first, count - 1))
    reading = read(log.lines[:first] + log.lines[last + 1 :], log.first)
    assert reading.records == log.records[:first] + log.records[last + 1 :]
    if last + 1 < count:
        (fault,) = reading.faults
        assert (fault.kind, fault.missing) == ("gap", last + 1 - first)
        assert fault.lsn == log.records[last + 1].lsn


@given(logs, st.data())
def test_numbers_that_come_again_are_said_to(log: Log, data: st.DataObject) -> None:
    back = data.draw(st.integers(0, len(log.records) - 1))
    reading = read([*log.lines, *log.lines[back:]], log.first)
    assert reading.records == log.records + log.records[back:]
    assert [(f.kind, f.lsn) for f in reading.faults] == [("repeated", log.first + back)]


@given(logs, st.data())
def test_a_record_behind_a_broken_one_is_kept(log: Log, data: st.DataObject) -> None:
    hit = data.draw(st.integers(0, len(log.lines) - 1))
    cut = data.draw(st.integers(1, len(log.lines[hit]) - 1))
    follows = hit + 1 < len(log.lines)
    lines = [*log.lines[:hit], log.lines[hit][:cut], *log.lines[hit + 1 :]]
    reading = read([b"".join(lines)], log.first)
    assert reading.records == log.records[:hit] + log.records[hit + 1 :]
    assert reading.kinds() == (["fused"] if follows else [])
    assert reading.stream.torn_bytes == (0 if follows else cut)


@given(members, values)
def test_text_that_looks_like_a_record_is_none(extra: dict[str, object], inner: object) -> None:
    hidden = {"lsn": 99, "t": 1, "m": 1, "k": "note", "text": inner, "crc": "00000000"}
    told = codec.encode(1, 1, 1, "note", extra | {"text": codec.encode(9, 1, 1, "a", {}).decode()})
    nested = codec.encode(2, 1, 1, "note", {"diff": hidden, "deeper": [hidden, {"a": hidden}]})
    for bit in (0, 8 * 12):
        broken = flipped(nested[:-1], bit) + b"\n"
        reading = read([told + broken])
        assert [record.lsn for record in reading.records] == [1]
        assert reading.kinds() == ["damaged"]


@pytest.mark.parametrize(
    ("between", "kinds"),
    [
        (b"\n", ["damaged"]), (b"\r\n", ["damaged"]), (b"\x00" * 100 + b"\n", ["damaged"]),
        (b"\n\n\n", ["damaged"] * 3), (b"{}\n", ["damaged"]), (b"\x00" * 4096, ["fused"]),
        (signed(b'{"lsn":1,"t":1,"m":1,"k":"a","v":NaN'), ["damaged"]),
    ],
)  # fmt: skip
def test_between_good_lines(between: bytes, kinds: list[str]) -> None:
    reading = read([SMALL.lines[0], between, *SMALL.lines[1:]], SMALL.first)
    assert reading.records == SMALL.records
    assert reading.kinds() == kinds
    assert reading.faults[0].offset == len(SMALL.lines[0])


def test_windows_line_ends_are_damage_for_each_line() -> None:
    reading = read([SMALL.data.replace(b"\n", b"\r\n")], SMALL.first)
    assert reading.records == []
    assert reading.kinds() == ["damaged"] * 4


@given(st.integers(100, 400), st.data())
@example(300, None)
def test_an_over_long_line_is_skipped_and_counted(size: int, data: st.DataObject | None) -> None:
    longest = 200
    long = codec.encode(12, 1, 1, "note", {"text": "x" * size})
    whole = SMALL.lines[0] + long + b"".join(SMALL.lines[2:])
    chunks = data.draw(chunked(whole)) if data else [whole]
    reading = read(chunks, SMALL.first, max_line_bytes=longest)
    fits = len(long) <= longest
    assert [record.lsn for record in reading.records] == (
        [11, 12, 13, 14] if fits else [11, 13, 14]
    )
    place = (len(SMALL.lines[0]), len(long))
    assert [(f.kind, f.offset, f.length) for f in reading.faults] == (
        [] if fits else [("overlong", *place)]
    )


def test_hostile_lines_cost_a_bounded_number_of_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    decode = codec.decode
    sizes: list[int] = []

    def counted(line: bytes) -> Record:
        sizes.append(len(line))
        return decode(line)

    monkeypatch.setattr(codec, "decode", counted)
    reading = read([codec.RECORD_START * 50_000 + b"\n"])
    assert reading.kinds() == ["damaged"]
    assert 1 < len(sizes) <= 5


@given(st.integers(0, 1500), st.integers(1, 400))
def test_garbage_without_end_costs_few_faults_whatever_the_chunks(lines: int, size: int) -> None:
    junk = b"\n\r\n" * lines
    data = SMALL.lines[0] + junk + b"".join(SMALL.lines[1:])
    reading = read((data[at : at + size] for at in range(0, len(data), size)), SMALL.first)
    assert reading.records == SMALL.records
    assert reading.faults == read([data], SMALL.first).faults
    assert len(reading.faults) == 2 * lines if lines <= 50 else len(reading.faults) <= 110
    assert sum(fault.length for fault in reading.faults) == len(junk), "each byte is in a fault"
    assert {fault.kind for fault in reading.faults} <= {"damaged"}


def test_garbage_to_the_end_is_said_when_the_segment_is_sealed() -> None:
    reading = read([SMALL.data, b"\n" * 1000], SMALL.first)
    last = [item for item in reading.stream.seal(15) if isinstance(item, Fault)]
    assert sum(fault.length for fault in (*reading.faults, *last)) == 1000
    assert last[0].detail == "broken line 1000 in a row: no checksum at the end"
