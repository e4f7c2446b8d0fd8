"""An incremental checkpoint: the net changes, as differences where those say less (R6)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from memwatch.agent.checkpoints.checkpointer import Checkpointer
from memwatch.domain.record import Record
from memwatch.wal import codec
from tests.agent.checkpoints.bench import Bench


def lines_of(bench: Bench, path: str) -> list[Record]:
    return [codec.decode(line) for line in (bench.path / path).read_bytes().splitlines()]


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
    found = [(line.kind, line.text("key"), line.lsn) for line in lines_of(bench, first.path)]
    assert found == [("update", "a", 7), ("delete", "b", 8), ("put", "e", 11)]
    recent.delete("e")
    bench.checkpoints.take("incremental")
    report = bench.check()
    assert (report.full, len(report.deltas)) == (base, 2)
    commits = bench.records("checkpoint.commit")
    assert [c.text("base") for c in commits] == ["", base, base]
    assert commits[1].number("last_lsn") == (commits[2].number("first_lsn") or 0) - 1
    assert [c.text("kind") for c in commits] == ["full", "incremental", "incremental"]


def test_the_first_is_always_full(bench: Bench) -> None:
    assert bench.checkpoints.take("incremental").kind == "full"


def test_a_large_value_that_changed_little_is_told_by_the_difference(bench: Bench) -> None:
    value = {"rows": [{"n": n, "text": "x" * 50} for n in range(200)]}
    before = bench.tiers["recent"].put("a", value)
    bench.checkpoints.take("full")
    for number in (3, 150):
        value = msgspec.json.decode(msgspec.json.encode(value))
        value["rows"][number]["n"] = -1
        bench.tiers["recent"].put("a", value)
    outcome = bench.checkpoints.take("incremental")
    (line,) = lines_of(bench, outcome.path)
    assert (line.kind, line.number("from"), len(line.members["diff"])) == ("update", before.lsn, 2)
    assert outcome.bytes < 500
    bench.check()
    bench.tiers["recent"].put("a", {"rows": []})
    (line,) = lines_of(bench, bench.checkpoints.take("incremental").path)
    assert line.members["value"] == {"rows": []}
    bench.check()


def test_changes_of_one_that_failed_go_into_the_next(bench: Bench) -> None:
    value = {"rows": ["x" * 50] * 20}
    bench.tiers["recent"].put("a", value)
    bench.tiers["recent"].put("b", 1)
    bench.checkpoints.take("full")
    bench.tiers["recent"].put("a", {"rows": [*value["rows"], "y"]})
    bench.tiers["recent"].delete("b")
    bench.files.fail_all("rename")
    assert not bench.checkpoints.take("incremental").committed
    bench.files.heal()
    bench.tiers["recent"].put("a", {"rows": [*value["rows"], "y", "z"]})
    outcome = bench.checkpoints.take("incremental")
    deleted, updated = lines_of(bench, outcome.path)
    assert (deleted.kind, updated.kind, len(updated.members["diff"])) == ("delete", "update", 2)
    bench.check()


def test_a_start_goes_on_with_the_chain_of_the_one_before(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.tiers["recent"].put("a", {"text": "x" * 200})
    bench.tiers["recent"].put("b", 2)
    base = bench.checkpoints.take("full").id
    bench.tiers["recent"].put("c", 3)
    bench.checkpoints.take("incremental")
    bench.tiers["recent"].put("a", {"text": "x" * 200 + "y"})
    bench.tiers["recent"].delete("b")
    bench.close()
    again = Bench(tmp_path)
    again.tiers["recent"].put("d", 4)
    outcome = again.checkpoints.take("incremental")
    assert outcome.kind == "incremental"
    kinds = [line.kind for line in lines_of(again, outcome.path)]
    assert kinds == ["update", "delete", "put"]
    report = again.check()
    assert (report.full, len(report.deltas)) == (base, 2)
    again.close()


def test_after_a_recovery_with_losses_a_full_one_is_due_at_once(bench: Bench) -> None:
    bench.checkpoints.resume(None, 0)
    assert bench.checkpoints.pressing
    assert bench.checkpoints.due() == "full"
    assert bench.checkpoints.take("incremental").kind == "full"
    assert bench.checkpoints.due() is None


def test_the_counts_of_before_a_restart_go_on(bench: Bench) -> None:
    first = bench.checkpoints.take("full")
    other = Checkpointer(
        bench.context, bench.tiers, types=bench.types, blobs=bench.blobs, journal=bench.journal
    )
    other.resume(first.id, 0, 50_000_001)
    assert other.due() == "full"
    other.resume(first.id, 0, 0, 2, 5)
    assert other.due() is None
    other.experiment_finished()
    assert other.pressing
    assert other.due() == "incremental"
    other.resume(first.id, 0, 0, 0, 20)
    assert other.due() == "full"
    other.close()


def test_where_the_base_is_gone_a_full_one_is_taken(bench: Bench) -> None:
    bench.tiers["recent"].put("a", 1)
    first = bench.checkpoints.take("full")
    bench.tiers["recent"].put("b", 1)
    second = bench.checkpoints.take("incremental")
    (bench.path / second.path).unlink()
    bench.tiers["recent"].put("c", 1)
    third = bench.checkpoints.take("incremental")
    assert (first.kind, second.kind, third.kind) == ("full", "incremental", "full")
    for part in (bench.path / third.path).iterdir():
        part.unlink()
    assert bench.checkpoints.take("experiment").kind == "full"
    bench.check()


def test_kind_experiment_persists_what_else_would_be_made_again(tmp_path: Path) -> None:
    makers: dict[str, Callable[..., Any]] = {
        "rows": lambda n: list(range(n)),
        "odd": object,
        "raw": lambda: b"\x00\xff",
    }
    bench = Bench(tmp_path, builders=makers)
    recent = bench.tiers["recent"]
    bench.context.experiment = 1
    recent.build("of another", "rows", n=3)
    bench.context.experiment = 2
    recent.build("before", "rows", n=4)
    recent.build("raw", "raw")
    recent.put("plain", 1)
    bench.checkpoints.take("full")
    recent.build("after", "rows", n=5)
    recent.build("no json", "odd")
    outcome = bench.checkpoints.take("experiment")
    assert (outcome.kind, outcome.persisted, outcome.unpersisted) == ("experiment", 3, 1)
    (commit,) = bench.records("checkpoint.commit")[1:]
    assert (commit.number("persisted"), commit.number("unpersisted")) == (3, 1)
    told = {line.text("key"): line for line in lines_of(bench, outcome.path)}
    assert set(told) == {"before", "raw", "after", "no json"}
    assert "source" in told["before"].members
    assert "blob" not in told["no json"].members
    bench.check()
    state, _ = bench.recover()
    assert (state["recent"]["before"], state["recent"]["after"]) == ([0, 1, 2, 3], list(range(5)))
    bench.close()
    again = Bench(tmp_path)  # no builders: only the blobs can tell
    assert again.tiers["recent"].get("before") == [0, 1, 2, 3]
    assert again.tiers["recent"].get("raw") == b"\x00\xff"
    again.close()
