"""The engine in this process: its tiers hold what tracemalloc sees."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from memwatch.agent import Cadence, Keep, Run, RunOptions
from memwatch.demo.corpus import Corpus, read_corpus
from memwatch.demo.engine import Engine, HardStop, Pace, Stopped
from memwatch.demo.leak import Leak
from memwatch.demo.results import Metrics, Result, Verified
from memwatch.demo.search import EXPLORATIONS, Search
from memwatch.domain.clock import SystemClock
from tests.agent.reading import read_log

OPTIONS = RunOptions(
    agent="demo",
    keep={
        "workspace": Keep(groups=60),
        "recent": Keep(groups=5),
        "verified": Keep(),
        "history": Keep(groups=20),
    },
    cadence=Cadence(incremental_experiments=1000, full_experiments=1000),
)
CORPUS = read_corpus(slices=2, slice_bytes=400_000)


def an_engine(run: Run, limit_bytes: int = 1 << 40, corpus: Corpus = CORPUS) -> Engine:
    search = Search(1, len(corpus.slices))
    engine = Engine(run, corpus, search, Leak(run.tiers, SystemClock(), run.record), limit_bytes)
    engine.pace = Pace(core_share=1.0, step_s=0.0, experiment_s=0.0)
    return engine


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with Run.open(tmp_path / "run", OPTIONS) as opened:
        yield opened


def test_tiers_hold_what_they_should_through_all_phases(run: Run) -> None:
    engine = an_engine(run)
    for _ in range(60):
        engine.next_experiment()
    tiers = run.tiers
    results = [e.value for e in tiers["recent"].entries() if isinstance(e.value, Result)]
    assert len(results) == 5
    assert len(tiers["workspace"]) == 0
    history = [e.value for e in tiers["history"].entries()]
    assert len(history) == 20
    assert all(isinstance(past, Metrics) for past in history)
    whole = [past.experiment for past in history if past.status != "failed"]
    assert max(whole) < results[0].experiment
    verified = [e.value for e in tiers["verified"].entries()]
    assert verified
    assert all(isinstance(record, Verified) for record in verified)
    records = read_log(run.path / "wal")[0]
    phases = {r.text("phase") for r in records if r.kind == "experiment.begin"}
    assert phases == {"exploration", "accumulation", "verification"}
    statuses = [r.text("status") for r in records if r.kind == "experiment.end"]
    assert {"kept", "discarded", "failed", "done"} >= set(statuses)
    checks = [r.members["metrics"] for r in records if "whole" in r.members.get("metrics", {})]
    assert checks
    assert all(check["whole"] == check["checked"] > 0 for check in checks)


def test_bytes_of_the_tiers_agree_with_tracemalloc(run: Run) -> None:
    # A slice longer than every chunk: the whole of a text would not be copied when it is cut.
    corpus = read_corpus(slices=1, slice_bytes=1_200_000)
    engine = an_engine(run, corpus=corpus)
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(EXPLORATIONS):
            engine.next_experiment()
        gc.collect()
        traced = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(run.tiers["recent"]) == 10
    assert sum(tier.bytes for tier in run.tiers.values()) == pytest.approx(traced, rel=0.10)


def test_the_limit_is_hard(run: Run) -> None:
    with pytest.raises(HardStop):
        an_engine(run, limit_bytes=1).work()


def test_it_stops_between_two_steps(run: Run) -> None:
    engine = an_engine(run)
    engine.stop.set()
    with pytest.raises(Stopped):
        engine.work()
    ends = [r.text("status") for r in read_log(run.path / "wal")[0] if r.kind == "experiment.end"]
    assert ends == ["aborted"]
