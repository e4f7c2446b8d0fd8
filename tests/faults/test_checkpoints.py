"""Whatever befalls a checkpoint, the agent goes on and its state recovers to the last record."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from memwatch.agent.checkpoints.checkpointer import Kind, Outcome
from memwatch.agent.memory.entry import How
from memwatch.host.lock import RUN_LOCK, FileLock
from tests.agent.checkpoints.bench import Bench
from tests.faults.failing_files import OPERATIONS
from tests.faults.small_disk import forbid_growth, tmpfs
from tests.waiting import until

KINDS: tuple[Kind, ...] = ("full", "incremental", "experiment")


def work(bench: Bench, rounds: int = 3) -> None:
    """Change a little of everything."""
    recent = bench.tiers["recent"]
    for number in range(rounds):
        recent.put(f"small/{number}", {"n": number})
        recent.put("large", {"rows": [{"n": n, "text": "x" * 60} for n in range(100 + number)]})
    recent.delete("small/0")


@pytest.mark.parametrize("operation", sorted(set(OPERATIONS) - {"link"}))
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("kind", KINDS)
def test_an_operation_that_always_fails(
    tmp_path: Path, operation: str, error: int, kind: Kind
) -> None:
    bench = Bench(tmp_path)
    work(bench)
    assert bench.checkpoints.take("full").committed
    work(bench)
    for files in (bench.files, bench.blob_files):
        files.error = error
        files.fail_all(operation)
    outcomes = [bench.checkpoints.take(kind), bench.checkpoints.take("full")]
    assert all(outcome.committed or outcome.reason for outcome in outcomes)
    bench.check()
    bench.files.heal()
    bench.blob_files.heal()
    until(lambda: _goes_on(bench))
    work(bench)
    assert bench.checkpoints.take(kind).committed
    bench.check()
    bench.close()


def _goes_on(bench: Bench) -> bool:
    """A sync that failed is told with the next record; then the log goes on."""
    try:
        bench.context.record("note", {})
    except Exception:  # noqa: BLE001 - tried again until the deadline
        return False
    return True


def test_no_file_may_grow(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    work(bench)
    assert bench.checkpoints.take("full").committed
    with forbid_growth(os.getpid()):
        outcome = bench.checkpoints.take("full")
    assert (outcome.committed, "File too large" in outcome.reason) == (False, True)
    work(bench)
    assert bench.checkpoints.take("incremental").committed
    bench.check()
    bench.close()


def test_a_disk_that_fills_up_while_it_is_written(tmp_path: Path) -> None:
    with tmpfs(tmp_path, 3_000_000) as refusal:
        if refusal:
            pytest.skip(refusal)
        bench = Bench(tmp_path / "run")
        for number in range(40):
            bench.tiers["recent"].put(f"random/{number}", os.urandom(2_000))
        assert bench.checkpoints.take("full").committed
        ballast = tmp_path / "ballast"
        free = shutil.disk_usage(tmp_path).free
        ballast.write_bytes(b"x" * (free - 60_000))
        outcome = bench.checkpoints.take("full")
        assert not outcome.committed
        assert "No space left" in outcome.reason
        assert len(bench.names()) == 1, "nothing of it stays"
        bench.check()
        ballast.unlink()
        assert bench.checkpoints.take("full").committed
        bench.check()
        bench.close()


@pytest.mark.parametrize("kind", KINDS)
def test_the_directory_goes_while_it_is_written(tmp_path: Path, kind: Kind) -> None:
    bench = Bench(tmp_path)
    work(bench)
    bench.checkpoints.take("full")
    rename = bench.files.rename

    def remove_and_rename(*args: Any) -> None:
        shutil.rmtree(bench.folder)
        rename(*args)

    bench.files.rename = remove_and_rename  # type: ignore[assignment]  # a call as any other
    outcome = bench.checkpoints.take(kind)
    assert (outcome.committed, outcome.reason) == (False, "No such file or directory")
    bench.files.rename = rename
    assert bench.checkpoints.take(kind).kind == "full", "there is no base any more"
    bench.check()
    bench.close()


class Workers:
    """Threads that change everything, each under keys of its own."""

    def __init__(self, bench: Bench) -> None:
        self.failures: list[BaseException] = []
        self._bench = bench
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(name,)) for name in "ab"]

    def __enter__(self) -> Workers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _work(self, name: str) -> None:
        number = 0
        try:
            while not self._stop.wait(0.002):
                number += 1
                self._change(name, number)
        except BaseException as error:
            self.failures.append(error)
            raise

    def _change(self, name: str, number: int) -> None:
        tier, key = self._bench.tiers["recent"], f"{name}/{number % 7}"
        tier.put(key, {"n": number, "rows": [{"text": "x" * 50}] * (number % 70)})
        value = tier.get(key)
        value["rows"].append(number)
        tier.put(key, value)
        tier.build(f"{name}/built", "rows", n=number % 50)
        tier.put(f"{name}/gone", number)
        tier.delete(f"{name}/gone")
        if number % 5 == 0:
            how: How = "compress" if number % 10 else "least_accessed"
            self._bench.tiers.purge(how=how, target_bytes=3_000, cause="pressure")


def test_threads_that_change_everything_while_checkpoints_are_taken(tmp_path: Path) -> None:
    bench = Bench(tmp_path, builders={"rows": lambda n: list(range(n))})
    bench.context.experiment = 1
    outcomes: list[Outcome] = []
    with Workers(bench) as workers:
        for number in range(24):
            outcomes.append(bench.checkpoints.take(KINDS[number % 3]))
            _, report = bench.recover()
            assert not report.lossy, report.lost
            assert report.verified is not None
    assert workers.failures == []
    committed = [outcome for outcome in outcomes if outcome.committed]
    assert len(committed) > 16, [outcome.reason for outcome in outcomes]
    bench.check()
    assert bench.checkpoints.take("full").committed
    bench.check()
    bench.close()


def test_another_process_neither_writes_nor_sweeps(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    lock = FileLock.acquire(tmp_path / RUN_LOCK)
    draft = bench.path / "checkpoints" / ".full-00000000000000000001.draft"
    draft.mkdir(parents=True)
    code = (
        "import sys; from pathlib import Path; from memwatch.agent import Run, RunOptions\n"
        "Run.open(Path(sys.argv[1]), RunOptions(agent='second'))"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert second.returncode != 0
    assert f"held by process {os.getpid()}" in second.stderr
    assert draft.exists()
    lock.release()
    bench.close()
