"""A start on a directory with a past: nothing is lost, and what was open is settled."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from memwatch.agent import (
    Cadence,
    CallInDoubtError,
    RecoveryError,
    Run,
    RunOptions,
    recover,
)
from memwatch.wal.manifest import parse_run
from tests.agent.reading import kinds, read_log

ROOT = Path(__file__).resolve().parents[2]
NEVER = Cadence(incremental_experiments=10**6, incremental_s=1e9, full_s=1e9)


class Finding(Struct, frozen=True):
    score: float
    data: bytes


def options(path: Path, cadence: Cadence = NEVER, **more: Any) -> RunOptions:
    return RunOptions(
        agent="tester",
        types=(Finding,),
        builders={"squares": lambda n: [i * i for i in range(n)]},
        workspace=path / "space",
        cadence=cadence,
        **more,
    )


AGENT = """
import os, signal, sys
from pathlib import Path
from memwatch.agent import Cadence, Run
from tests.agent.test_restart import NEVER, Finding, options
path = Path(sys.argv[1])
def die(): os.kill(os.getpid(), signal.SIGKILL)
run = Run.open(path / "run", options(path, %s))
"""


def killed(path: Path, code: str, cadence: str = "NEVER") -> None:
    """Run an agent that kills itself."""
    program = AGENT % cadence + textwrap.dedent(code) + "\ndie()\n"
    done = subprocess.run([sys.executable, "-c", program, str(path)], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL


def opened(path: Path) -> Run:
    return Run.open(path / "run", options(path))


def records(path: Path, kind: str) -> list[dict[str, Any]]:
    return [r.members for r in read_log(path / "run/wal")[0] if r.kind == kind]


def test_a_new_run_recovers_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as run:
        assert run.recovered is None
    assert "recovery" not in kinds(tmp_path / "run")


def test_values_phase_and_counts_are_back(tmp_path: Path) -> None:
    killed(
        tmp_path,
        """
        with run.experiment("one", "exploration"):
            run.tiers["recent"].put("small", {"a": [1, 2]})
            run.tiers["recent"].put("large", Finding(0.5, bytes(20_000)))
        run.checkpoints.take("full")
        with run.experiment("two", "accumulation"):
            run.tiers["workspace"].build("squares", "squares", n=9)
            run.tiers["verified"].put("best", "x" * 9_000, importance=1.0, tokens=7)
            run.tiers["recent"].delete("small")
            run.tiers["recent"].put("small", {"a": [1, 2, 3]})
        """,
    )
    with opened(tmp_path) as run:
        report = run.recovered
        assert report is not None
        assert (report.lossy, report.lost) == (False, ())
        assert run.experiments == 2
        tiers = run.tiers
        assert tiers["recent"].get("small") == {"a": [1, 2, 3]}
        assert tiers["recent"].get("large") == Finding(0.5, bytes(20_000))
        assert tiers["workspace"].get("squares") == [i * i for i in range(9)]
        assert tiers["verified"].get("best") == "x" * 9_000
        best = tiers["verified"].entry("best")
        assert best is not None
        assert (best.importance, best.tokens) == (1.0, 7)
        with run.experiment("three", "accumulation") as experiment:
            assert experiment.number == 3
        (told,) = records(tmp_path, "recovery")
        assert told["records"] == report.records > 0
        assert told["lost"] == []
        assert set(told["terms"]) == {"load", "read", "replay"}
        assert told["terms"]["load"]["records"] == 2
        assert told["terms"]["read"]["bytes"] == told["terms"]["replay"]["bytes"] > 0
        assert told["terms"]["replay"]["records"] == report.records
        spent_us = sum(term["us"] for term in told["terms"].values())
        assert 0 < spent_us <= told["duration_us"] + 2
        assert told["state_bytes"] == report.memory_bytes > 1_000


def test_a_start_says_how_long_its_process_was_there_unless_it_began_a_run_before(
    tmp_path: Path,
) -> None:
    killed(
        tmp_path,
        """
        Run.open(path / "second", options(path)).close()
        """,
    )
    (first,) = records(tmp_path, "run.begin")
    assert 0 < first["up_us"] < 60_000_000
    second = next(r for r in read_log(tmp_path / "second/wal")[0] if r.kind == "run.begin")
    assert "up_us" not in second.members


def test_a_first_start_killed_while_it_wrote_run_json_does_not_spoil_the_directory(
    tmp_path: Path,
) -> None:
    with opened(tmp_path) as run:
        run.tiers["verified"].put("a", 1)
    manifest = tmp_path / "run/run.json"
    for name in ("blobs", "checkpoints"):
        assert not (tmp_path / "run" / name).exists()
    manifest.rename(manifest.with_name(".run.json.77.draft"))
    with opened(tmp_path) as run:
        assert not list(run.path.glob(".*"))


def test_what_was_open_ends_as_crashed(tmp_path: Path) -> None:
    killed(tmp_path, 'run.experiment("one", "exploration").__enter__()')
    with opened(tmp_path) as run:
        assert run.current is None
        begin = [at for at, kind in enumerate(kinds(run.path)) if kind == "run.begin"][-1]
        assert kinds(run.path)[begin:][:3] == ["run.begin", "recovery", "experiment.end"]
        (end,) = records(tmp_path, "experiment.end")
        assert (end["x"], end["status"]) == (1, "crashed")
        with run.experiment("again", "exploration") as experiment:
            assert experiment.number == 2


def test_many_kills_in_a_row_lose_nothing(tmp_path: Path) -> None:
    for number in range(4):
        killed(
            tmp_path,
            f"""
            assert len(run.tiers["verified"]) == {number}
            run.experiment("one", "p").__enter__()
            run.tiers["verified"].put("key/{number}", {number})
            if {number} == 2: run.checkpoints.take("full")
            """,
        )
    with opened(tmp_path) as run:
        keys = [entry.key for entry in run.tiers["verified"].entries()]
        assert keys == [f"key/{number}" for number in range(4)]
        assert run.experiments == 4
    ends = records(tmp_path, "experiment.end")  # the older ones went with their checkpoint
    assert {end["status"] for end in ends} == {"crashed"}
    assert ends[-1]["x"] == 4


def test_paid_calls_are_not_repeated_and_files_are_put_back(tmp_path: Path) -> None:
    killed(
        tmp_path,
        """
        run.experiment("one", "p").__enter__()
        run.call("model", {"ask": 1}, lambda: {"answer": 42})
        run.write_file("a/report.txt", "first")
        run.write_file("kept.txt", "kept")
        run.call("model", {"ask": 2}, die)
        """,
    )
    (tmp_path / "space/a/report.txt").unlink()
    (tmp_path / "space/kept.txt").write_text("by hand")
    with opened(tmp_path) as run:
        assert run.recovered is not None
        states = {file.path: file.state for file in run.recovered.files}
        assert states == {"a/report.txt": "put back", "kept.txt": "changed"}
        assert (tmp_path / "space/a/report.txt").read_text() == "first"
        with pytest.raises(CallInDoubtError), run.experiment("one", "p"):
            run.call("model", {"ask": 2}, pytest.fail)
        with run.experiment("one", "p"):
            assert run.call("model", {"ask": 1}, pytest.fail) == {"answer": 42}
            assert run.call("model", {"ask": 2}, lambda: "now", in_doubt="repeat") == "now"
        run.delete_file("kept.txt")
    with opened(tmp_path) as run:
        assert run.recovered is not None
        assert run.recovered.files == ()
        assert run.call("model", {"ask": 1}, lambda: "new") == "new", "settled"


def test_a_loss_is_told_and_the_next_start_does_not_meet_it_again(tmp_path: Path) -> None:
    with opened(tmp_path) as run:
        for number in range(3):
            with run.experiment("one", "p"):
                run.tiers["verified"].put(f"key/{number}", number)
    (segment,) = (tmp_path / "run/wal").iterdir()
    text = bytearray(segment.read_bytes())
    at = text.index(b'"key":"key/1"')
    text[at + 8 : at + 9] = b"X"
    segment.write_bytes(bytes(text))
    with opened(tmp_path) as run:
        assert run.recovered is not None
        assert run.recovered.lossy
        assert [entry.key for entry in run.tiers["verified"].entries()] == ["key/0"]
        assert records(tmp_path, "recovery")[0]["lost"]
        assert records(tmp_path, "checkpoint.commit")[-1]["kind"] == "full"
    with opened(tmp_path) as run:
        assert run.recovered is not None
        assert not run.recovered.lossy
        assert "key/0" in run.tiers["verified"]
        with run.experiment("one", "p") as experiment:
            assert experiment.number == 4, "numbers that were given stay given"


def test_a_log_that_is_gone_leaves_the_newest_full_checkpoint_and_gives_no_number_twice(
    tmp_path: Path,
) -> None:
    with opened(tmp_path) as run:
        run.tiers["verified"].put("a", 1)
        run.checkpoints.take("full")
        run.tiers["verified"].put("b", 2)
        last = run.log.last_lsn
    for segment in (tmp_path / "run/wal").iterdir():
        segment.unlink()
    with opened(tmp_path) as run:
        assert run.recovered is not None
        (lost,) = run.recovered.lost
        assert "the log is gone; the state is that of full-" in lost
        assert dict(recover(tmp_path / "run")[0]["verified"]) == {"a": 1}
        assert run.log.last_lsn > last - 2
        assert read_log(tmp_path / "run/wal")[0][0].lsn > 3
    assert recover(tmp_path / "run")[1].lost == ()


def test_a_run_whose_manifest_is_gone_goes_on_under_its_name(tmp_path: Path) -> None:
    with opened(tmp_path) as run:
        run.tiers["verified"].put("a", 1)
    (tmp_path / "run/run.json").unlink()
    with opened(tmp_path) as again:
        assert again.id == run.id
        assert again.tiers["verified"].get("a") == 1


def test_starts_that_die_before_any_safe_point_do_not_pile_up(tmp_path: Path) -> None:
    for _ in range(6):
        killed(tmp_path, 'run.experiment("one", "p").__enter__()', "Cadence()")
    kinds_taken = [record["kind"] for record in records(tmp_path, "checkpoint.commit")]
    assert kinds_taken == ["full", "incremental"]


def test_two_runs_in_one_directory_are_refused_and_the_lock_is_free_again(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with Run.open(tmp_path / name, options(tmp_path)) as run:
            run.tiers["verified"].put("a", name)
            run.checkpoints.take("full")
    manifest = tmp_path / "one/run.json"
    other = parse_run(manifest.read_bytes()).run_id
    manifest.write_bytes((tmp_path / "two/run.json").read_bytes())
    for _ in range(2):
        with pytest.raises(RecoveryError):
            Run.open(tmp_path / "one", options(tmp_path))
    assert other


def test_a_recovery_writes_nothing(tmp_path: Path) -> None:
    killed(tmp_path, 'run.tiers["verified"].put("a", 1); run.checkpoints.take("full")')
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    states = [recover(tmp_path / "run", types=(Finding,))[0] for _ in range(2)]
    assert states[0].hashes() == states[1].hashes()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
