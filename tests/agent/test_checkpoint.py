"""Checkpoints: cadence, files that fit their manifest, commits, aborts, pruning."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memwatch.agent.checkpoints.checkpointer import Cadence, Checkpointer
from memwatch.agent.context import Context
from memwatch.agent.memory.tiers import Keep, Tiers
from memwatch.domain.clock import ManualClock
from memwatch.domain.record import Record
from memwatch.wal import codec
from memwatch.wal.manifest import parse_checkpoint
from tests.agent.reading import context_at, read_log
from tests.faults.failing_files import FailingFiles


class Bench:
    """A run directory with tiers and a checkpointer."""

    def __init__(self, path: Path, cadence: Cadence | None = None) -> None:
        self.path = path
        self.clock = ManualClock()
        self.files = FailingFiles()
        self.context: Context = context_at(path, clock=self.clock, files=self.files)
        self.tiers = Tiers({"recent": Keep(), "history": Keep()}, self.context.record)
        self.checkpoints = Checkpointer(self.context, self.tiers, cadence)

    def names(self) -> list[str]:
        """Return what lies in the checkpoint folder, hidden files too."""
        folder = self.path / "checkpoints"
        return sorted(p.name for p in folder.iterdir()) if folder.exists() else []

    def records(self, kind: str) -> list[Record]:
        """Return the records of a kind."""
        return [record for record in read_log(self.path / "wal")[0] if record.kind == kind]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.files.heal()
    made.context.log.close()


def recover(path: Path, base: str, deltas: list[str]) -> dict[str, dict[str, Any]]:
    """Return tier -> key -> entry, as a recovery would: the full one, then the deltas in order."""
    state: dict[str, dict[str, Any]] = {"recent": {}, "history": {}}
    for tier, entries in state.items():
        for line in (path / "checkpoints" / base / f"{tier}.jsonl").read_bytes().splitlines():
            entry = msgspec.json.decode(line)
            entries[entry["key"]] = entry
    for name in deltas:
        for line in (path / "checkpoints" / f"{name}.wal").read_bytes().splitlines():
            record = codec.decode(line)
            entries = state[record.text("tier")]
            if record.kind == "delete":
                entries.pop(record.text("key"))
            else:
                entries[record.text("key")] = {**record.members, "lsn": record.lsn}
    return state


def test_a_full_one_holds_everything_and_its_commit_proves_it(bench: Bench) -> None:
    bench.tiers["recent"].put("a", {"chunks": [b"\x00\xff"]}, group="1")
    bench.tiers["recent"].put("b", "made again from its source", rebuildable=True)
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
    state = recover(bench.path, outcome.id, [])
    assert state["recent"]["a"]["value"] == {"chunks": ["AP8="]}
    assert "value" not in state["recent"]["b"]


def test_state_hash_is_what_the_contract_says(bench: Bench) -> None:
    bench.tiers["history"].put("b", {"y": 1, "x": 2})
    bench.tiers["history"].put("a", [1])
    bench.checkpoints.take("full")
    inner = [hashlib.sha256(text).hexdigest() for text in (b"[1]", b'{"x":2,"y":1}')]
    whole = f"a\0{2}\0{inner[0]}\nb\0{1}\0{inner[1]}\n".encode()
    (commit,) = bench.records("checkpoint.commit")
    assert commit.members["state_hash"]["history"] == hashlib.sha256(whole).hexdigest()


def test_full_plus_net_changes_is_the_state(bench: Bench) -> None:
    recent = bench.tiers["recent"]
    for key in "abc":
        recent.put(key, {"first": key})
    base = bench.checkpoints.take("full").id
    recent.put("a", {"second": "a"})
    recent.put("a", {"third": "a"})
    recent.delete("b")
    recent.put("d", 1)
    recent.delete("d")
    recent.put("e", "new")
    first = bench.checkpoints.take("incremental")
    lines = (bench.path / first.path).read_bytes().splitlines()
    assert [codec.decode(line).text("key") for line in lines] == ["a", "b", "e"]
    recent.delete("e")
    second = bench.checkpoints.take("incremental")
    state = recover(bench.path, base, [first.id, second.id])["recent"]
    assert {key: entry["value"] for key, entry in state.items()} == {
        "a": {"third": "a"},
        "c": {"first": "c"},
    }
    assert {key: entry["lsn"] for key, entry in state.items()} == {
        entry.key: entry.lsn for entry in recent.entries()
    }
    commits = bench.records("checkpoint.commit")
    assert [c.text("base") for c in commits] == ["", base, base]
    assert commits[1].number("last_lsn") == (commits[2].number("first_lsn") or 0) - 1


def test_the_first_is_always_full(bench: Bench) -> None:
    assert bench.checkpoints.take("incremental").kind == "full"


def test_cadence_by_experiments_time_and_chain(tmp_path: Path) -> None:
    cadence = Cadence(
        incremental_experiments=3,
        incremental_s=900,
        full_experiments=20,
        full_s=7200,
        chain_bytes=50_000,
    )
    bench = Bench(tmp_path, cadence)
    due, taker = bench.checkpoints.due, bench.checkpoints
    taker.experiment_finished()
    taker.experiment_finished()
    assert due() is None
    taker.experiment_finished()
    assert due() == "full"
    taker.take("full")
    assert due() is None
    bench.clock.advance_s(901)
    assert due() == "incremental"
    taker.take("incremental")
    bench.clock.advance_s(7200)
    assert due() == "full"
    taker.take("full")
    for _ in range(20):
        taker.experiment_finished()
    assert due() == "full"
    taker.take("full")
    bench.tiers["recent"].put("big", b"x" * 60_000)
    taker.take("incremental")
    assert due() == "full"
    bench.clock.step_wall_s(-86_400)
    taker.take("full")
    assert due() is None
    bench.context.log.close()


def test_a_failure_is_logged_never_raised_and_tried_again_later(bench: Bench) -> None:
    bench.tiers["recent"].put("a", {"x": 1})
    assert bench.checkpoints.take("full").committed
    bench.files.fail_all("rename")
    bench.clock.advance_s(1000)
    outcome = bench.checkpoints.take("incremental")
    assert (outcome.committed, outcome.reason) == (False, "No space left on device")
    (abort,) = bench.records("checkpoint.abort")
    assert (abort.text("id"), abort.text("reason")) == (outcome.id, outcome.reason)
    assert bench.checkpoints.due() is None
    bench.clock.advance_s(11)
    assert bench.checkpoints.due() == "incremental"
    bench.files.heal()
    assert bench.checkpoints.take("incremental").committed


def test_a_value_that_cannot_be_written_aborts(bench: Bench) -> None:
    bench.tiers["recent"].put("a", [object()] * 1000)
    outcome = bench.checkpoints.take("full")
    assert not outcome.committed
    assert "object" in outcome.reason
    assert bench.names() == []


@pytest.mark.parametrize("kind", ["full", "incremental"])
@pytest.mark.parametrize("short", [False, True])
def test_whichever_call_fails_the_committed_state_recovers(
    tmp_path: Path, kind: str, short: bool
) -> None:
    for failing in range(40):
        bench = Bench(tmp_path / f"{failing}")
        bench.files.short = short
        recent = bench.tiers["recent"]
        recent.put("a", {"n": 1})
        base = bench.checkpoints.take("full").id
        recent.put("b", {"n": 2})
        bench.files.fail_from({failing})
        outcome = bench.checkpoints.take("full" if kind == "full" else "incremental")
        bench.files.heal()
        recent.put("c", {"n": 3})
        last = bench.checkpoints.take("incremental")
        assert last.committed
        commits = [record.text("id") for record in bench.records("checkpoint.commit")]
        fulls = [name for name in commits if name.startswith("full")]
        state = recover(bench.path, fulls[-1], commits[commits.index(fulls[-1]) + 1 :])
        assert set(state["recent"]) == {"a", "b", "c"}
        assert outcome.committed or outcome.id not in commits
        assert base in commits
        assert not [name for name in bench.names() if name.endswith(".draft")]
        bench.context.log.close()


def test_one_older_chain_stays_and_the_log_says_what_went(bench: Bench) -> None:
    taken: list[str] = []
    for number in range(4):
        bench.tiers["recent"].put("a", {"n": number})
        taken.append(bench.checkpoints.take("full").id)
        bench.tiers["recent"].put("b", {"n": number})
        taken.append(bench.checkpoints.take("incremental").id)
    assert [name.removesuffix(".wal") for name in bench.names()] == sorted(taken[4:])
    records, faults = read_log(bench.path / "wal")
    assert faults == []
    kept_lsn = int(taken[4].rsplit("-", 1)[1])
    assert records[0].lsn == kept_lsn + 1
    spans = [(t.number("first_lsn"), t.number("last_lsn")) for t in bench.records("truncate")]
    assert spans[-1][1] == kept_lsn
    assert recover(bench.path, taken[4], [taken[5]])["recent"]["b"]["value"] == {"n": 2}


def test_drafts_of_a_killed_checkpoint_are_swept(bench: Bench) -> None:
    bench.checkpoints.take("full")
    folder = bench.path / "checkpoints"
    (folder / ".full-00000000000000000009.draft").mkdir()
    (folder / ".full-00000000000000000009.draft" / "recent.jsonl").write_text("half")
    (folder / ".delta-00000000000000000001-00000000000000000002.wal.draft").write_text("half")
    bench.checkpoints.take("incremental")
    assert not [name for name in bench.names() if name.startswith(".")]
