"""`durable_lsn` never promises more than an fsync has brought to the device."""

from __future__ import annotations

import os
import re
import threading
from collections import defaultdict
from pathlib import Path

import pytest

from memwatch.agent.files import Files
from memwatch.agent.log import Durability, LogWriter
from tests.waiting import until

_LSN = re.compile(rb'^\{"lsn":(\d+)')


class Device(Files):
    """Notes which records lie in which file, and which of them an fsync has covered."""

    def __init__(self) -> None:
        self.held: defaultdict[int, set[int]] = defaultdict(set)
        self.safe: set[int] = set()
        for name, call in {
            "open": self._open,
            "write": self._write,
            "sync_data": self._sync,
        }.items():
            setattr(self, name, call)

    def _open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        fd = os.open(path, flags, mode)
        self.held[fd] = set()
        return fd

    def _write(self, fd: int, line: bytes) -> int:
        written = os.write(fd, line)
        match = _LSN.match(line)
        assert match
        self.held[fd].add(int(match[1]))
        return written

    def _sync(self, fd: int) -> None:
        covered = set(self.held[fd])
        os.fdatasync(fd)
        self.safe |= covered


@pytest.mark.parametrize("durability", ["batch", "always", "os"])
def test_threads_segments_and_syncs_at_once(tmp_path: Path, durability: Durability) -> None:
    device, promises = Device(), list[str]()
    log = LogWriter(tmp_path, durability=durability, segment_bytes=1_500, files=device)

    def work() -> None:
        for number in range(150):
            log.append("note", {"text": "x" * (number % 40)}, sync=number % 40 == 0)
            durable = log.durable_lsn
            if not set(range(1, durable + 1)) <= device.safe:
                promises.append(f"{durable} was promised")
            if number % 60 == 0:
                log.roll()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if durability == "batch":
        until(lambda: log.durable_lsn == 600)
    log.close()
    assert promises == []
    assert (log.durable_lsn, device.safe) == (600, set(range(1, 601)))
    links = [fd.readlink() for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]
    assert not [link for link in links if link.is_relative_to(tmp_path)]
