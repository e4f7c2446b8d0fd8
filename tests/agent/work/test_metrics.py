"""Whatever an agent reports of an experiment, its end is logged and retention goes on."""

from __future__ import annotations

from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from memwatch.agent import Run, RunOptions
from tests.agent.reading import read_log


class Scalar:
    """As numpy and torch have them."""

    def __float__(self) -> float:
        return 0.25

    def __repr__(self) -> str:
        return "Scalar()"


@pytest.mark.parametrize(
    ("value", "logged"),
    [
        (1, 1),
        (True, True),
        (0.5, 0.5),
        ("good", "good"),
        (None, None),
        (nan, None),
        (-inf, None),
        (Scalar(), 0.25),
        (1 << 80, float(1 << 80)),
        (10**400, "1" + "0" * 198 + "…"),
        ({1, 2}, "{1, 2}"),
        ("half \ud800", "half ?"),
    ],
    ids=repr,
)
def test_the_end_of_an_experiment_is_logged_with_any_metric(
    tmp_path: Path, value: Any, logged: Any
) -> None:
    run = Run.open(tmp_path / "run", RunOptions(agent="a"))
    with run, run.experiment("one") as experiment:
        experiment.metrics["loss"] = value
    end = next(r for r in read_log(tmp_path / "run/wal")[0] if r.kind == "experiment.end")
    assert end.members["metrics"] == {"loss": logged}


@pytest.mark.parametrize("metrics", [{(1, 2): 3}, None, [1], {"\ud800": 1}], ids=repr)
def test_it_is_logged_when_the_metrics_are_none(tmp_path: Path, metrics: Any) -> None:
    run = Run.open(tmp_path / "run", RunOptions(agent="a"))
    with run, run.experiment("one") as experiment:
        experiment.metrics = metrics
    assert "experiment.end" in [record.kind for record in read_log(tmp_path / "run/wal")[0]]


def test_an_experiment_whose_loss_is_nan_is_summed_up(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run", RunOptions(agent="a")) as run:
        for number in range(8):
            with run.experiment("one") as experiment:
                run.tiers["recent"].put(f"result/{number}", number)
                experiment.metrics["loss"] = nan
        assert run.tiers["history"].get("summary/1")["metrics"] == {"loss": None}
