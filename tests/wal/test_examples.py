"""The example logs are the format: the codec reads them to the byte, and writes them again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from zlib import crc32

import pytest

from memwatch.analytics.narrate import KNOWN_KINDS
from memwatch.domain.record import Fault
from memwatch.wal import codec
from tests.wal.strategies import Reading, read

HERE = Path(__file__).parent / "examples"
HEALTHY = ("healthy.wal", "guard.wal")
SHARED = {"note", "command"}
"""Kinds that both logs know."""


def example(name: str) -> Reading:
    return read([(HERE / name).read_bytes()])


def test_each_kind_stands_in_the_healthy_logs_once() -> None:
    agent, guard = ([record.kind for record in example(name).records] for name in HEALTHY)
    assert len(agent) == len(set(agent))
    assert len(guard) == len(set(guard))
    assert set(agent) & set(guard) == SHARED
    assert set(agent) | set(guard) == KNOWN_KINDS


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_log_is_read_whole_and_written_the_same(name: str) -> None:
    reading = example(name)
    assert reading.faults == []
    assert reading.stream.torn_bytes == 0
    assert [record.lsn for record in reading.records] == list(range(1, len(reading.records) + 1))
    written = b""
    for record in reading.records:
        own = {"lsn", "t", "m", "k"}
        members = {name: value for name, value in record.members.items() if name not in own}
        written += codec.encode(record.lsn, record.t_us, record.m_us, record.kind, members)
    assert written == (HERE / name).read_bytes()


@pytest.mark.parametrize("name", HEALTHY)
def test_other_tools_read_it_by_the_written_rules(name: str) -> None:
    for line in (HERE / name).read_bytes().splitlines():
        body, mark, tail = line.rpartition(b',"crc":"')
        assert mark
        assert tail == b'%08x"}' % crc32(body)
        members = json.loads(line)
        assert all(isinstance(members[name], int) for name in ("lsn", "t", "m"))


def test_all_text_of_the_healthy_log_is_read() -> None:
    by_kind = {record.kind: record for record in example("healthy.wal").records}
    assert by_kind["note"].text("text") == 'by hand: tabs\tand "quotes", 中文, ☃'
    assert by_kind["error"].text("message") == "no answer \x1b[31mred\x1b[0m"
    assert by_kind["experiment.end"].members["metrics"] == {"ratio": 0.267, "seconds": 0.018}
    assert by_kind["run.begin"].members["limits"]["context_tokens"] is None


def test_the_damaged_log_gives_each_good_record_and_a_fault_for_each_harm() -> None:
    reading = example("damaged.wal")
    items = [item for item in reading.stream.seal(13) if isinstance(item, Fault)]
    assert [record.lsn for record in reading.records] == [1, 2, 4, 7, 9, 11]
    found = [(fault.kind, fault.lsn, fault.missing) for fault in (*reading.faults, *items)]
    assert found == [
        ("damaged", None, 0),  # 3: one bit is another
        ("gap", 7, 2),  # 5 and 6 are missing
        ("fused", None, 0),  # 8 broke off, 9 stands behind it
        ("damaged", None, 0),  # an empty line where 10 should be
        ("torn", None, 0),  # 12 breaks off
    ]


def test_each_fault_says_where(tmp_path: Path) -> None:
    data = (HERE / "damaged.wal").read_bytes()
    reading = example("damaged.wal")
    for fault in (fault for fault in reading.faults if fault.kind != "gap"):
        assert fault.offset == 0 or data[fault.offset - 1 : fault.offset] == b"\n"
        assert fault.length > 0


def test_the_codec_reads_them_without_the_rest_of_the_package() -> None:
    code = (
        "import sys; from memwatch.wal import codec\n"
        "lines = open(sys.argv[1], 'rb').read().splitlines()\n"
        "print(len([codec.decode(line) for line in lines]))\n"
        "heavy = {'duckdb', 'textual', 'watchfiles', 'psutil', 'yaml'} & set(sys.modules)\n"
        "sys.exit(1 if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(HERE / "healthy.wal")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) == len(example("healthy.wal").records)
