"""Differences of an increment that failed are part of the next one."""

from __future__ import annotations

from pathlib import Path

from memwatch.agent import Run, RunOptions, recover
from tests.faults.failing_files import FailingFiles


def test_a_value_that_changed_before_and_during_a_failed_increment_comes_back_as_it_is(
    tmp_path: Path,
) -> None:
    files = FailingFiles()
    with Run.open(tmp_path, RunOptions(agent="a", durability="os"), files=files) as run:
        tier = run.tiers["recent"]
        value = {f"member/{n}": n for n in range(40)}
        tier.put("key", value)
        assert run.checkpoints.take("full").committed
        value = {**value, "member/1": -1}
        tier.put("key", value)

        def changes_then_fails(_number: int, name: str) -> bool:
            if name == "rename":
                tier.put("key", {**value, "member/2": -2})
            return name == "rename"

        files.fail = changes_then_fails
        assert not run.checkpoints.take("incremental").committed
        files.heal()
        outcome = run.checkpoints.take("incremental")
        assert outcome.committed
        assert b'"diff"' in (tmp_path / outcome.path).read_bytes()
    state, report = recover(tmp_path)
    assert outcome.id in report.deltas
    assert (report.lost, report.matches) == ((), True)
    assert state["recent"]["key"] == {**value, "member/2": -2}
