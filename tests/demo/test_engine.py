"""The engine in this process: its tiers hold what tracemalloc sees."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from memwatch.agent import Cadence, Run, RunOptions
from memwatch.config.load import load_profile
from memwatch.demo.__main__ import run_options
from memwatch.demo.corpus import Corpus, read_corpus
from memwatch.demo.engine import NO_REST, Engine, HardStop, Stopped
from memwatch.demo.leak import Leak
from memwatch.demo.results import Metrics, Packed, Result, Verified
from memwatch.demo.search import EXPLORATIONS
from memwatch.domain.clock import SystemClock
from tests.agent.reading import read_log

CORPUS = read_corpus(slices=2, slice_bytes=400_000)
NEVER = Cadence(incremental_experiments=1000, full_experiments=1000)


def options(corpus: Corpus = CORPUS, cadence: Cadence = NEVER) -> RunOptions:
    usual = run_options(load_profile("demo"), 300_000_000, corpus)
    return structs.replace(usual, cadence=cadence)


def an_engine(run: Run, limit_bytes: int = 1 << 40, corpus: Corpus = CORPUS) -> Engine:
    leak = Leak(run.tiers, SystemClock(), run.record)
    engine = Engine(run, corpus, leak, seed=1, limit_bytes=limit_bytes)
    engine.pace = NO_REST
    return engine


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with Run.open(tmp_path / "run", options()) as opened:
        yield opened


def test_tiers_hold_what_they_should_through_all_phases(run: Run) -> None:
    engine = an_engine(run)
    for _ in range(60):
        engine.next_experiment()
    tiers = run.tiers
    recent = tiers["recent"].entries()
    results = [e.value for e in recent if isinstance(e.value, Result)]
    inputs = [entry for entry in recent if entry.key.startswith("input/")]
    assert len(inputs) == 5
    for result in results:
        packed = tiers["recent"].entry(f"packed/{result.experiment}")
        assert packed is not None
        assert packed.rebuildable == (result.status == "discarded")
    assert len(results) == 5
    assert all(isinstance(run.tiers["recent"].peek(e.key), tuple) for e in inputs)
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


def test_bytes_of_the_tiers_agree_with_tracemalloc(tmp_path: Path) -> None:
    # A slice longer than every chunk: the whole of a text would not be copied when it is cut.
    corpus = read_corpus(slices=1, slice_bytes=1_200_000)
    with Run.open(tmp_path / "run", options(corpus)) as run:
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
        held = sum(tier.bytes for tier in run.tiers.values())
        assert len(run.tiers["recent"]) == 15
    assert held == pytest.approx(traced, rel=0.10)


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


def test_a_second_start_goes_on_with_all_that_the_first_one_knew(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run", options(cadence=Cadence())) as run:
        first = an_engine(run)
        first.work(20)
        state = first.search.state
        known = {name: [e.key for e in tier.entries()] for name, tier in run.tiers.items()}
        verified = [run.tiers["verified"].get(key) for key in known["verified"]]
        assert verified
    with Run.open(tmp_path / "run", options()) as run:
        assert run.recovered is not None
        assert not run.recovered.lossy
        second = an_engine(run)
        assert second.search.state == state
        assert {n: [e.key for e in tier.entries()] for n, tier in run.tiers.items()} == known
        assert [run.tiers["verified"].get(key) for key in known["verified"]] == verified
        result = next(key for key in known["recent"] if key.startswith("result/"))
        assert isinstance(run.tiers["recent"].get(result), Result)
        assert isinstance(run.tiers["recent"].get(result.replace("result", "packed")), Packed)
        chunks = run.tiers["recent"].get(result.replace("result", "input"))
        assert b"".join(chunks) in CORPUS.slices, "made again from the corpus"
        second.work(1)
        assert run.experiments == 21
