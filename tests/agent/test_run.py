"""A run from begin to end, as its log and its directory tell it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from memwatch.agent import Cadence, Operation, Run, RunOptions
from memwatch.domain.clock import SystemClock
from memwatch.domain.errors import TargetError, UsageError
from memwatch.host.lock import LockHeldError
from memwatch.wal.manifest import parse_run
from tests.agent.control.sending import a_command, publish, state_of
from tests.agent.reading import kinds, read_log
from tests.waiting import until

OPS = {"checkpoint", "purge", "retain", "reclaim", "abort_experiment", "end_run"}
"""What every run does on request."""
OPTIONS = RunOptions(agent="tester", memory_limit_bytes=300_000_000)


def test_the_directory_says_whose_it_is(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run"
    with Run.open(path, OPTIONS) as run:
        manifest = parse_run((path / "run.json").read_bytes())
        assert (manifest.run_id, manifest.agent, manifest.pid) == (run.id, "tester", os.getpid())
        assert set(manifest.ops) == OPS
        assert manifest.start_ticks > 0
        assert path.stat().st_mode & 0o077 == 0
    begin, *_, end = read_log(path / "wal")[0]
    assert (begin.kind, begin.members["limits"]) == ("run.begin", {"memory_bytes": 300_000_000})
    assert begin.text("boot") == manifest.boot_id
    assert (end.kind, end.text("status")) == ("run.end", "done")


def test_the_directory_says_when_checkpoints_come_and_what_stays(tmp_path: Path) -> None:
    options = RunOptions(agent="tester", cadence=Cadence(incremental_s=20, full_experiments=12))
    with Run.open(tmp_path / "run", options):
        manifest = parse_run((tmp_path / "run/run.json").read_bytes())
    assert manifest.cadence == {
        "incremental_experiments": 3,
        "incremental_s": 20,
        "full_experiments": 12,
        "full_s": 7200,
        "chain_bytes": 50_000_000,
    }
    assert manifest.retention == {
        "workspace": {"count": 200, "intermediate": True, "importance": 0.3},
        "recent": {"experiments": 5, "demote_to": "history", "importance": 0.7},
        "verified": {"delete": False, "importance": 1.0},
        "history": {"experiments": 20},
    }


def test_spans_are_logged_with_their_experiment(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run", OPTIONS) as run:
        with run.experiment("level 9", "exploration") as experiment:
            with run.step("prepare"), run.tool("compress") as call:
                call.bytes_out = 17
            experiment.status, experiment.metrics = "kept", {"ratio": 2.5}
        with pytest.raises(ZeroDivisionError), run.experiment("bad", "exploration"):
            raise ZeroDivisionError
        with pytest.raises(KeyboardInterrupt), run.experiment("cut short", "exploration"):
            raise KeyboardInterrupt
    records = {(r.experiment, r.kind): r.members for r in read_log(tmp_path / "run/wal")[0]}
    assert records[1, "experiment.begin"]["phase"] == "exploration"
    assert records[1, "tool.end"]["bytes_out"] == 17
    assert records[1, "tool.begin"]["id"] == records[1, "tool.end"]["id"]
    assert records[1, "experiment.end"]["metrics"] == {"ratio": 2.5}
    statuses = [records[number, "experiment.end"]["status"] for number in (1, 2, 3)]
    assert statuses == ["kept", "failed", "aborted"]
    assert (None, "run.end") in records


def test_experiments_do_not_nest(tmp_path: Path) -> None:
    with (
        Run.open(tmp_path / "run", OPTIONS) as run,
        run.experiment("one", "exploration"),
        pytest.raises(RuntimeError, match="experiment 1 has not ended"),
        run.experiment("two", "exploration"),
    ):
        pass


def test_aborted_experiments_do_not_count_failed_ones_do(tmp_path: Path) -> None:
    options = RunOptions(agent="tester", cadence=Cadence(incremental_experiments=2))
    with Run.open(tmp_path / "run", options) as run:
        for error in (KeyboardInterrupt, KeyboardInterrupt, ValueError):
            with pytest.raises(error), run.experiment("bad", "exploration"):
                raise error
        run.safe_point()
        assert "checkpoint.commit" not in kinds(run.path)
        with run.experiment("good", "exploration"):
            pass
        until(lambda: kinds(run.path)[-2:] == ["checkpoint.begin", "checkpoint.commit"])


def test_a_restart_goes_on_counting_in_the_same_run(tmp_path: Path) -> None:
    ids: set[str] = set()
    starts: set[str] = set()
    for _ in range(2):
        with Run.open(tmp_path / "run", OPTIONS) as run:
            ids.add(run.id)
            starts.add(run.start_id)
            for _ in range(2):
                with run.experiment("again", "exploration"):
                    pass
    begun = [r for r in read_log(tmp_path / "run/wal")[0] if r.kind == "experiment.begin"]
    assert [record.experiment for record in begun] == [1, 2, 3, 4]
    assert (len(ids), len(starts)) == (1, 2)


def test_a_second_agent_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run", OPTIONS) as run:
        before = run.log.last_lsn
        with pytest.raises(LockHeldError, match=f"process {os.getpid()}"):
            Run.open(tmp_path / "run", OPTIONS)
        assert run.log.last_lsn == before


@pytest.mark.parametrize("name", ["notes.txt", "run.json"])
def test_a_directory_that_is_something_else_stays_as_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(TargetError):
        Run.open(tmp_path, OPTIONS)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_an_exception_that_leaves_the_run_is_its_end(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="broken"), Run.open(tmp_path / "run", OPTIONS):
        raise ValueError("broken")
    end = read_log(tmp_path / "run/wal")[0][-1]
    assert (end.text("status"), end.text("reason")) == ("crashed", "ValueError: broken")


def test_commands_run_at_safe_points(tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = []

    def leak(args: dict[str, Any]) -> dict[str, Any]:
        asked.append(args)
        return {"ok": True}

    operations = {"leak": Operation(run=leak, args={"mb_per_min": "rate"})}
    with Run.open(tmp_path / "run", RunOptions(agent="t", operations=operations)) as run:
        clock = SystemClock()
        own = {"run_id": run.id}
        publish(run.path, a_command(clock, "l", op="leak", args={"mb_per_min": 5}, **own))
        publish(run.path, a_command(clock, "c", op="checkpoint", args={"kind": "full"}, **own))
        publish(run.path, a_command(clock, "x", op="checkpoint", args={"kind": "half"}, **own))

        def all_answered() -> bool:
            run.safe_point()
            return [state_of(run.path, name) for name in "lcx"] == ["done", "done", "refused"]

        until(all_answered)
        ack = json.loads((run.path / "control/ack/c.json").read_text())
        manifest = run.path / ack["result"]["path"] / "MANIFEST.json"
        assert manifest.exists()
        assert set(json.loads((run.path / "run.json").read_text())["ops"]) == OPS | {"leak"}
    assert asked == [{"mb_per_min": 5}]


def test_the_library_is_light() -> None:
    code = (
        "import sys; import memwatch.agent; "
        "print([m for m in sys.modules if m.split('.')[0] not in sys.stdlib_module_names])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in eval_list(out.stdout)}
    ours = {"memwatch", "msgspec", "typing_extensions", "__main__", "_distutils_hack"}
    assert loaded - ours <= {n for n in loaded if n.startswith(("__editable__", "_memwatch"))}


def eval_list(text: str) -> list[str]:
    """Return the names of a printed list."""
    return text.strip()[1:-1].replace("'", "").split(", ")


def test_all_that_a_user_has_to_catch_is_at_hand() -> None:
    import memwatch.agent as library
    from memwatch.domain import errors
    from memwatch.host import lock

    ours = {"StoreError", "SessionError", "ConfigError"}  # of the dashboard
    named = {name for name, value in vars(errors).items() if isinstance(value, type)} - ours
    for name in named:
        assert getattr(library, name) is getattr(errors, name)
        assert name in library.__all__
    assert library.LockHeldError is lock.LockHeldError
    assert all(hasattr(library, name) for name in library.__all__)


def test_an_open_that_is_refused_leaves_no_thread(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    wrong = RunOptions(agent="a", workspace=tmp_path / "run" / "inside")
    with pytest.raises(UsageError):
        Run.open(tmp_path / "run", wrong)
    left = set(threading.enumerate()) - before
    until(lambda: not any(thread.is_alive() for thread in left))
    Run.open(tmp_path / "run", RunOptions(agent="a")).close()
