"""What a guard asks for under pressure is done while the agent is paused or read-only (R8, R9)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memwatch.agent import Keep, ReadOnlyError, Run, RunOptions
from memwatch.domain.clock import SystemClock
from tests.agent.control.sending import a_command, a_hold, ack_of, publish, put_hold
from tests.agent.reading import read_log
from tests.waiting import until

OPTIONS = RunOptions(
    agent="tester",
    sample_s=3600.0,
    builders={"ones": lambda count: [1] * count},
    keep={"workspace": Keep(), "history": Keep(ttl_s=0.05), "verified": Keep(delete=False)},
)
TEXT = "every word counts " * 2_000


class Worker:
    """An agent at work in a thread of its own, as agents are; it gives up what is refused."""

    def __init__(self, path: Path) -> None:
        self.run = Run.open(path, OPTIONS)
        self.asked = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="worker", daemon=True)

    def _work(self) -> None:
        while not self._over.is_set():
            while self.run.mode not in ("running", "draining") and not self._over.is_set():
                self.run.safe_point()
                self._over.wait(0.01)
            if self._over.is_set():
                return
            try:
                self._experiment()
            except ReadOnlyError:
                self._over.wait(0.01)

    def _experiment(self) -> None:
        with self.run.experiment("endless"):
            self.run.tiers["workspace"].build("made", "ones", count=9)
            while not self._over.is_set():
                with self.run.step("look"):
                    self.run.tiers["workspace"].put("looks", self.run.log.last_lsn)
                self.run.safe_point()
                self._over.wait(0.01)

    def start(self) -> None:
        self._thread.start()
        until(lambda: self.run.current is not None)

    def ask(self, op: str, **args: Any) -> tuple[str, str, Any]:
        """Have something done as a guard asks for it; returns its last answer."""
        self.asked += 1
        name = f"c{self.asked}"
        by = {"uid": 0, "origin": "engine"}
        publish(
            self.run.path,
            a_command(SystemClock(), name, op=op, run_id=self.run.id, args=args, by=by),
        )
        final = ("done", "refused", "failed", "expired")
        until(lambda: (ack_of(self.run.path, name) or {}).get("state") in final)
        ack = ack_of(self.run.path, name) or {}
        return ack["state"], ack["detail"], ack["result"]

    def hold(self, op: str) -> Path:
        return put_hold(self.run.path, a_hold(op=op, run_id="any"), owner="engine")

    def close(self) -> None:
        self._over.set()
        self._thread.join(20)
        self.run.close("stopped")


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    worker = Worker(tmp_path / "run")
    for number in range(4):
        worker.run.tiers["verified"].put(f"v/{number}", {"text": f"{number} {TEXT}"})
    worker.run.tiers["history"].put("expired", TEXT)
    worker.start()
    yield worker
    worker.close()


def test_the_plan_of_intervene_in_its_order(worker: Worker) -> None:
    hold = worker.hold("pause")
    until(lambda: worker.run.mode == "draining")
    state, _, result = worker.ask("checkpoint", kind="experiment")
    assert state == "done"
    records = read_log(worker.run.path / "wal")[0]
    commit = [record for record in records if record.kind == "checkpoint.commit"][-1]
    assert (commit.text("id"), commit.members["persisted"]) == (result["id"], 1)
    state, _, result = worker.ask("purge", tier="verified", how="compress")
    assert (state, result["entries"], result["deleted"]) == ("done", 4, 0)
    hold.unlink()
    until(lambda: worker.run.mode == "running")


def test_the_plan_of_emergency_in_its_order(worker: Worker) -> None:
    number = worker.run.experiments
    state, _, result = worker.ask("abort_experiment", save="best_effort")
    assert (state, result["experiment"]) == ("done", number)
    assert (worker.run.path / result["saved"]["path"]).exists()
    hold = worker.hold("pause")
    until(lambda: worker.run.mode in ("draining", "paused"))
    assert worker.ask("purge", how="reclaim")[2]["persisted"] >= 4
    assert worker.ask("reclaim")[0] == "done"
    hold.unlink()


def test_the_plan_of_the_hard_limit_in_its_order(worker: Worker) -> None:
    worker.hold("read_only")
    until(lambda: worker.run.mode == "read_only")
    until(lambda: worker.run.current is None)  # its next change was refused
    state, _, result = worker.ask("abort_experiment", save="best_effort")
    assert (state, result["experiment"]) == ("done", None)
    assert (worker.run.path / result["saved"]["path"]).exists()
    state, _, result = worker.ask("purge", how="reclaim")
    assert (state, result["persisted"], result["deleted"]) == ("done", 5, 0)
    assert worker.ask("reclaim")[0] == "done"
    assert "expired" in worker.run.tiers["history"], "a read-only run loses no entry"
    assert worker.run.tiers["verified"].get("v/2")["text"].startswith("2 every")


@pytest.mark.parametrize("kind", ["incremental", "full", "experiment"])
@pytest.mark.parametrize("op", ["pause", "read_only"])
def test_a_held_run_takes_checkpoints(worker: Worker, op: str, kind: str) -> None:
    worker.hold(op)
    until(lambda: worker.run.mode in ("draining", "paused", "read_only"))
    state, detail, result = worker.ask("checkpoint", kind=kind)
    assert (state, detail) == ("done", "")
    assert (worker.run.path / result["path"]).exists()


@pytest.mark.parametrize("op", ["pause", "read_only"])
def test_a_held_run_heeds_what_it_is_to_keep(worker: Worker, op: str) -> None:
    hold = worker.hold(op)
    until(lambda: worker.run.mode in ("draining", "paused", "read_only"))
    state, _, result = worker.ask("retain", tier="verified", keep={"bytes": 40_000})
    assert (state, result["new"]) == ("done", {"bytes": 40_000})
    hold.unlink()
    until(lambda: worker.run.mode == "running")
    worker.run.tiers["verified"].put("v/9", TEXT)
    assert worker.run.tiers["verified"].bytes <= 40_000 + len(TEXT)


def test_an_experiment_that_changes_nothing_is_aborted_while_read_only(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run", OPTIONS) as run:
        with run.experiment("only looks"):
            put_hold(run.path, a_hold(op="read_only", run_id="any"))
            until(lambda: run.mode == "read_only")
            command = a_command(SystemClock(), "a1", op="abort_experiment", run_id=run.id)
            publish(run.path, command)

            def looks() -> bool:
                run.safe_point()
                return False

            until(looks)
            pytest.fail("the abort comes before it")
        assert (ack_of(run.path, "a1") or {})["state"] == "done"
        records = read_log(run.path / "wal")[0]
        ends = [r.text("status") for r in records if r.kind == "experiment.end"]
        assert ends == ["aborted"]
        assert run.mode == "read_only", "an abort lets nobody write again"
