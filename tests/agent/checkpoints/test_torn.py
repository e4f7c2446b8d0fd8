"""Torn ends of sealed segments are cut off before an increment, and no byte more (R7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from memwatch.agent.checkpoints.torn import torn_tails
from memwatch.wal import codec
from memwatch.wal.segment import segment_name
from tests.agent.checkpoints.bench import Bench
from tests.agent.reading import read_log


def line(lsn: int, pad: int = 0) -> bytes:
    return codec.encode(lsn, 1, 1, "note", {"text": "x" * pad})


def write(folder: Path, segment: int, data: bytes) -> Path:
    path = folder / segment_name(segment)
    path.write_bytes(data)
    return path


def test_a_torn_end_goes_and_the_log_says_so(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.tiers["recent"].put("a", 1)
    bench.checkpoints.take("full")
    bench.close()
    newest = max((tmp_path / "wal").iterdir())
    whole = newest.read_bytes()
    newest.write_bytes(whole + b'{"lsn":7,"t":1,')
    again = Bench(tmp_path)
    assert newest.read_bytes() != whole, "a restart truncates nothing"
    assert [fault.kind for fault in read_log(tmp_path / "wal")[1]] == ["torn"]
    again.checkpoints.take("incremental")
    assert newest.read_bytes() == whole
    assert read_log(tmp_path / "wal")[1] == []
    (truncate,) = again.records("truncate")
    told = [truncate.members.get(n) for n in ("cause", "segments", "bytes", "first_lsn")]
    assert told == ["torn", 1, 15, None]
    again.check()
    again.close()


@pytest.mark.parametrize("pad", [0, 70_000])
def test_only_what_follows_the_last_line_is_torn(tmp_path: Path, pad: int) -> None:
    whole = line(1) + line(2, pad)
    path = write(tmp_path, 1, whole + b"x" * (pad + 3))
    write(tmp_path, 3, b"torn, but not sealed")
    (tail,) = torn_tails(tmp_path, set())
    assert tail == (path, len(whole), pad + 3)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"remains that cost a number",
        line(1) + line(2),
        line(1) + b"torn",  # 2 is missing: the broken line stands for it
        line(1) + line(2)[:-9] + b"\n" + b"torn",  # nor is this a line to go by
    ],
)
def test_where_a_number_went_with_it_nothing_is_cut(tmp_path: Path, data: bytes) -> None:
    write(tmp_path, 1, data)
    write(tmp_path, 3, b"")
    seen: set[int] = set()
    assert torn_tails(tmp_path, seen) == []
    assert seen == {1}
