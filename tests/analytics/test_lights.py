"""The words of the lights: whole seconds, and a run that is over does not speak as a living one."""

from __future__ import annotations

from typing import Any

import pytest

from memwatch.analytics.lights import (
    checkpoint_light,
    memory_light,
    processes_light,
    step_light,
)
from memwatch.config.schema import Lights
from memwatch.domain.checkpoints import Bloat, Checkpoint, Checkpoints, CheckpointState
from memwatch.domain.recovery import RecoveryBudget
from memwatch.domain.snapshot import (
    Limit,
    Limits,
    Processes,
    Progress,
    Resource,
    RunInfo,
    RunState,
    Word,
)

SETTINGS = Lights(step_watch_s=15, step_warn_s=40)


def run(state: RunState = "running") -> RunInfo:
    return RunInfo(
        id="r", path="/r", agent="searcher", profile="demo", host="h", pid=1, state=state
    )


@pytest.mark.parametrize(
    ("age_s", "figure"), [(0.06, "now"), (1.7, "1s ago"), (12.4, "12s ago"), (249.0, "4m09s ago")]
)
def test_ages_are_whole_seconds_and_stand_still_below_one(age_s: float, figure: str) -> None:
    assert step_light(Progress(last_step_s=age_s), run(), SETTINGS).figure == figure
    assert checkpoint_light(Checkpoints(age_s=age_s), run()).figure == figure


@pytest.mark.parametrize("state", ["ended", "crashed", "killed"])
def test_ages_of_a_run_that_is_over_count_to_its_end(state: RunState) -> None:
    step = step_light(Progress(last_step_s=4.3), run(state), SETTINGS)
    assert step.figure == "4s before end"
    assert step.word == ("ok" if state == "ended" else "CRIT")
    checkpoint = checkpoint_light(Checkpoints(age_s=61.0), run(state))
    assert (checkpoint.figure, checkpoint.word) == ("1m01s before end", "ok")
    none = checkpoint_light(Checkpoints(), run(state))
    assert (none.word, none.figure, none.meaning) == ("watch", "none", "none was ever complete")


def test_memory_of_a_run_that_is_over_is_that_of_its_end() -> None:
    limits = Limits(binding=Limit(name="policy", bytes=100))
    memory = Resource(name="memory", used=70, limit=100, share=0.7, level="warn")
    assert memory_light(memory, limits, run()).meaning == "limit: policy"
    assert memory_light(memory, limits, run("crashed")).meaning == "at the end"


def test_processes_say_what_they_hold_where_nothing_is_wrong() -> None:
    found = Processes(count=1, threads=4, fds=5)
    assert processes_light(found, run(), SETTINGS).meaning == "4 thr · 5 fds"
    assert processes_light(Processes(count=1, threads=4), run(), SETTINGS).meaning == "4 thr"
    over = processes_light(Processes(), run("ended"), SETTINGS)
    assert (over.word, over.figure, over.meaning) == ("ok", "0", "none is left")


def _saved(state: CheckpointState = "committed", **members: Any) -> Checkpoints:
    last = Checkpoint(id="full-1", kind="full", state=state)
    return Checkpoints(**{"age_s": 10.0, "last": last, **members})


OVER = RecoveryBudget(recover_s=60, over=("recovery 74s is over your 60s",))


@pytest.mark.parametrize(
    ("saved", "budget", "word", "meaning"),
    [
        (_saved(), RecoveryBudget(recover_s=60), "ok", ""),
        (_saved(writing=("full-2",)), RecoveryBudget(), "ok", "one is being written"),
        (_saved(), OVER, "WARN", "recovery 74s is over your 60s"),
        (_saved(overdue=True), OVER, "WARN", "recovery 74s is over your 60s"),
        (_saved(missing=("full-1",)), OVER, "WARN", "full is missing on disk"),
        (_saved("incomplete", incomplete=("full-1",)), RecoveryBudget(), "WARN", "the newest one"),
        (_saved("damaged"), RecoveryBudget(), "WARN", "the newest one is damaged"),
        (_saved(incomplete=("full-0",)), RecoveryBudget(), "watch", "one is incomplete"),
        (_saved(next_fits=False), RecoveryBudget(), "WARN", "no room for the next"),
        (_saved(bloat=Bloat(verdict="watching")), RecoveryBudget(), "watch", "bloat, perhaps"),
        (_saved(bloat=Bloat(verdict="bloat")), RecoveryBudget(), "WARN", "bloat"),
        (Checkpoints(), OVER, "WARN", "none yet, recovery 74s is over your 60s"),
    ],
)
def test_checkpoints_say_what_makes_a_recovery_worse(
    saved: Checkpoints, budget: RecoveryBudget, word: Word, meaning: str
) -> None:
    found = checkpoint_light(saved, run(), budget)
    assert found.word == word
    assert found.meaning.startswith(meaning)
    over = checkpoint_light(saved, run("ended"), budget)
    assert "over your" not in over.meaning, "a run that is over cannot crash"
