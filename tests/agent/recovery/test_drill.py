"""A drill decodes everything, says whether the state is the one that was logged, writes nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from memwatch.agent.recovery.drill import Drill, drill
from memwatch.agent.recovery.recover import recover
from tests.agent.recovery.building import Builder, a_run, sha
from tests.agent.recovery.looking import says, tree


@pytest.fixture
def run(tmp_path: Path) -> Builder:
    return a_run(tmp_path / "run")


def test_all_is_decoded_and_held_against_the_log(run: Builder) -> None:
    before = tree(run.path)
    done = drill(run.path)
    assert tree(run.path) == before
    assert (done.matches, done.lossy, done.last_lsn) == (True, False, run.lsn)
    assert done.values == sum(map(len, run.kept.values()))
    assert set(done.checked) == set(run.kept)
    terms = {term.name: term for term in done.terms}
    assert list(terms) == ["load", "blobs", "read", "replay", "decode"]
    texts = [msgspec.json.encode(v) for tier in run.kept.values() for _, v in tier.values()]
    assert terms["decode"].bytes == sum(map(len, texts))
    assert terms["decode"].records == done.values
    assert terms["load"].records > 0
    assert terms["replay"].records >= done.records
    taken = sum(term.seconds for term in done.terms)
    assert 0 < taken - terms["decode"].seconds <= done.total_s
    assert done.bytes == sum(terms[name].bytes for name in ("load", "blobs", "read"))
    assert done.state_bytes == recover(run.path)[1].memory_bytes
    assert done.memory_bytes > 1_000_000


def test_reading_the_blobs_of_values_is_a_term_of_its_own(run: Builder) -> None:
    state, report = recover(run.path)
    entries = [entry for tier in state.tiers.values() for entry in tier.values()]
    blobs = {run.path / "blobs" / e.blob.sha256 for e in entries if e.blob and not e.packed}
    assert blobs
    files = (run.path / "checkpoints" / str(report.full)).iterdir()
    terms = {term.name: term for term in drill(run.path).terms}
    assert terms["load"].bytes == sum(path.stat().st_size for path in files)
    assert terms["blobs"].bytes == sum(path.stat().st_size for path in blobs)
    assert terms["blobs"].records == len(blobs)


def test_the_start_of_the_process_counts_where_it_is_known(run: Builder) -> None:
    done = drill(run.path, start_s=100.0)
    assert (done.terms[0].name, done.terms[0].seconds) == ("start", 100.0)
    assert 100 < done.total_s < 200


def test_without_a_logged_hash_nothing_is_claimed(tmp_path: Path) -> None:
    run = Builder(tmp_path / "run")
    run.put("recent", "a", 1)
    done = drill(run.path)
    assert (done.matches, done.checked, done.lossy) == (None, {}, False)


def test_a_value_that_cannot_be_read_is_lost(run: Builder) -> None:
    path = run.path / "blobs" / sha(msgspec.json.encode({"big": "y" * 500}))
    path.write_bytes(path.read_bytes().replace(b"y", b"z"))
    done = drill(run.path)
    assert (done.matches, done.lossy) == (True, True)
    assert says(done.lost, "'second' of tier verified cannot be read", path.name)


def test_a_state_that_is_not_the_logged_one_does_not_match(tmp_path: Path) -> None:
    run = Builder(tmp_path / "run")
    run.put("recent", "a", 1)
    run.kept["recent"]["a"] = (run.lsn, 2)  # what the agent believed that it held
    run.delta().unlink()
    done = drill(run.path)
    assert (done.matches, done.lossy) == (False, True)
    assert says(done.lost, "tier recent is not what the run logged")


def test_in_a_process_of_its_own(run: Builder, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "memwatch.agent.recovery"]
    done = subprocess.run([*command, str(run.path)], capture_output=True, check=True, timeout=60)
    found = msgspec.json.decode(done.stdout, type=Drill)
    assert (found.matches, found.last_lsn) == (True, run.lsn)
    assert found.terms[0].name == "start"
    assert 0 < found.terms[0].seconds < found.total_s
    refused = subprocess.run(
        [*command, str(tmp_path / "none")], capture_output=True, text=True, check=False, timeout=60
    )
    assert refused.returncode == 2
    assert refused.stderr.endswith("holds no run: name a run directory\n")
