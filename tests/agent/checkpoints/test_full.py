"""A full checkpoint: files that fit their manifest, a commit that proves them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import pytest

from memwatch.agent.memory.compression import decompressor
from memwatch.agent.memory.entry import Source
from memwatch.wal.checkpoint_format import NOTHING, TierLine, decode_lines
from memwatch.wal.manifest import CheckpointManifest, parse_checkpoint
from memwatch.wal.segment import tier_of
from tests.agent.checkpoints.bench import Bench


def manifest_of(bench: Bench, path: str) -> CheckpointManifest:
    return parse_checkpoint((bench.path / path / "MANIFEST.json").read_bytes())


def lines_of(bench: Bench, path: str, tier: str = "recent") -> dict[str, TierLine]:
    (file,) = (bench.path / path).glob(f"{tier}.jsonl*")
    stream = decompressor(file.name.removeprefix(f"{tier}.jsonl"))
    lines = decode_lines(b"".join(stream.feed(file.read_bytes())))
    return {line.key: line for line in lines}


def test_it_holds_everything_and_its_commit_proves_it(bench: Bench) -> None:
    bench.tiers["recent"].put("a", {"chunks": ["x", 2.5]}, tokens=7, importance=0.9, ttl_s=3600)
    bench.tiers["recent"].put("b", b"\x00\xff")
    bench.tiers["history"].put("m", {"ratio": 2.5})
    outcome = bench.checkpoints.take("full")
    assert outcome.committed
    folder = bench.path / outcome.path
    text = (folder / "MANIFEST.json").read_bytes()
    manifest = parse_checkpoint(text)
    (commit,) = bench.records("checkpoint.commit")
    assert commit.text("sha256") == hashlib.sha256(text).hexdigest() == outcome.sha256
    for name, file in manifest.files.items():
        data = (folder / name).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (file.bytes, file.sha256)
    assert commit.number("bytes") == sum(p.stat().st_size for p in folder.iterdir())
    assert (manifest.last_lsn, manifest.tiers["recent"].entries) == (3, 2)
    assert manifest.tiers["recent"].bytes == bench.tiers["recent"].bytes
    assert commit.number("entries") == 3
    line = lines_of(bench, outcome.path)["a"]
    assert (line.lsn, line.tokens, line.importance, line.ttl_us) == (1, 7, 0.9, 3_600_000_000)
    assert msgspec.json.decode(line.value) == {"chunks": ["x", 2.5]}
    assert lines_of(bench, outcome.path)["b"].type == "bytes"
    bench.check()


def test_state_hash_is_what_the_contract_says(bench: Bench) -> None:
    bench.tiers["history"].put("b", {"y": 1, "x": 2})
    bench.tiers["history"].put("a", [1])
    bench.checkpoints.take("full")
    inner = [hashlib.sha256(text).hexdigest() for text in (b"[1]", b'{"x":2,"y":1}')]
    whole = f"a\0{2}\0{inner[0]}\nb\0{1}\0{inner[1]}\n".encode()
    (commit,) = bench.records("checkpoint.commit")
    assert commit.members["state_hash"]["history"] == hashlib.sha256(whole).hexdigest()


def test_a_rebuildable_value_is_told_by_its_source(tmp_path: Path) -> None:
    made = Bench(tmp_path, builders={"double": lambda n: n * 2})
    made.tiers["recent"].build("a", "double", n=4)
    line = lines_of(made, made.checkpoints.take("full").path)["a"]
    assert (line.value is NOTHING, line.blob, line.rebuildable) == (True, "", True)
    assert msgspec.json.decode(line.source, type=Source) == Source("double", {"n": 4})
    made.check()
    made.close()


def test_large_values_lie_in_blobs_and_count(bench: Bench) -> None:
    bench.tiers["recent"].put("a", "x" * 5000)
    bench.tiers["recent"].put("b", "x" * 5000)
    first = bench.checkpoints.take("full")
    line = lines_of(bench, first.path)["a"]
    entry = bench.tiers["recent"].entry("a")
    assert entry is not None
    assert (line.blob, line.blob_bytes) == (entry.digest, 5002)
    own = sum(p.stat().st_size for p in (bench.path / first.path).iterdir())
    assert first.bytes == own + bench.blobs.stored_bytes(line.blob), "one blob for both"
    bench.tiers["recent"].put("c", "x" * 5000)
    second = bench.checkpoints.take("incremental")
    assert second.bytes == (bench.path / second.path).stat().st_size, "the base refers to it"
    bench.check()


def test_a_value_that_only_differences_tell_gets_a_blob_and_keeps_it(bench: Bench) -> None:
    text = "".join(chr(33 + n % 90) for n in range(9000))
    bench.tiers["recent"].put("a", text)
    entry = bench.tiers["recent"].put("a", text + "more")
    assert entry.blob is None
    path = bench.checkpoints.take("full").path
    assert entry.blob is not None
    assert lines_of(bench, path)["a"].blob == entry.blob.sha256 == entry.digest
    bench.check()
    replaced = entry.blob.sha256
    bench.tiers["recent"].delete("a")
    for _ in range(2):
        bench.checkpoints.take("full")
    bench.checkpoints.take("incremental")
    assert bench.blobs.stored_bytes(replaced) == 0, "no chain that is kept refers to it"


def test_a_blob_that_is_gone_from_the_disk_is_written_again(bench: Bench) -> None:
    entry = bench.tiers["recent"].put("a", "x" * 5000)
    assert entry.blob is not None
    (bench.path / "blobs" / entry.blob.sha256).unlink()
    bench.checkpoints.take("full")
    bench.check()


def test_values_that_left_memory_are_written_from_where_they_are(bench: Bench) -> None:
    recent = bench.tiers["recent"]
    recent.put("blob", ["b" * 2000])
    recent.put("packed", ["p" * 3000])
    bench.tiers.purge(keys=["blob"], how="least_accessed", cause="operator")
    bench.tiers.purge(keys=["packed"], how="compress", cause="operator")
    lines = lines_of(bench, bench.checkpoints.take("full").path)
    assert lines["blob"].blob
    assert msgspec.json.decode(lines["packed"].value) == ["p" * 3000]
    bench.check()


def test_a_segment_is_sealed_with_a_full_one(bench: Bench) -> None:
    bench.tiers["recent"].put("a", 1)
    bench.checkpoints.take("full")
    assert bench.context.log.segment == 2


def test_heat_phase_and_experiment_come_along(bench: Bench) -> None:
    bench.context.phase = "exploration"
    bench.journal.log(bench.context.record, "experiment.begin", {"x": 3, "phase": "exploration"})
    bench.context.experiment = 3
    bench.tiers["recent"].put("a", 1)
    bench.tiers["recent"].get("a")
    outcome = bench.checkpoints.take("full")
    line = lines_of(bench, outcome.path)["a"]
    assert (line.x, line.phase, line.heat) == (3, "exploration", [1])
    manifest = manifest_of(bench, outcome.path)
    assert (manifest.experiments, manifest.open, manifest.phase) == (3, 3, "exploration")
    (commit,) = bench.records("checkpoint.commit")
    told = [commit.members[name] for name in ("experiments", "open", "phase")]
    assert told == [3, 3, "exploration"]
    assert bench.check().full == outcome.id


def test_files_and_calls_come_along(bench: Bench) -> None:
    about = {"path": "out/a.txt", "op": "write", "hash": "h", "bytes": 4}
    bench.journal.log(bench.context.record, "file", about)
    bench.checkpoints.take("full")
    bench.journal.log(bench.context.record, "file", {**about, "path": "out/b.txt"})
    bench.checkpoints.take("incremental")
    state, report = bench.recover()
    assert set(state.journal.files()) == {"out/a.txt", "out/b.txt"}
    assert report.deltas


def test_a_large_tier_is_compressed_as_measured(bench: Bench) -> None:
    for number in range(2000):
        bench.tiers["recent"].put(f"call/{number}", {"text": "lorem ipsum " * 8, "n": number})
    path = bench.checkpoints.take("full").path
    (name,) = (name for name in manifest_of(bench, path).files if name.startswith("recent"))
    assert tier_of(name) == ("recent", name.removeprefix("recent.jsonl"))
    assert not [name for name in bench.names() if name.startswith(".")]
    bench.check()


@pytest.mark.parametrize("count", [0, 1, 3000])
def test_many_entries_hash_as_few_do(bench: Bench, count: int) -> None:
    for number in range(count):
        bench.tiers["history"].put(f"{number * 7919 % 3001}", number)
    bench.checkpoints.take("full")
    whole = hashlib.sha256()
    for entry in sorted(bench.tiers["history"].entries(), key=lambda entry: entry.key):
        whole.update(f"{entry.key}\0{entry.lsn}\0{entry.digest}\n".encode())
    (commit,) = bench.records("checkpoint.commit")
    assert commit.members["state_hash"]["history"] == whole.hexdigest()
