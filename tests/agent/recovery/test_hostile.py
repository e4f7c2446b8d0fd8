"""Run directories from strangers: nothing is followed, nothing is believed, nothing explodes."""

from __future__ import annotations

import os
import resource
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from memwatch.agent.recovery.recover import recover
from memwatch.domain.errors import DamagedError
from tests.agent.recovery.building import Builder, a_run, sha
from tests.agent.recovery.looking import says, whole

_DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.fixture
def run(tmp_path: Path) -> Builder:
    return a_run(tmp_path / "run")


def _moved(path: Path, place: Path) -> None:
    """Put what lies at `path` elsewhere, and a link to it in its place."""
    path.rename(place)
    path.symlink_to(place)


@pytest.mark.parametrize("name", ["MANIFEST.json", "recent.jsonl", ""])
def test_links_in_a_full_one_are_not_followed(run: Builder, tmp_path: Path, name: str) -> None:
    _moved(run.path / "checkpoints" / str(run.base) / name, tmp_path / "elsewhere")
    report = whole(run)
    assert report.full != run.base
    assert says(report.damaged, str(run.base), name)


def test_a_link_in_place_of_an_increment(run: Builder, tmp_path: Path) -> None:
    path = sorted((run.path / "checkpoints").glob("delta-*"))[-1]
    _moved(path, tmp_path / "elsewhere")
    report = whole(run)
    assert len(report.deltas) == 1
    assert says(report.damaged, path.name)


@pytest.mark.parametrize("folder", ["wal", "checkpoints", "blobs"])
def test_folders_that_lead_out_are_not_entered(run: Builder, tmp_path: Path, folder: str) -> None:
    _moved(run.path / folder, tmp_path / "elsewhere")
    state, report = recover(run.path)
    assert report.damaged or report.lost
    if folder == "blobs":
        with pytest.raises(DamagedError):
            state["verified"]["second"]


def test_a_link_in_place_of_a_segment(run: Builder, tmp_path: Path) -> None:
    _moved(run.segment, tmp_path / "elsewhere")
    _, report = recover(run.path)
    assert report.lossy or report.last_lsn < run.lsn
    assert says(report.damaged, run.segment.name)


def test_pipes_and_folders_keep_nobody_waiting(run: Builder) -> None:
    run.segment.unlink()
    os.mkfifo(run.segment)
    (run.path / "run.json").unlink()
    (run.path / "run.json").mkdir()
    _, report = recover(run.path)
    assert says(report.damaged, run.segment.name, "no regular file")
    assert says(report.damaged, "run.json")


@pytest.mark.parametrize("name", ["../../../etc/passwd", "x" * 64, "", "A" * 64, "é" * 64])
def test_blobs_of_any_name(run: Builder, name: str) -> None:
    about = {"tier": "recent", "key": "evil", "bytes": 1, "blob": name, "blob_bytes": 5}
    run.log("put", about)
    _, report = recover(run.path)
    assert report.last_lsn == run.lsn
    assert says(report.lost, "'evil' of tier recent")


@pytest.mark.parametrize(
    "members",
    [
        {"value": msgspec.Raw(_DEEP)},
        {"value": msgspec.Raw(b"9" * 5_000)},
        {"value": msgspec.Raw(b"1e999")},
        {"tokens": -1.5, "value": 1},
        {"ttl_us": "soon", "value": 1},
        {"bytes": 10**30, "value": 1},
        {"diff": [{"op": "replace", "path": "/nowhere", "value": 1}], "from": 1},
        {"diff": "all", "from": 1},
        {"diff": [[[[]]]], "from": 1},
        {"source": "run this", "rebuildable": True},
        {"source": {"by": 5}, "rebuildable": True},
        {},
        {"key": ["a"], "value": 1},
        {"tier": {"a": 1}, "value": 1},
    ],
    ids=range(14),
)
def test_changes_that_make_no_sense(run: Builder, members: dict[str, object]) -> None:
    """Each is logged with a good checksum: whoever wrote it is no writer of ours."""
    run.log("put", {"tier": "recent", "key": "evil", "bytes": 1, **members})
    state, report = recover(run.path)
    assert report.lossy
    assert report.last_lsn in (run.lsn, run.lsn - 1)
    assert state["recent"]["e"] == 5


def _retell(run: Builder, change: Callable[[bytes], bytes], name: str = "recent.jsonl") -> None:
    """Change a file of the newest full checkpoint, and commit it as it is then."""
    folder = run.full()
    path = folder / name
    path.write_bytes(change(path.read_bytes()))
    run.recommit(folder)


