"""What an agent states wrongly is refused at the call, with nothing logged: a record that no
recovery takes would cost all records behind it."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from memwatch.agent import Keep, Run, RunOptions, Source
from memwatch.domain.errors import UnkeepableError, UsageError
from tests.agent.memory.holding import Held

Hold = Callable[..., Held]

WRONG: list[dict[str, Any]] = [
    {"importance": nan},
    {"importance": "high"},
    {"importance": -0.1},
    {"importance": 5},
    {"importance": True},
    {"tokens": -1},
    {"tokens": 1.5},
    {"tokens": "7"},
    {"tokens": 1 << 70},
    {"ttl_s": nan},
    {"ttl_s": inf},
    {"ttl_s": -1},
    {"ttl_s": "1"},
    {"ttl_s": 1e18},
    {"experiment": "1"},
    {"experiment": -1},
    {"experiment": 1.5},
    {"experiment": True},
    {"source": "make"},
    {"source": Source(1)},  # type: ignore[arg-type] # what nobody checks before us
    {"source": Source("make", None)},  # type: ignore[arg-type]
    {"source": Source("make", {1: 2})},  # type: ignore[dict-item]
]


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_a_wrong_figure_is_refused_and_costs_no_later_record(
    hold: Hold, wrong: dict[str, Any]
) -> None:
    held = hold()
    with pytest.raises(UnkeepableError):
        held.tier.put("a", 1, **wrong)
    assert held.kinds() == []
    assert "a" not in held.tier


@pytest.mark.parametrize("key", ["\ud800", "k" * 4_001, "ä" * 2_001])
def test_a_key_that_no_record_can_hold_is_refused(hold: Hold, key: str) -> None:
    held = hold()
    with pytest.raises(UnkeepableError, match="key"):
        held.tier.put(key, 1)
    assert held.kinds() == []


@pytest.mark.parametrize("key", ["", "a\0b", "a\nb", "/", "../..", "\u2028", "k" * 4_000])
def test_any_other_text_is_a_key_and_recovered(tmp_path: Path, key: str) -> None:
    with Run.open(tmp_path / "run", RunOptions(agent="a")) as run:
        run.tiers["verified"].put(key, 1)
    with Run.open(tmp_path / "run", RunOptions(agent="a")) as run:
        assert run.recovered is not None
        assert not run.recovered.lost
        assert run.tiers["verified"].get(key) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"count": 0},
        {"count": 1.5},
        {"experiments": 0},
        {"experiments": -1},
        {"ttl_s": nan},
        {"ttl_s": -1},
        {"bytes": -1},
        {"importance": nan},
        {"importance": 7},
    ],
    ids=repr,
)
def test_a_tier_cannot_keep_what_means_nothing(tmp_path: Path, wrong: dict[str, Any]) -> None:
    options = RunOptions(agent="a", keep={"mine": Keep(**wrong)})
    with pytest.raises(UsageError, match=f"mine: {next(iter(wrong))}"):
        Run.open(tmp_path / "run", options)


@pytest.mark.parametrize("name", ["", "../up", "a/b", "a b", "x\0", "journal", "n" * 81, "\ud800"])
def test_a_tier_that_no_checkpoint_can_name_is_refused_when_the_run_opens(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(UsageError, match="no name for a tier"):
        Run.open(tmp_path / "run", RunOptions(agent="a", keep={name: Keep()}))


@pytest.mark.parametrize(
    "wrong",
    [
        {"memory_limit_bytes": 0},
        {"memory_limit_bytes": 1.5},
        {"share_cap": 0},
        {"share_cap": 30},
        {"share_cap": nan},
        {"sample_s": 0},
        {"sample_s": nan},
        {"sample_s": inf},
        {"durability": "sometimes"},
    ],
    ids=repr,
)
def test_an_option_that_cannot_be_meant_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        RunOptions(agent="a", **wrong)


def test_arguments_that_change_after_the_put_make_what_was_logged(hold: Hold) -> None:
    held = hold(builders={"repeat": lambda n, item: [item[0]] * n})
    args = {"n": 2, "item": ["x"]}
    held.tier.put("a", ["x", "x"], source=Source("repeat", args))
    args["n"] = 3
    args["item"][0] = "y"  # type: ignore[index] # it is a list
    held.tiers.purge(cause="pressure")
    assert held.tier.get("a") == ["x", "x"]
    assert held.state() == held.replay()
