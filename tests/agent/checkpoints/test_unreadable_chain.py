"""A chain that cannot be looked at costs an attempt, and none of what had changed."""

from __future__ import annotations

import errno

import pytest

from memwatch.agent.checkpoints.standing import Standing
from tests.agent.checkpoints.bench import Bench


def refuse(*_: object) -> bool:
    raise OSError(errno.EIO, "input/output error")


def test_changes_are_in_the_next_increment_when_the_chain_could_not_be_looked_at(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.tiers["recent"].put("a", {"n": 1})
    assert bench.checkpoints.take("full").committed
    bench.tiers["recent"].put("b", {"n": 2})
    with monkeypatch.context() as broken:
        broken.setattr(Standing, "has_chain", refuse)
        failed = bench.checkpoints.take("incremental")
    assert not failed.committed
    assert "input/output error" in failed.reason
    assert len(bench.records("checkpoint.abort")) == 1
    bench.tiers["recent"].put("c", {"n": 3})
    done = bench.checkpoints.take("incremental")
    assert done.committed
    assert done.kind == "incremental"
    entries = bench.records("checkpoint.commit")[-1].members["entries"]
    assert entries == 2
    assert bench.tiers.release(1), "the tables are the tiers' own again"
    bench.check()