@pytest.mark.parametrize(
    "line",
    [
        b'{"key":"x","lsn":1,"bytes":1,"importance":0.5,"value":' + _DEEP + b"}\n",
        b'{"key":"x","lsn":99999999999999999999,"bytes":1,"importance":0.5,"value":1}\n',
        b'{"key":"x","lsn":-1,"bytes":1,"importance":0.5,"value":1}\n',
        b'{"key":"x","lsn":1,"bytes":1,"importance":0.5}\n',
        b'{"key":"x","lsn":1,"bytes":1,"importance":0.5,"blob":"../x"}\n',
        b'{"key":"x","lsn":1,"bytes":1,"importance":1e400,"value":1}\n',
        b'{"key":"x","lsn":1,"bytes":1,"importance":0.5,"source":{"by":[]}}\n',
        b"[]\n",
        b"not JSON\n",
        b"half a line",
        b"x" * 17_000_000,
    ],
    ids=range(11),
)
def test_full_ones_with_lines_that_are_none(run: Builder, line: bytes) -> None:
    _retell(run, lambda text: text + line)
    report = whole(run)
    assert report.full != run.path.name
    assert says(report.damaged, "recent.jsonl")


def test_a_bomb_is_not_blown_up(run: Builder) -> None:
    stream = zlib.compressobj(1, zlib.DEFLATED, 31)
    bomb = b"".join(stream.compress(bytes(10_000_000)) for _ in range(15)) + stream.flush()
    folder = run.full()
    (folder / "recent.jsonl.gz").write_bytes(bomb)
    text = (folder / "MANIFEST.json").read_bytes()
    text = text.replace(b"recent.jsonl", b"recent.jsonl.gz")
    (folder / "MANIFEST.json").write_bytes(text)
    run.recommit(folder)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert says(whole(run).damaged, "recent.jsonl.gz")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000  # kB


def test_a_bomb_in_a_blob_is_not_blown_up(run: Builder) -> None:
    stream = zlib.compressobj(1, zlib.DEFLATED, 31)
    bomb = b"".join(stream.compress(bytes(10_000_000)) for _ in range(15)) + stream.flush()
    name = sha(b"what it claims")
    (run.path / "blobs" / name).write_bytes(bomb)
    for size in (14, 1 << 40):
        run.log(
            "put",
            {"tier": "recent", "key": f"k{size}", "bytes": 1, "blob": name, "blob_bytes": size},
        )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _, report = recover(run.path)
    assert says(report.lost, f"'k{1 << 40}'")
    assert says(report.lost, "'k14'")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000  # kB


@pytest.mark.parametrize(
    "text",
    [
        _DEEP,
        b'{"format":' + _DEEP + b"}",
        b'{"format":1e400}',
        b'{"format":1,"run_id":"' + b"x" * 10_000 + b'","agent":""}',
        b"{" * 2_000_000,
    ],
    ids=range(5),
)
def test_run_files_of_any_kind(run: Builder, text: bytes) -> None:
    (run.path / "run.json").write_bytes(text)
    assert says(whole(run).damaged, "run.json")


def test_manifests_of_any_kind(run: Builder) -> None:
    for text in (_DEEP, b"[]", b'{"format":1}', b'{"format":1,"files":{"../../x":1}}'):
        folder = run.path / "checkpoints" / str(run.base)
        (folder / "MANIFEST.json").write_bytes(text)
        commit = {"id": run.base, "kind": "full", "first_lsn": 1, "last_lsn": int(folder.name[5:])}
        run.log("checkpoint.commit", {**commit, "sha256": sha(text), "bytes": 1})
        assert says(whole(run).damaged, "MANIFEST.json")


@pytest.mark.parametrize(
    "members",
    [
        {"id": "../../etc"},
        {"id": "full-00000000000000000001", "last_lsn": 1, "first_lsn": 1, "sha256": 5},
        {"id": "full-00000000000000000099", "last_lsn": 99, "first_lsn": 1, "sha256": "x"},
        {"last_lsn": -5, "first_lsn": -9, "id": "delta", "sha256": ""},
        {"last_lsn": 10**40, "first_lsn": 1, "id": [], "sha256": ""},
        {"state_hash": {"recent": 5}},
    ],
)
def test_commits_of_any_kind(run: Builder, members: dict[str, object]) -> None:
    run.log("checkpoint.commit", members)
    assert not whole(run).lossy


def test_very_much_damage_is_told_in_few_words(run: Builder) -> None:
    for number in range(1_000):
        run.log("put", {"tier": "recent", "key": f"k{number}", "bytes": 1, "blob": "no"})
    _, report = recover(run.path)
    assert len(report.lost) < 300
    assert says(report.lost, "and 8")
