"""Which checkpoints and records make the state of a run that is whole."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import msgspec

from memwatch.agent.memory.compression import methods
from memwatch.agent.memory.entry import Blob
from memwatch.agent.recovery.recover import recover
from memwatch.agent.recovery.report import Progress
from memwatch.wal import codec
from tests.agent.recovery.building import Builder, a_run, sha
from tests.agent.recovery.looking import kept, tree, whole


def test_newest_full_then_increments_then_log(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run")
    report = whole(run)
    assert (report.run_id, report.full, len(report.deltas)) == ("run-1", run.base, 2)
    assert report.verified == recover(run.path)[0].hashes() or report.verified_lsn != run.lsn
    assert report.verified is not None
    assert report.verified_lsn == report.resume.last_lsn
    assert report.records == run.lsn - report.resume.last_lsn
    assert not report.damaged


def test_at_every_record_the_state_is_that_of_the_record(tmp_path: Path) -> None:
    run = Builder(tmp_path / "run")
    steps: list[Callable[[], object]] = [
        lambda: run.put("recent", "a", {"text": "one " * 40}),
        lambda: run.update("recent", "a", {"text": "one " * 39 + "two"}),
        run.full,
        lambda: run.put("verified", "a", [1]),
        lambda: run.delete("recent", "a"),
        run.delta,
        lambda: run.put("recent", "a", "again"),
        run.begin,
        lambda: run.update("recent", "a", "again and again " * 9),
        run.full,
        lambda: run.put("recent", "b", None),
    ]
    for step in steps:
        step()
        whole(run)


def test_a_log_alone_is_enough(tmp_path: Path) -> None:
    run = Builder(tmp_path / "run")
    run.put("recent", "a", 1)
    run.roll()
    run.put("recent", "b", 2)
    report = whole(run)
    assert (report.full, report.deltas, report.records) == (None, (), 3)
    assert (report.verified, report.resume.base, report.resume.full_due) == (None, None, False)


def test_twice_the_same_and_nothing_is_written(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run")
    before = tree(run.path)
    first, again = recover(run.path), recover(run.path)
    assert tree(run.path) == before
    assert kept(first[0]) == kept(again[0])
    timeless = {"total_s": 0.0, "terms": ()}
    assert msgspec.structs.replace(first[1], **timeless) == msgspec.structs.replace(
        again[1], **timeless
    )
    assert gc.isenabled()


def test_every_record_behind_a_checkpoint_is_a_change_for_the_next(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run")
    state, report = recover(run.path)
    changes = state.changes["recent"]
    assert set(changes) == {"a", "e"}
    assert (changes["a"].was_present, changes["e"].was_present) == (True, False)
    assert changes["a"].ops is not None
    assert changes["a"].base_lsn < report.resume.last_lsn < changes["a"].lsn
    assert report.resume.base == report.full


def test_experiments_since_a_checkpoint_are_counted(tmp_path: Path) -> None:
    run = Builder(tmp_path / "run")
    run.full()
    for number, status in enumerate(("kept", "failed", "aborted"), 1):
        run.log("experiment.begin", {"x": number, "title": "t", "phase": "exploration"})
        run.log("experiment.end", {"x": number, "status": status})
    run.log("experiment.begin", {"x": 4, "title": "t", "phase": "verification"})
    state, report = recover(run.path)
    assert (state.experiments, state.open, state.phase) == (4, 4, "verification")
    resume = report.resume
    assert (resume.experiments_since_any, resume.experiments_since_full) == (2, 2)


def test_progress_is_told(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run")
    told: list[Progress] = []
    recover(run.path, progress=told.append)
    assert [p.done_bytes for p in told] == sorted(p.done_bytes for p in told)
    assert all(0 < p.done_bytes <= p.total_bytes for p in told)
    assert told[0].what.endswith("recent.jsonl")
    assert any(p.what.startswith("blobs/") for p in told)
    assert told[-1].done_bytes == told[-1].total_bytes
    full = run.path / "checkpoints" / str(run.base)
    size = sum(path.stat().st_size for path in full.glob("*.jsonl"))
    assert told[0].total_bytes == size  # of the whole checkpoint, before its first file is read


def test_terms_say_where_time_and_bytes_went(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run")
    _, report = recover(run.path)
    terms = {term.name: term for term in report.terms}
    assert list(terms) == ["load", "blobs", "read", "replay", "decode"]
    full = run.path / "checkpoints" / str(report.full)
    blobs = sum(p.stat().st_size for p in (run.path / "blobs").iterdir())
    assert terms["load"].bytes == sum(p.stat().st_size for p in full.iterdir())
    assert 0 < terms["blobs"].bytes <= blobs
    assert terms["read"].bytes > 0
    assert 0 < sum(term.seconds for term in report.terms) <= report.total_s
    assert report.memory_bytes > 0


def test_compressed_tiers_are_read(tmp_path: Path) -> None:
    for method in methods():
        run = Builder(tmp_path / method.name)
        for number in range(500):
            run.put("recent", f"k{number}", {"number": number, "text": "t" * 100})
        folder = run.full()
        stream = method.compressor()
        plain = folder / "recent.jsonl"
        packed = stream.compress(plain.read_bytes()) + stream.flush()
        plain.unlink()
        name = f"recent.jsonl{method.suffix}"
        (folder / name).write_bytes(packed)
        manifest = msgspec.json.decode((folder / "MANIFEST.json").read_bytes())
        del manifest["files"]["recent.jsonl"]
        manifest["files"][name] = {"bytes": len(packed), "sha256": sha(packed)}
        (folder / "MANIFEST.json").write_bytes(msgspec.json.encode(manifest))
        run.recommit(folder)
        assert whole(run).full == folder.name


def test_replaying_the_same_line_twice_changes_nothing(tmp_path: Path) -> None:
    run = Builder(tmp_path / "run")
    run.full()
    run.put("recent", "a", {"n": 1})
    run.update("recent", "a", {"n": 2})
    run.delete("recent", "a")
    run.put("recent", "a", 3)
    path = run.delta(times=2)
    assert len(path.read_bytes().splitlines()) == 2
    assert whole(run).deltas == (path.stem,)


def test_an_increment_may_add_the_blob_of_an_entry_that_is_known(tmp_path: Path) -> None:
    run = Builder(tmp_path / "run")
    lsn = run.put("recent", "a", {"n": 1})
    run.full()
    text = b'{"n":1}'
    (run.path / "blobs" / sha(text)).write_bytes(text)
    about = {"tier": "recent", "key": "a", "bytes": 100, "blob": sha(text), "blob_bytes": 7}
    run.delta(extra=[(lsn, codec.encode(lsn, 1, 1, "put", about))])
    state, report = recover(run.path)
    assert (report.lost, state["recent"]["a"]) == ((), {"n": 1})
    assert state.tiers["recent"]["a"].blob == Blob(sha(text), 7)
