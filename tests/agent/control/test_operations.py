"""What every run does on request, on real tiers and checkpoints."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memwatch.agent.control.mode import ExperimentAborted, RunEnded
from memwatch.agent.control.reclaim import resident_bytes, trim_allocator
from memwatch.domain.errors import ReadOnlyError
from tests.agent.control.parts import Parts
from tests.agent.control.sending import a_hold, ack_of, put_hold
from tests.agent.reading import kinds, read_log


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Parts]:
    parts = Parts(tmp_path)
    yield parts
    parts.close()


@pytest.mark.parametrize("kind", ["full", "incremental", "experiment"])
def test_a_checkpoint_is_answered_when_it_is_committed(run: Parts, kind: str) -> None:
    run.tiers["workspace"].put("a", {"n": 1})
    run.begin_experiment()
    state, _, result = run.do("checkpoint", args={"kind": kind})
    assert state == "done"
    assert (run.path / result["path"]).exists()
    assert {"id", "kind", "bytes", "sha256"} <= set(result)
    assert "checkpoint.commit" in kinds(run.path)


def test_without_an_experiment_a_checkpoint_of_it_saves_what_changed(run: Parts) -> None:
    run.tiers["workspace"].put("a", {"n": 1})
    assert run.do("checkpoint", args={"kind": "full"})[0] == "done"
    run.tiers["workspace"].put("b", {"n": 2})
    state, _, result = run.do("checkpoint", args={"kind": "experiment"})
    assert (state, result["kind"]) == ("done", "incremental")


def test_a_checkpoint_that_fails_says_why(run: Parts) -> None:
    command_id = run.ask("checkpoint", args={"kind": "full"})
    (run.path / "checkpoints").write_text("in the way")
    run.listener.safe_point()
    state, detail, _ = run.answer(command_id)
    assert state == "failed"
    assert detail


@pytest.mark.parametrize(
    ("op", "args", "words"),
    [
        ("checkpoint", {"kind": "huge"}, "wrong argument"),
        ("purge", {"tier": "attic"}, "there is no tier attic"),
        ("purge", {"how": "nicely"}, "wrong argument"),
        ("purge", {"target_bytes": -1}, "wrong argument"),
        ("purge", {"keys": "a"}, "wrong argument"),
        ("retain", {"tier": "workspace"}, "wrong argument"),
        ("retain", {"tier": "attic", "keep": None}, "there is no tier 'attic'"),
        ("retain", {"tier": "workspace", "keep": {"count": 0}}, "count is a whole number from 1"),
        ("retain", {"tier": "workspace", "keep": {"ttl": 1}}, "unknown field `ttl`"),
        ("retain", {"tier": "workspace", "keep": {"ttl_s": -1}}, "ttl_s is a time"),
        ("retain", {"tier": "workspace", "keep": {"demote_to": "attic"}}, "no other tier"),
        ("retain", {"tier": "verified", "keep": {"delete": True}}, "deletes nothing"),
        ("abort_experiment", {}, "no experiment is in progress"),
        ("end_run", {"grace_us": 10**12}, "wrong argument"),
        ("reclaim", {"all": True}, "unknown arguments: all"),
    ],
)
def test_what_makes_no_sense_is_refused(
    run: Parts, op: str, args: dict[str, Any], words: str
) -> None:
    state, detail, _ = run.do(op, args=args)
    assert state == "refused"
    assert words in detail
    assert set(kinds(run.path)) == {"command"}


def test_a_purge_frees_what_it_says_and_loses_nothing(run: Parts) -> None:
    verified = run.tiers["verified"]
    for n in range(5):
        verified.put(f"v/{n}", {"text": f"{n} " * 5000})
    before = verified.bytes
    state, _, result = run.do("purge", args={"tier": "verified", "how": "reclaim"})
    assert (state, result["entries"], result["deleted"]) == ("done", 5, 0)
    assert result["freed_bytes"] == before - verified.bytes > 40_000
    assert verified.get("v/3") == {"text": "3 " * 5000}
    ends = [r for r in read_log(run.path / "wal")[0] if r.kind == "purge.end"]
    assert ends[0].text("cause") == "operator"


def test_a_purge_by_keys_takes_only_these(run: Parts) -> None:
    for n in range(3):
        run.tiers["workspace"].put(f"w/{n}", "x" * 9000)
    _, _, result = run.do("purge", args={"keys": ["w/1"], "how": "reclaim"})
    assert result["entries"] == 1


@pytest.mark.parametrize("op", ["purge", "checkpoint"])
def test_a_dry_run_changes_nothing(run: Parts, op: str) -> None:
    run.tiers["workspace"].put("w", "x" * 9000)
    before, bytes_before = set(kinds(run.path)), run.tiers["workspace"].bytes
    state, _, result = run.do(op, dry_run=True)
    assert state == "done"
    assert result
    assert run.tiers["workspace"].bytes == bytes_before
    assert set(kinds(run.path)) - before == {"command"}
    assert not (run.path / "checkpoints").exists()


def test_reclaim_measures_each_step(run: Parts) -> None:
    cache: list[bytes] = []
    run.reclaimer.register("pages", cache.clear)
    run.reclaimer.register("broken", lambda: 1 / 0)
    cache.append(bytes(b"x" * 40_000_000))
    state, _, result = run.do("reclaim")
    assert state == "done"
    steps = {step["name"]: step for step in result["steps"]}
    assert list(steps) == ["cache pages", "cache broken", "garbage", "allocator"]
    assert steps["cache pages"]["freed_bytes"] > 30_000_000
    assert result["freed_bytes"] > 30_000_000
    assert "division" in steps["cache broken"]["error"]
    assert all(step["duration_us"] >= 0 for step in result["steps"])


def test_trimming_gives_back_what_the_allocator_keeps() -> None:
    blocks = [bytearray(60_000) for _ in range(2000)]
    last = bytearray(60_000)  # above them on the heap: nothing below leaves by itself
    del blocks
    gc.collect()
    before = resident_bytes()
    trim_allocator()
    assert before > resident_bytes() > 0
    assert last


def test_an_abort_unwinds_saves_and_leaves_the_agent_alive(run: Parts) -> None:
    run.tiers["workspace"].put("a", 1)
    run.begin_experiment()
    command_id = run.ask("abort_experiment")
    with pytest.raises(ExperimentAborted):
        run.listener.interruption_point()
    assert run.mode.state == "aborting"
    run.end_experiment()
    run.listener.safe_point()
    state, _, result = run.answer(command_id)
    assert (state, result["experiment"]) == ("done", 1)
    assert (run.path / result["saved"]["path"]).exists()
    assert run.modes() == ["aborting", "running"]
    run.mode.gate(run.listener.safe_point)


def test_after_an_abort_by_the_engine_it_may_hold_the_run_before_the_next_experiment(
    run: Parts,
) -> None:
    run.begin_experiment()
    command_id = run.ask("abort_experiment", by={"uid": 0, "origin": "engine"})
    with pytest.raises(ExperimentAborted):
        run.listener.safe_point()
    run.end_experiment()
    run.listener.safe_point()
    assert run.answer(command_id)[0] == "done"
    began: list[str] = []

    def begin() -> None:
        run.mode.gate(run.listener.safe_point)
        began.append("began")

    thread = threading.Thread(target=begin, daemon=True)
    thread.start()
    run.clock.advance_s(0.9)
    run.listener.poll()
    thread.join(0.2)
    assert began == []
    run.clock.advance_s(0.2)
    run.listener.poll()
    thread.join(20)
    assert began == ["began"]


@pytest.mark.parametrize("taken", [False, True])
def test_an_abort_of_an_experiment_that_ends_by_itself_saves_and_does_not_say_it_was_aborted(
    run: Parts, taken: bool
) -> None:
    run.begin_experiment()
    command_id = run.ask("abort_experiment", by={"uid": 0, "origin": "engine"})
    if taken:  # by a thread that does not hold the experiment
        helper = threading.Thread(target=run.listener.safe_point)
        helper.start()
        helper.join()
    run.end_experiment()
    run.listener.interruption_point()
    assert run.mode.state == "aborting", "a checkpoint waits for a state that is whole"
    run.listener.safe_point()
    state, _, result = run.answer(command_id)
    assert (state, result["experiment"]) == ("done", None)
    assert (run.path / result["saved"]["path"]).exists()
    assert run.modes() == ["aborting", "running"]


def test_an_abort_that_cannot_save_is_done_all_the_same(run: Parts) -> None:
    run.begin_experiment()
    command_id = run.ask("abort_experiment")
    with pytest.raises(ExperimentAborted):
        run.listener.safe_point()
    run.end_experiment()
    (run.path / "checkpoints").write_text("in the way")
    run.listener.safe_point()
    state, _, result = run.answer(command_id)
    assert state == "done"
    assert result["saved"]["error"]


def test_an_abort_that_came_too_late_is_called_off(run: Parts) -> None:
    run.begin_experiment()
    command_id = run.ask("abort_experiment", deadline_us=5_000_000, args={"save": "none"})
    with pytest.raises(ExperimentAborted):
        run.listener.safe_point()
    run.clock.advance_s(6)  # the experiment took no notice
    run.listener.poll()
    assert run.answer(command_id)[0] == "failed"
    run.listener.safe_point()
    assert run.modes() == ["aborting", "running"]


def test_an_end_saves_everything_then_leaves(run: Parts) -> None:
    run.tiers["workspace"].put("a", 1)
    command_id = run.ask("end_run")
    with pytest.raises(RunEnded):
        run.listener.safe_point()
    state, _, result = run.answer(command_id)
    assert (state, result["saved"]["kind"]) == ("done", "full")


def test_an_end_that_cannot_save_leaves_the_run_as_it_is(run: Parts) -> None:
    command_id = run.ask("end_run")
    (run.path / "checkpoints").write_text("in the way")
    run.listener.safe_point()
    state, detail, _ = run.answer(command_id)
    assert state == "failed"
    assert "the run goes on" in detail
    command_id = run.ask("end_run", args={"save": "best_effort"})
    with pytest.raises(RunEnded):
        run.listener.safe_point()
    assert run.answer(command_id)[0] == "done"


def test_an_end_gives_the_experiment_its_grace(run: Parts) -> None:
    run.begin_experiment()
    command_id = run.ask("end_run", args={"grace_us": 60_000_000})
    run.listener.safe_point()
    assert (ack_of(run.path, command_id) or {})["state"] == "running"
    run.end_experiment()
    with pytest.raises(RunEnded):
        run.listener.safe_point()
    assert run.answer(command_id)[0] == "done"


def test_read_only_refuses_a_change_and_takes_a_checkpoint(run: Parts) -> None:
    run.tiers["workspace"].put("a", 1)
    put_hold(run.path, a_hold(op="read_only", reason="hard limit"))
    run.listener.poll()
    with pytest.raises(ReadOnlyError, match="hard limit"):
        run.tiers["workspace"].put("b", 2)
    assert "b" not in run.tiers["workspace"]
    assert run.do("checkpoint")[0] == "done"
