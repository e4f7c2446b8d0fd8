"""A real writer, killed again and again, and a reader that looks meanwhile and starts anew."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from memwatch.domain.record import Position, Record
from memwatch.ingest.tailer import LogTailer
from memwatch.wal.segment import segments
from memwatch.wal.stream import SegmentStream
from tests.ingest.log_dir import Reader

WRITER = """
import os, sys
from pathlib import Path
from memwatch.agent.log import LogWriter
log = LogWriter(Path(sys.argv[1]), durability="os", segment_bytes=3000)
print("ready", flush=True)
while True:
    lsn = log.append("note", {"token": 1, "text": "x" * (os.urandom(1)[0])})
    print(lsn, flush=True)
"""


def good_on_disk(wal_dir: Path) -> list[int]:
    found: list[int] = []
    for segment in segments(path.name for path in wal_dir.iterdir()):
        stream = SegmentStream(Position(segment))
        items = stream.feed((wal_dir / f"{segment:020}.wal").read_bytes())
        found += [item.lsn for item in items if isinstance(item, Record)]
    return found


@pytest.mark.e2e
def test_a_writer_killed_again_and_again_loses_nothing(tmp_path: Path) -> None:
    wal_dir = tmp_path / "wal"
    wal_dir.mkdir()
    reader, chance = Reader(), random.Random(5)
    tailer = LogTailer(wal_dir, "agent", chunk_bytes=500)
    acknowledged: set[int] = set()
    for _ in range(6):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(wal_dir)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        for _ in range(chance.randint(50, 400)):
            acknowledged.add(int(writer.stdout.readline()))
            if chance.random() < 0.2:
                reader.poll(tailer)
            if chance.random() < 0.05:
                reader.backfill(tailer)
            if chance.random() < 0.02:
                tailer.close()
                tailer = LogTailer(wal_dir, "agent", reader.positions, chunk_bytes=500)
        writer.kill()
        writer.communicate(timeout=20)
    reader.settle(tailer)
    tailer.close()
    assert reader.lsns() == sorted(good_on_disk(wal_dir))
    assert acknowledged <= set(reader.lsns())
    assert set(reader.kinds()) <= {"torn"}
    assert len(segments(path.name for path in wal_dir.iterdir())) > 20
