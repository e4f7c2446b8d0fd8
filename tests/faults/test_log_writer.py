"""Nothing acknowledged is lost: full disks, short writes, failing devices, SIGKILL."""

from __future__ import annotations

import errno
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memwatch.agent.log import LogWriter
from memwatch.domain.errors import LogError
from tests.agent.reading import read_log
from tests.faults.failing_files import FailingFiles
from tests.waiting import until


def texts(wal_dir: Path) -> list[str]:
    return [record.text("text") for record in read_log(wal_dir)[0]]


@pytest.mark.parametrize("short", [False, True])
def test_a_full_disk_refuses_clearly_and_heals(tmp_path: Path, short: bool) -> None:
    files = FailingFiles()
    files.short = short
    with LogWriter(tmp_path, durability="os", files=files) as log:
        log.append("note", {"text": "before"})
        files.fail_all("write")
        for _ in range(3):
            with pytest.raises(LogError, match=r"cannot append to the log in .*safe"):
                log.append("note", {"text": "lost"})
        assert log.last_lsn == 1
        assert (tmp_path / "00000000000000000001.wal").read_bytes().endswith(b"\n")
        files.heal()
        assert log.append("note", {"text": "after"}) == 2
    assert (texts(tmp_path), read_log(tmp_path)[1]) == (["before", "after"], [])


@pytest.mark.parametrize("records_before", [0, 1])
def test_when_the_cut_fails_too_it_goes_on_in_a_new_segment(
    tmp_path: Path, records_before: int
) -> None:
    files = FailingFiles()
    files.short = True
    with LogWriter(tmp_path, durability="os", files=files) as log:
        for _ in range(records_before):
            log.append("note", {"text": "before"})
        files.fail_all("write", "truncate")
        with pytest.raises(LogError):
            log.append("note", {"text": "lost"})
        files.heal()
        log.append("note", {"text": "after"})
    records, faults = read_log(tmp_path)
    assert [r.text("text") for r in records] == ["before"] * records_before + ["after"]
    assert [fault.kind for fault in faults] == ["torn"] * records_before


def test_a_segment_that_cannot_be_begun_is_begun_later(tmp_path: Path) -> None:
    files = FailingFiles()
    with LogWriter(tmp_path, segment_bytes=80, durability="os", files=files) as log:
        log.append("note", {"text": "before"})
        files.fail_all("open")
        with pytest.raises(LogError, match="cannot begin a segment"):
            log.append("note", {"text": "lost"})
        files.heal()
        log.append("note", {"text": "after"})
    assert (texts(tmp_path), read_log(tmp_path)[1]) == (["before", "after"], [])


def test_a_failing_device_is_told_with_the_next_append_and_left_behind(tmp_path: Path) -> None:
    files = FailingFiles()
    files.error = errno.EIO
    with LogWriter(tmp_path, files=files) as log:
        files.fail_all("fsync", "sync_data")
        log.append("note", {"text": "acknowledged"})
        until(lambda: log.failed)
        with pytest.raises(LogError, match="did not reach the device"):
            log.append("note", {"text": "refused"})
        with pytest.raises(LogError, match="cannot begin a segment"):
            log.append("note", {"text": "refused"})
        assert log.failed
        files.heal()
        assert log.append("note", {"text": "after"}) == 2
        assert not log.failed
        assert log.segment == 2
    assert (texts(tmp_path), read_log(tmp_path)[1]) == (["acknowledged", "after"], [])


def test_a_failing_device_is_told_at_once_to_who_asked_to_sync(tmp_path: Path) -> None:
    files = FailingFiles()
    with LogWriter(tmp_path, durability="always", files=files) as log:
        files.fail_all("fsync", "sync_data")
        with pytest.raises(LogError, match="did not reach the device"):
            log.append("note", {"text": "written but not durable"})
        assert log.durable_lsn == 0
        files.heal()
        log.append("note", {"text": "after"})
    assert texts(tmp_path) == ["written but not durable", "after"]


def test_a_directory_that_vanished_is_noticed_and_may_come_back(tmp_path: Path) -> None:
    folder = tmp_path / "wal"
    with LogWriter(folder) as log:
        shutil.rmtree(folder)
        log.append("note", {"text": "into nowhere"})
        until(lambda: log.failed)
        with pytest.raises(LogError, match="removed"):
            log.append("note", {})
        with pytest.raises(LogError, match="cannot begin a segment"):
            log.append("note", {})
        folder.mkdir()
        log.append("note", {"text": "back"})
    assert texts(folder) == ["back"]


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    failing=st.sets(st.integers(0, 60), max_size=25),
    short=st.booleans(),
    segment_bytes=st.sampled_from([150, 400, 16_000_000]),
    error=st.sampled_from([errno.ENOSPC, errno.EIO, errno.EDQUOT]),
)
def test_whichever_calls_fail_what_was_acknowledged_is_there_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory,
    failing: set[int],
    short: bool,
    segment_bytes: int,
    error: int,
) -> None:
    folder, files = tmp_path_factory.mktemp("wal"), FailingFiles()
    files.short, files.error = short, error
    log = LogWriter(folder, segment_bytes=segment_bytes, durability="os", files=files)
    files.fail_from(failing)
    acknowledged: dict[int, str] = {}
    for number in range(20):
        text = f"{number}" * (number % 7 + 1)
        try:
            acknowledged[log.append("note", {"text": text})] = text
        except LogError:
            continue
    files.heal()
    log.close()
    records, faults = read_log(folder)
    assert {record.lsn: record.text("text") for record in records} == acknowledged
    assert len(records) == len(acknowledged)
    assert {fault.kind for fault in faults} <= {"torn"}


@pytest.mark.e2e
def test_every_acknowledged_record_survives_sigkill(tmp_path: Path) -> None:
    rng, told = random.Random(7), 0
    for _ in range(30):
        command = [sys.executable, "-m", "tests.faults.appender", str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            child.stdout.readline()  # it is at work
            time.sleep(rng.random() * 0.03)  # the moment of death, not a wait for a condition
            child.send_signal(signal.SIGKILL)
            lines = child.stdout.read().split(b"\n")
        complete = lines[:-1]
        told = max([told, *(int(line) for line in complete)])
    records, faults = read_log(tmp_path)
    assert told > 500
    assert {record.lsn for record in records} >= set(range(1, told + 1))
    assert len({record.lsn for record in records}) == len(records)
    assert {fault.kind for fault in faults} <= {"torn"}
