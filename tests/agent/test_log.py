"""The log writer: numbers, segments, restarts, durability, forks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memwatch.agent.log import LogWriter
from memwatch.domain.clock import ManualClock
from memwatch.domain.errors import LogError
from memwatch.wal.segment import segment_name
from tests.agent.reading import read_log
from tests.faults.failing_files import FailingFiles
from tests.waiting import until

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
MEMBERS = st.dictionaries(st.from_regex(r"[a-jn-z]{2,8}", fullmatch=True), JSON, max_size=4)


def test_numbers_from_one_and_tells_the_times_of_its_clock(tmp_path: Path) -> None:
    with LogWriter(tmp_path, clock=ManualClock(wall_us=7, boot_us=9)) as log:
        assert [log.append("note", {"text": "a"}), log.append("note", {"text": "b"})] == [1, 2]
        assert log.last_lsn == 2
    (first, second), faults = read_log(tmp_path)
    assert (first.lsn, first.t_us, first.m_us, first.text("text")) == (1, 7, 9, "a")
    assert (second.lsn, faults) == (2, [])


def test_a_record_is_in_the_file_when_append_returns(tmp_path: Path) -> None:
    with LogWriter(tmp_path, durability="os") as log:
        log.append("note", {"text": "at once"})
        assert b"at once" in (tmp_path / segment_name(1)).read_bytes()


def test_a_restart_begins_a_segment_and_leaves_the_old_one_alone(tmp_path: Path) -> None:
    with LogWriter(tmp_path) as log:
        log.append("note", {})
    before = (tmp_path / segment_name(1)).read_bytes()
    with LogWriter(tmp_path) as log:
        assert (log.segment, log.append("note", {})) == (2, 2)
    assert (tmp_path / segment_name(1)).read_bytes() == before


def test_an_empty_segment_is_used_again(tmp_path: Path) -> None:
    LogWriter(tmp_path).close()
    with LogWriter(tmp_path) as log:
        assert log.append("note", {}) == 1
    assert [path.name for path in tmp_path.iterdir()] == [segment_name(1)]


def test_the_start_of_a_first_line_goes_other_remains_keep_their_name(tmp_path: Path) -> None:
    path = tmp_path / segment_name(5)
    path.write_bytes(b'{"lsn":5,"t":1')
    with LogWriter(tmp_path) as log:
        assert (log.segment, log.append("note", {})) == (5, 5)
    assert read_log(tmp_path)[1] == []
    path.write_bytes(b'{"lsn":5,"t":1}\n')
    with LogWriter(tmp_path) as log:
        assert (log.segment, log.append("note", {})) == (6, 6)
    records, faults = read_log(tmp_path)
    assert [record.lsn for record in records] == [6]
    assert [fault.kind for fault in faults] == ["damaged"]


def test_remains_that_cannot_go_cost_a_number(tmp_path: Path) -> None:
    (tmp_path / segment_name(5)).write_bytes(b'{"lsn":5,"t":1')
    files = FailingFiles()
    files.fail_all("truncate")
    with LogWriter(tmp_path, files=files) as log:
        assert (log.segment, log.append("note", {})) == (6, 6)
    assert [fault.kind for fault in read_log(tmp_path)[1]] == ["torn"]


def test_a_segment_is_sealed_at_its_size(tmp_path: Path) -> None:
    with LogWriter(tmp_path, segment_bytes=300) as log:
        for _ in range(10):
            log.append("note", {"text": "x" * 50})
        assert log.bytes_written == sum(path.stat().st_size for path in tmp_path.iterdir())
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) > 2
    assert max(sizes) <= 300
    assert [record.lsn for record in read_log(tmp_path)[0]] == list(range(1, 11))


def test_a_record_longer_than_a_segment_gets_one_of_its_own(tmp_path: Path) -> None:
    with LogWriter(tmp_path, segment_bytes=100) as log:
        log.append("note", {"text": "x" * 500})
        log.append("note", {"text": "x" * 500})
    assert len(list(tmp_path.iterdir())) == 2


def test_roll_seals_and_names_the_next_segment(tmp_path: Path) -> None:
    with LogWriter(tmp_path) as log:
        assert log.roll() == 1
        log.append("note", {})
        assert log.roll() == log.segment == 2
        log.append("note", {})
    assert sorted(path.name for path in tmp_path.iterdir()) == [segment_name(1), segment_name(2)]


@pytest.mark.parametrize(
    ("members", "error"),
    [
        ({"value": object()}, TypeError),
        ({"text": "x" * 16_000_000}, ValueError),
        ({"lsn": 1}, ValueError),
        ({"text": "\ud800"}, ValueError),
    ],
)
def test_what_the_format_cannot_hold_uses_no_number(
    tmp_path: Path, members: dict[str, Any], error: type[Exception]
) -> None:
    with LogWriter(tmp_path) as log:
        with pytest.raises(error):
            log.append("put", members)
        assert log.append("note", {}) == 1
    assert read_log(tmp_path)[1] == []


def test_sync_makes_durable_at_once(tmp_path: Path) -> None:
    with LogWriter(tmp_path, durability="os") as log:
        log.append("note", {})
        assert log.durable_lsn == 0
        log.append("note", {}, sync=True)
        assert log.durable_lsn == 2


def test_always_makes_each_record_durable(tmp_path: Path) -> None:
    with LogWriter(tmp_path, durability="always") as log:
        assert [log.append("note", {}), log.durable_lsn] == [1, 1]


def test_batch_makes_durable_by_itself(tmp_path: Path) -> None:
    with LogWriter(tmp_path) as log:
        log.append("note", {})
        until(lambda: log.durable_lsn == 1)
        for _ in range(600):
            log.append("note", {})
        until(lambda: log.durable_lsn == 601)


def test_threads_share_the_numbers(tmp_path: Path) -> None:
    with LogWriter(tmp_path, segment_bytes=5_000) as log:

        def work(name: str) -> None:
            for number in range(200):
                log.append("note", {"who": name, "n": number}, sync=number % 50 == 0)

        threads = [threading.Thread(target=work, args=(f"{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    records, faults = read_log(tmp_path)
    assert [record.lsn for record in records] == list(range(1, 801))
    assert faults == []
    for name in "0123":
        mine = [record.members["n"] for record in records if record.members["who"] == name]
        assert mine == list(range(200))


def test_a_closed_log_refuses(tmp_path: Path) -> None:
    log = LogWriter(tmp_path)
    log.close()
    log.close()
    with pytest.raises(LogError, match="closed"):
        log.append("note", {})


def test_a_directory_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LogError, match="cannot open the log in"):
        LogWriter(tmp_path / "file" / "wal")


def in_child(work: Callable[[], bool]) -> bool:
    """Return what `work` returned in a forked child; it must end within the test's time."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitpid(pid, 0)[1] == 0


