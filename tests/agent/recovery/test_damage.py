"""Each kind of damage: named with its place, made up for where that is possible, else said lost."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from memwatch.agent.recovery.recover import recover
from memwatch.domain.errors import DamagedError, RecoveryError
from memwatch.wal import codec
from memwatch.wal.segment import segment_name
from tests.agent.recovery.building import Builder, a_run, sha
from tests.agent.recovery.looking import flip, recovered, says, whole


@pytest.fixture
def run(tmp_path: Path) -> Builder:
    return a_run(tmp_path / "run")


def _delete(path: Path) -> None:
    path.unlink()


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def _flip_middle(path: Path) -> None:
    flip(path, path.stat().st_size // 2)


DAMAGES = [_delete, _empty, _cut, _flip_middle]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["MANIFEST.json", "recent.jsonl", "verified.jsonl"])
def test_a_damaged_full_one_is_made_up_for_by_the_chain_before(
    run: Builder, name: str, damage: Callable[[Path], None]
) -> None:
    damage(run.path / "checkpoints" / str(run.base) / name)
    report = whole(run)
    assert report.full is not None
    assert report.full < str(run.base)
    assert says(report.damaged, str(run.base), name)
    assert report.resume.full_due
    assert report.verified is not None


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("which", [-1, -2])
def test_a_damaged_increment_is_made_up_for_by_the_log_of_its_range(
    run: Builder, which: int, damage: Callable[[Path], None]
) -> None:
    path = sorted((run.path / "checkpoints").glob("delta-*"))[which]
    damage(path)
    report = whole(run)
    assert report.full == run.base
    assert len(report.deltas) == 1
    assert says(report.damaged, path.name)
    assert report.verified is not None
    assert report.resume.full_due


def test_all_checkpoints_gone_and_the_log_still_says_it_all(run: Builder) -> None:
    shutil.rmtree(run.path / "checkpoints")
    report = whole(run)
    assert (report.full, report.deltas) == (None, ())
    assert says(report.damaged, str(run.base), "missing")


def test_log_and_increment_of_a_range_both_damaged(run: Builder) -> None:
    path = sorted((run.path / "checkpoints").glob("delta-*"))[-2]
    _flip_middle(path)
    first = int(path.stem.split("-")[1])
    segment, line = _line_of(run, first + 1)
    data = segment.read_bytes()
    segment.write_bytes(data.replace(line, line.replace(b'"k":', b'"K":')))
    report = recovered(run)
    assert report.last_lsn == first
    assert report.lossy
    assert says(report.lost, f"lsn {first + 1} cannot be had", segment.name, f"lsn {run.lsn}")
    assert says(report.damaged, segment.name, "checksum differs", f"byte {data.index(line)}")


def test_a_damaged_log_below_the_chain_costs_nothing(run: Builder) -> None:
    flip(run.path / "wal" / segment_name(1), 400)
    assert whole(run).damaged == ()


def test_a_damaged_line_in_the_tail_ends_the_state_there(run: Builder) -> None:
    segment, line = _line_of(run, run.lsn - 1)
    segment.write_bytes(segment.read_bytes().replace(line, line[:-9] + b"x" + line[-8:]))
    report = recovered(run)
    assert report.last_lsn == run.lsn - 2
    assert says(report.lost, f"lsn {run.lsn - 1} cannot be had", "1 records behind it")


def test_a_damaged_last_line_is_lost_and_said_so(run: Builder) -> None:
    flip(run.segment, -20)
    report = recovered(run)
    assert (report.last_lsn, report.lossy) == (run.lsn - 1, True)
    assert says(report.lost, f"lsn {run.lsn} cannot be had", run.segment.name)


def test_a_torn_tail_was_never_acknowledged(run: Builder) -> None:
    line = codec.encode(run.lsn + 1, 1, 1, "put", {"tier": "recent", "key": "z", "value": 1})
    with run.segment.open("ab") as file:
        file.write(line[:-5])
    report = whole(run)
    assert says(report.damaged, run.segment.name, f"last {len(line) - 5} bytes", "acknowledged")
    run.begin()
    run.put("recent", "z", "after the restart")
    assert says(whole(run).damaged, "acknowledged")


def test_a_record_behind_the_remains_of_a_broken_one_is_read(run: Builder) -> None:
    with run.segment.open("ab") as file:
        file.write(b'{"lsn":99,"t":1,"m":1,"k":"pu')
    run.put("recent", "z", 1)
    assert says(whole(run).damaged, "broke off")


def test_a_segment_that_is_gone(run: Builder) -> None:
    run.roll()
    first = run.put("recent", "y", 1)
    gone = run.segment
    run.roll()
    run.put("recent", "z", 1)
    gone.unlink()
    report = recovered(run)
    assert report.last_lsn == first - 1
    assert says(report.lost, f"lsn {first} cannot be had", "1 records behind it")
    gone.touch()
    assert says(recovered(run).lost, gone.name)


def test_half_written_and_uncommitted_checkpoints_are_not_used(run: Builder) -> None:
    run.put("recent", "y", 1)
    full = run.full(commit=False)
    delta = run.delta(commit=False)
    draft = run.path / "checkpoints" / ".full-00000000000000000099.draft"
    draft.mkdir()
    report = whole(run)
    assert report.full == run.base
    for path in (full, delta):
        assert says(report.damaged, path.name, "never committed")
    assert says(report.damaged, draft.name, "not finished")


def test_another_full_one_under_a_committed_name(run: Builder, tmp_path: Path) -> None:
    other = a_run(tmp_path / "other")
    other.put("recent", "of", "the other")
    place = run.path / "checkpoints" / str(run.base)
    shutil.rmtree(place)
    shutil.copytree(other.full(), place)
    report = whole(run)
    assert report.full != run.base
    assert says(report.damaged, "MANIFEST.json is not the one that was committed")


def test_two_runs_mixed_are_refused(run: Builder, tmp_path: Path) -> None:
    other = Builder(tmp_path / "other", "run-2")
    while other.lsn < run.lsn:
        other.put("recent", "k", other.lsn)
    other.begin()
    shutil.copy(other.segment, run.path / "wal")
    with pytest.raises(RecoveryError, match=r"two runs are mixed: wal/0+27\.wal .* 'run-2'"):
        recover(run.path)


def test_a_full_one_of_another_run_that_the_log_commits_is_refused(run: Builder) -> None:
    folder = run.full()
    text = (folder / "MANIFEST.json").read_bytes()
    (folder / "MANIFEST.json").write_bytes(text.replace(b"run-1", b"run-9"))
    run.recommit(folder)
    with pytest.raises(RecoveryError, match=r"two runs are mixed: .*MANIFEST"):
        recover(run.path)


def test_run_file_of_another_run_is_refused(run: Builder) -> None:
    path = run.path / "run.json"
    path.write_bytes(path.read_bytes().replace(b"run-1", b"run-3"))
    with pytest.raises(RecoveryError, match="two runs"):
        recover(run.path)


@pytest.mark.parametrize("damage", [_delete, _empty, _cut])
def test_a_damaged_run_file_is_named_and_not_needed(
    run: Builder, damage: Callable[[Path], None]
) -> None:
    damage(run.path / "run.json")
    report = whole(run)
    assert report.run_id == "run-1"
    assert says(report.damaged, "run.json")


def test_newer_formats_are_refused_with_what_to_do(run: Builder) -> None:
    folder = run.full()
    text = (folder / "MANIFEST.json").read_bytes()
    (folder / "MANIFEST.json").write_bytes(text.replace(b'"format":1', b'"format":2'))
    run.recommit(folder)
    with pytest.raises(RecoveryError, match=r"MANIFEST\.json is of format 2.*upgrade memwatch"):
        recover(run.path)
    (run.path / "run.json").write_bytes(b'{"format":3,"what":["ever"]}')
    with pytest.raises(RecoveryError, match=r"run\.json is of format 3.*upgrade memwatch"):
        recover(run.path)


def test_what_is_no_run(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(RecoveryError, match="no run"):
            recover(path)


def test_numbers_that_come_again_after_a_power_loss(run: Builder) -> None:
    lost = run.put("recent", "lost", "never seen again")
    run.put("recent", "lost", "nor this")
    run.lsn, run.kept = lost - 1, run.truth[lost - 1]
    run.begin()
    run.put("recent", "new", "instead")
    run.put("recent", "newer", "of them")
    report = whole(run)
    assert says(report.damaged, f"lsn {lost} comes again")


def test_numbers_that_come_again_within_a_segment_end_the_state(run: Builder) -> None:
    last = run.put("recent", "y", 1)
    other = codec.encode(last, 1, 1, "put", {"tier": "recent", "key": "y", "bytes": 1, "value": 2})
    with run.segment.open("ab") as file:
        file.write(other)
    report = recovered(run)
    assert report.last_lsn == last
    assert says(report.lost, f"lsn {last + 1} cannot be had")
    assert says(report.damaged, f"lsn {last} comes again")


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_blob_takes_only_its_value(run: Builder, damage: Callable[[Path], None]) -> None:
    sha256 = sha(msgspec.json.encode({"big": "y" * 500}))
    damage(run.path / "blobs" / sha256)
    state, report = recover(run.path)
    assert report.lossy
    assert says(report.lost, "'second' of tier verified", sha256)
    assert says(report.damaged, sha256)
    assert report.verified is not None
    with pytest.raises(DamagedError, match=sha256):
        state["verified"]["second"]
    assert state["recent"]["e"] == 5


def test_a_difference_from_a_value_that_is_lost(run: Builder) -> None:
    (run.path / "blobs" / sha(msgspec.json.encode({"big": "x" * 500}))).unlink()
    path = sorted((run.path / "checkpoints").glob("delta-*"))[-1]
    assert b'"diff"' in path.read_bytes()
    state, report = recover(run.path)
    assert says(report.lost, "'proof' of tier verified has no value", "missing")
    assert "proof" not in state["verified"]
    with pytest.raises(DamagedError, match="'proof' is lost"):
        state["verified"]["proof"]
    run.put("verified", "proof", "put whole again")
    assert recover(run.path)[0]["verified"]["proof"] == "put whole again"


def test_a_state_that_is_not_what_was_logged_is_said(run: Builder) -> None:
    """A segment of another run without any word of whose it is: only the state hash tells."""
    path = sorted((run.path / "checkpoints").glob("delta-*"))[-2]
    path.unlink()
    first = int(path.stem.split("-")[1])
    segment, line = _line_of(run, first + 2)
    record = codec.decode(line[:-1])
    members = {n: v for n, v in record.members.items() if n not in ("lsn", "t", "m", "k")}
    members |= {"value": "of another run"}
    members.pop("diff", None)
    forged = codec.encode(record.lsn, record.t_us, record.m_us, "update", members)
    segment.write_bytes(segment.read_bytes().replace(line, forged))
    _, report = recover(run.path)
    assert report.lossy
    assert report.verified is None
    assert says(report.lost, "tier recent is not what the run logged")


def test_a_checkpoint_that_went_while_it_was_read_is_looked_for_again(run: Builder) -> None:
    """A live agent prunes the chain under the feet of who reads it."""
    old = run.base
    done: list[str] = []

    def prune(progress: object) -> None:
        if not done:
            run.put("recent", "y", 1)
            done.append(run.full().name)
            shutil.rmtree(run.path / "checkpoints" / str(old))

    state, report = recover(run.path, progress=prune)
    assert (report.full, report.damaged, report.lost) == (done[0], (), ())
    assert state["recent"]["y"] == 1


def test_devices_that_refuse_are_named(run: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    full = (run.path / "checkpoints" / str(run.base) / "recent.jsonl").stat()
    real = os.fstat

    def failing(fd: int) -> os.stat_result:
        if real(fd).st_ino == full.st_ino:
            raise OSError(5, "Input/output error")
        return real(fd)

    monkeypatch.setattr(os, "fstat", failing)
    assert says(whole(run).damaged, "recent.jsonl cannot be read", "Input/output error")


def _line_of(run: Builder, lsn: int) -> tuple[Path, bytes]:
    """Return the segment and the line of a record."""
    start = b'{"lsn":%d,' % lsn
    for segment in sorted((run.path / "wal").iterdir()):
        for line in segment.read_bytes().splitlines(keepends=True):
            if line.startswith(start):
                return segment, line
    raise AssertionError(lsn)
