"""The demo as a process of its own: real memory, real checkpoints, a real leak, a clean end."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from memwatch.agent import recover
from memwatch.demo.engine import own_rss_bytes
from memwatch.demo.results import TYPES, SearchState
from memwatch.domain.clock import SystemClock
from memwatch.domain.record import Record
from memwatch.wal.manifest import parse_run
from tests.agent.control.sending import a_command, ack_of, publish, state_of
from tests.agent.reading import read_log
from tests.waiting import until

pytestmark = pytest.mark.e2e


@contextmanager
def demo(run_dir: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "memwatch.demo", str(run_dir), *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            process.kill()


def records(run_dir: Path, kind: str) -> list[Record]:
    if not (run_dir / "wal").is_dir():
        return []
    try:
        found, faults = read_log(run_dir / "wal")
    except FileNotFoundError:  # a segment was pruned while we read: look again
        return records(run_dir, kind)
    assert faults == []
    return [record for record in found if record.kind == kind]


def rss_bytes(process: subprocess.Popen[bytes]) -> int:
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * 4096


def unaccounted_bytes(run_dir: Path) -> int:
    """Return what the newest sample tells of the process and of no tier."""
    sample = records(run_dir, "sample")[-1].members
    in_tiers = sum(tier["bytes"] for tier in sample["tiers"].values())
    return int(sample["process"]["rss_bytes"] - in_tiers)


def order(run_dir: Path, command_id: str, op: str, args: dict[str, Any]) -> None:
    run_id = parse_run((run_dir / "run.json").read_bytes()).run_id
    publish(run_dir, a_command(SystemClock(), command_id, op=op, args=args, run_id=run_id))


def test_a_short_night(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    with demo(run_dir) as process:
        until(lambda: len(records(run_dir, "experiment.end")) >= 3, deadline_s=40)
        until(lambda: records(run_dir, "checkpoint.commit"), deadline_s=40)
        manifest = parse_run((run_dir / "run.json").read_bytes())
        assert (manifest.pid, manifest.profile) == (process.pid, "demo")
        assert manifest.limits == {"memory_bytes": 300_000_000}
        assert {"checkpoint", "purge", "leak"} <= set(manifest.ops)

        order(run_dir, "full", "checkpoint", {"kind": "full"})
        until(lambda: state_of(run_dir, "full") == "done")
        result = (ack_of(run_dir, "full") or {})["result"]
        assert (run_dir / result["path"] / "MANIFEST.json").is_file()

        assert rss_bytes(process) < 150_000_000
        before = rss_bytes(process)
        order(run_dir, "on", "leak", {"mb_per_min": 2000})
        until(lambda: rss_bytes(process) > before + 60_000_000, deadline_s=40)
        until(lambda: unaccounted_bytes(run_dir) > 60_000_000, deadline_s=40)
        order(run_dir, "off", "leak", {"mb_per_min": 0})
        until(lambda: state_of(run_dir, "off") == "done")
        assert (ack_of(run_dir, "off") or {})["result"]["freed_bytes"] > 50_000_000
        until(lambda: rss_bytes(process) < before + 40_000_000)

        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=5) == 0
        assert process.communicate() == (b"", b"")
    (end,) = records(run_dir, "run.end")
    assert end.text("status") == "stopped"


def test_killed_at_any_time_it_goes_on_where_it_was(tmp_path: Path) -> None:
    words = ("--no-rest", "--seed", "7", "--experiments")
    experiments = 0
    for more in (4, 9, 6):
        kill_after(tmp_path, experiments + more, *words, "1000")
        before = state_of_disk(tmp_path)
        with demo(tmp_path, *words, "2") as process:
            assert process.wait(timeout=50) == 0
        after = state_of_disk(tmp_path)
        (recovery,) = records(tmp_path, "recovery")[-1:]
        assert recovery.members["lost"] == []
        ended = {r.experiment: r.text("status") for r in records(tmp_path, "experiment.end")}
        if before.open is not None:
            assert ended[before.open] == "crashed"
        assert after.experiments == before.experiments + 2
        assert after.search.seed == 7
        assert after.search.proposals >= before.search.proposals
        assert before.verified <= after.verified
        if after.search.slice == before.search.slice:
            assert after.search.best_score >= before.search.best_score
        experiments = after.experiments
    begun = [record.experiment for record in records(tmp_path, "experiment.begin")]
    assert begun == list(range(begun[0] or 0, experiments + 1)), "each number once, none left out"


def kill_after(run_dir: Path, experiments: int, *options: str) -> None:
    with demo(run_dir, *options) as process:
        until(lambda: newest(run_dir) > experiments, deadline_s=50)
        process.kill()
        process.wait()


class OnDisk(NamedTuple):
    """What a recovery finds."""

    experiments: int
    open: int | None
    search: SearchState
    verified: set[str]


def state_of_disk(run_dir: Path) -> OnDisk:
    state, report = recover(run_dir, types=TYPES)
    assert not report.lossy, report.lost
    search = state["search"]["state"]
    assert isinstance(search, SearchState)
    return OnDisk(state.experiments, state.open, search, set(state.get("verified", ())))


def newest(run_dir: Path) -> int:
    return max((record.experiment or 0 for record in records(run_dir, "experiment.end")), default=0)


def test_its_own_limit_ends_it_hard(tmp_path: Path) -> None:
    limit = own_rss_bytes() + 10_000_000  # this test process is larger than a young demo
    with demo(tmp_path, "--leak", "9000", "--limit", f"{limit}") as process:
        assert process.wait(timeout=50) == 137
    (error,) = records(tmp_path, "error")
    assert error.members["kind"] == "memory_limit"
    (end,) = records(tmp_path, "run.end")
    assert end.text("status") == "crashed"
    assert "the demo's own hard stop" in end.text("reason")


def test_it_ends_when_its_time_is_over(tmp_path: Path) -> None:
    with demo(tmp_path, "--seconds", "1") as process:
        assert process.wait(timeout=30) == 0
    assert records(tmp_path, "run.end")[0].text("status") == "stopped"


@pytest.mark.parametrize(
    "options", [("--profile", "no-such-profile"), ("--leak", "-5"), ("--leak-in", "attic")]
)
def test_what_cannot_be_is_one_sentence(tmp_path: Path, options: tuple[str, ...]) -> None:
    with demo(tmp_path / "run", *options) as process:
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (2, b"")
    assert err.count(b"\n") == 1
    assert b"Traceback" not in err