def test_a_forked_child_must_not_write(tmp_path: Path) -> None:
    with LogWriter(tmp_path) as log:
        log.append("note", {"text": "parent"})

        def write_and_close() -> bool:
            try:
                log.append("note", {"text": "child"})
            except LogError as error:
                log.close()
                return "child" in str(error)
            return False

        with log._lock:  # as if another thread was appending when the process forked
            assert in_child(write_and_close)
        assert log.append("note", {"text": "parent"}) == 2
    assert [record.text("text") for record in read_log(tmp_path)[0]] == ["parent", "parent"]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=st.lists(MEMBERS, min_size=1, max_size=6),
    after=st.lists(MEMBERS, min_size=1, max_size=3),
    segment_bytes=st.sampled_from([120, 400, 16_000_000]),
    data=st.data(),
)
def test_cut_at_any_byte_then_reopened_gives_the_prefix_and_what_came_after(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[dict[str, Any]],
    after: list[dict[str, Any]],
    segment_bytes: int,
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("wal")
    with LogWriter(folder, segment_bytes=segment_bytes, durability="os") as log:
        for members in before:
            log.append("put", members)
    newest = max(folder.iterdir())
    whole = newest.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    newest.write_bytes(whole[:cut])
    survivors, _ = read_log(folder)
    with LogWriter(folder, segment_bytes=segment_bytes, durability="os") as log:
        for members in after:
            log.append("put", members)
    records, faults = read_log(folder)
    assert [r.members for r in records[: len(survivors)]] == [r.members for r in survivors]
    added = [
        {k: r.members[k] for k in m} for r, m in zip(records[-len(after) :], after, strict=True)
    ]
    assert added == after
    assert len(records) == len(survivors) + len(after)
    lsns = [record.lsn for record in records]
    assert lsns == sorted(set(lsns))
    torn = b"\n" in whole[:cut] and whole[cut - 1 : cut] != b"\n"
    assert [fault.kind for fault in faults] == (["torn"] if torn else [])
