"""What stays of an experiment that a tier lets go: a summary in the tier below (R1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memwatch.agent.memory.entry import ABSENT, Entry
from memwatch.agent.receipt import Receipt
from memwatch.domain.errors import LogError
from memwatch.domain.policy import Keep
from tests.agent.memory.holding import Held

Hold = Callable[..., Held]
TWO = {"recent": Keep(experiments=1, demote_to="history"), "history": Keep(experiments=3)}


def keys(held: Held, tier: str | None = None) -> list[str]:
    return [entry.key for entry in held.tiers[tier or held.tier.name].entries()]


def demoted(held: Held, experiments: int = 2) -> Any:
    for number in range(1, experiments + 1):
        held.context.experiment = number
        held.tier.put(f"result/{number}", {"n": number}, importance=0.8)
        held.tier.put(f"input/{number}", "x" * 9000)
        held.tiers.experiment_ended(outcome={"title": f"try {number}", "status": "kept"})
    return held.tiers["history"].peek("summary/1")


def test_an_experiment_leaves_a_summary_before_it_goes(hold: Hold) -> None:
    held = hold(TWO)
    assert demoted(held) == {"experiment": 1, "title": "try 1", "status": "kept"}
    entry = held.tiers["history"].entry("summary/1")
    assert entry is not None
    assert (entry.experiment, entry.importance) == (1, 0.8)
    summaries = [r.lsn for r in held.records("put") if r.text("tier") == "history"]
    assert summaries[0] < min(r.lsn for r in held.records("delete"))


def test_an_experiment_that_leaves_bit_by_bit_is_summed_up_while_it_is_whole(hold: Hold) -> None:
    held = hold({"recent": Keep(count=2, demote_to="history"), "history": Keep()})
    held.context.experiment = 1
    for key in "abcd":
        held.tier.put(key, "x")
    assert keys(held) == ["c", "d"]
    assert list(held.tiers["history"].get("summary/1")["keys"]) == ["a", "b", "c"]
    assert [r.text("key") for r in held.records("put")].count("summary/1") == 1
    assert not held.records("update")


def test_the_tier_below_has_numbers_of_its_own(hold: Hold) -> None:
    held = hold(TWO)
    demoted(held, experiments=4)
    held.context.experiment = 9
    held.tier.put("more", 1)
    assert keys(held, "history") == ["summary/2", "summary/3", "summary/4"]


def test_an_outcome_that_nobody_knows_is_summed_up_by_what_was_held(hold: Hold) -> None:
    held = hold(TWO)
    for number in (1, 2):
        held.context.experiment = number
        held.tier.put(f"result/{number}", "x" * 5000)
    summary = held.tiers["history"].get("summary/1")
    assert (summary["experiment"], summary["entries"]) == (1, 1)
    assert summary["keys"]["result/1"] == summary["bytes"] > 5000


def test_a_run_may_sum_up_in_its_own_way_wherever_the_values_are(hold: Hold) -> None:
    def summarize(entries: list[Entry]) -> Any:
        assert all(entry.value is not ABSENT for entry in entries)
        return {entry.key: len(entry.value) for entry in entries}

    held = hold(TWO, summarize=summarize)
    held.context.experiment = 1
    held.tier.put("input/1", "x" * 9000)
    held.tiers.purge(how="reclaim", cause="operator")
    held.context.experiment = 2
    held.tier.put("input/2", "x")
    assert held.tiers["history"].get("summary/1") == {"input/1": 9000}


def failing(entries: list[Entry]) -> Any:
    raise RuntimeError("no idea")


@pytest.mark.parametrize("summarize", [lambda _: None, lambda _: float("nan"), failing])
def test_a_summary_that_cannot_be_had_is_replaced_by_the_plain_one(
    hold: Hold, summarize: Any
) -> None:
    held = hold(TWO, summarize=summarize)
    assert demoted(held) == {"experiment": 1, "title": "try 1", "status": "kept"}


def test_nothing_goes_whose_summary_cannot_be_written(
    hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = hold(TWO)
    held.context.experiment = 1
    held.tier.put("result/1", 1)
    append = held.log.append

    def full(kind: str, members: dict[str, Any], receipt: Receipt) -> int:
        if members.get("tier") == "history":
            raise LogError("no space left")
        return append(kind, members, receipt)

    monkeypatch.setattr(held.log, "append", full)
    held.context.experiment = 2
    with pytest.raises(LogError, match="no space left"):
        held.tier.put("result/2", 1)
    assert keys(held) == ["result/1", "result/2"]
    monkeypatch.setattr(held.log, "append", append)
    held.tiers.experiment_ended()
    assert (keys(held), keys(held, "history")) == (["result/2"], ["summary/1"])
