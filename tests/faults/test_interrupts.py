"""An interrupt anywhere in a change: what is in the log is in memory, and nothing else (R7)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memwatch.agent import Run, RunOptions
from memwatch.agent.checkpoints.cadence import Kind
from memwatch.agent.checkpoints.capture import Captured
from memwatch.agent.checkpoints.turn import Turn
from memwatch.agent.memory.table import Table
from memwatch.agent.memory.tiers import Tiers
from memwatch.domain.errors import LogError
from memwatch.domain.policy import Keep
from tests.agent.memory.holding import Held
from tests.faults.interrupts import Interrupt, interrupted

KEEP = {
    "recent": Keep(count=3, experiments=2, demote_to="history"),
    "verified": Keep(delete=False),
    "history": Keep(),
}
LARGE = "x" * 5_000


def prepared(path: Path) -> Held:
    held = Held(path, KEEP, builders={"repeat": lambda n: "y" * n}, limit_bytes=300_000)
    held.context.experiment = 1
    for number in range(3):
        held.tier.put(f"{number}", {"n": number, "pad": "z" * 400})
    held.tiers["verified"].put("large", LARGE)
    held.tiers["verified"].put("small", {"n": [1, 2, 3], "pad": "z" * 400})
    return held


def put_after_one_expired(held: Held) -> None:
    held.tier.put("short", 1, ttl_s=1)
    held.clock.advance_s(2)
    held.tier.put("3", 3)


ACTS: dict[str, Callable[[Held], object]] = {
    "put": lambda held: held.tiers["verified"].put("new", {"n": 1}, ttl_s=60),
    "put large": lambda held: held.tiers["verified"].put("new", LARGE + "!"),
    "update": lambda held: held.tiers["verified"].put("small", {"n": [1, 2], "pad": "z" * 400}),
    "update large": lambda held: held.tiers["verified"].put("large", LARGE + "!"),
    "put over count": lambda held: held.tier.put("3", 3, experiment=2),
    "put after one expired": put_after_one_expired,
    "delete": lambda held: held.tiers["verified"].delete("large"),
    "build": lambda held: held.tiers["verified"].build("made", "repeat", n=500),
    "evict": lambda held: held.tiers.purge(cause="agent"),
    "pack": lambda held: held.tiers.purge(how="compress", cause="agent"),
    "come back": lambda held: (
        held.tiers.purge(cause="agent"),
        held.tiers["verified"].get("large"),
    ),
    "experiment ends": lambda held: held.tiers.experiment_ended(1, {"status": "done"}),
}


def sums(table: Table) -> tuple[Any, ...]:
    experiments = {number: set(keys) for number, keys in table.experiments.items()}
    watched = {item for item in table._deadlines if table._is_current(item)}
    return table.bytes, table.full_bytes, set(table.resident), experiments, watched


# An interrupt in the opening of a file leaves it to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ACTS)
def test_memory_and_log_agree_after_an_interrupt_anywhere(tmp_path: Path, name: str) -> None:
    at, step = 1, 23  # every 23rd bytecode; each has its turn over the acts and their lengths
    while True:
        held = prepared(tmp_path / f"{at}")
        hit = interrupted(lambda: ACTS[name](held), at)  # noqa: B023 - called before the next turn
        assert held.state() == held.replay()
        for tier in held.tiers.values():
            before = sums(tier.table)
            tier.table.mend()
            assert sums(tier.table) == before
        held.tiers["verified"].put("next", 1)
        held.log.close()
        if not hit:
            break
        at += step
    assert at > 10 * step


def test_a_sync_that_fails_leaves_memory_as_the_log_has_it(tmp_path: Path) -> None:
    held = prepared(tmp_path)
    held.log._always = True  # as `durability="always"` makes it
    held.log_files.fail_all("sync_data")
    with pytest.raises(LogError):
        held.tiers["verified"].put("new", 1)
    held.log_files.heal()
    assert held.state() == held.replay()
    held.tiers["verified"].put("new", 2)
    assert held.state() == held.replay()
    held.log.close()


def test_an_experiment_that_was_left_without_its_end_is_aborted_by_the_next(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run", RunOptions(agent="a", durability="os")) as run:
        block = run.experiment("left")
        first = block.__enter__()
        del block  # as an interrupt does that comes where `__exit__` begins
        with run.experiment("next") as experiment:
            assert experiment.number == 2
        assert first.status == "aborted"


def test_an_experiment_whose_begin_fails_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Tiers) -> None:
        raise LogError("retention was refused")

    monkeypatch.setattr(Tiers, "phase_changed", fails)
    with Run.open(tmp_path / "run", RunOptions(agent="a", durability="os")) as run:
        block = run.experiment("one", phase="exploration")
        with pytest.raises(LogError):
            block.__enter__()
        assert run.current is None
        with run.experiment("two", phase="exploration") as experiment:
            assert experiment.number == 2


def test_a_checkpoint_interrupted_while_it_takes_hold_loses_no_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = RunOptions(agent="a", durability="os")
    with Run.open(tmp_path / "run", options) as run:
        tier = run.tiers["verified"]
        tier.put("first", 1)
        assert run.checkpoints.take("full").committed
        tier.put("second", 2)
        capture = run.checkpoints._chain.capture

        def stopped(kind: Kind) -> Captured:
            capture(kind)
            raise Interrupt

        monkeypatch.setattr(run.checkpoints._chain, "capture", stopped)
        with pytest.raises(Interrupt):
            run.checkpoints.take("incremental")
        monkeypatch.undo()
        assert run.checkpoints.take("incremental").committed
        state = {entry.key: entry.lsn for entry in tier.entries()}
    with Run.open(tmp_path / "run", options) as run:
        assert run.recovered is not None
        assert not run.recovered.lost
        assert {e.key: e.lsn for e in run.tiers["verified"].entries()} == state


def test_an_interrupt_where_a_turn_is_taken_leaves_it_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = Turn.take

    def stopped(turn: Turn, token: object, *, wait: bool) -> bool:
        take(turn, token, wait=wait)
        raise Interrupt

    with Run.open(tmp_path / "run", RunOptions(agent="a", durability="os")) as run:
        monkeypatch.setattr(Turn, "take", stopped)
        with pytest.raises(Interrupt):
            run.checkpoints.take("full")
        monkeypatch.undo()
        assert not run.checkpoints.busy
        assert run.checkpoints.take("full").committed
