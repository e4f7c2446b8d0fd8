"""A guard of a store that another program writes: what it tells, and that it leaves it alone."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.stage import Process, Stage, light
from tests.waiting import wait_for

pytestmark = pytest.mark.e2e
WRITER = Path(__file__).with_name("store_writer.py")
MB = 1_000_000


class Writer(Process):
    """A program that writes checkpoints as it is told."""

    def __init__(self, stage: Stage, kind: str, place: Path) -> None:
        popen = subprocess.Popen(
            [sys.executable, str(WRITER), kind, str(place)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        super().__init__(popen)
        self.place = place
        stage.processes.append(self)
        assert self._answer() == "ready"

    def ask(self, order: str, *arguments: Any) -> Any:
        assert self.popen.stdin is not None
        self.popen.stdin.write(json.dumps([order, *arguments]) + "\n")
        self.popen.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self.popen.stdout is not None
        return json.loads(self.popen.stdout.readline())


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


def contents(place: Path) -> dict[str, tuple[str, int, int]]:
    """Return what lies there: hash, mode and time of change of each file and folder."""
    return {
        str(path.relative_to(place)): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
            path.stat().st_mode,
            path.stat().st_mtime_ns,
        )
        for path in [place, *place.rglob("*")]
    }


def states(status: dict[str, Any]) -> dict[str, str]:
    return {one["id"]: one["state"] for one in status["checkpoints"]["newest"]}


def told(stage: Stage, place: Path) -> list[str]:
    return [event.text for event in stage.session(place).events(0, 100)]


def test_a_trainer_is_followed_until_it_dies_in_the_middle_of_a_checkpoint(stage: Stage) -> None:
    place = stage.folder / "out"
    trainer = Writer(stage, "trainer", place)
    for step in (10, 20, 30):
        trainer.ask("save", step, 40_000)
    trainer.ask("hold", 60 * MB)
    guard = stage.guard(place)
    trainer.ask("begin", 40, 40_000)
    status = stage.wait_status(
        place,
        lambda s: s["checkpoints"]["writing"] and s["processes"]["count"],
        "one being written",
    )
    assert status["source"]["kind"] == "directory"
    assert status["run"]["state"] == "running"
    assert status["run"]["pid"] == trainer.pid, "who holds a file there open"
    used = next(one["used"] for one in status["resources"] if one["name"] == "memory")
    assert used > 60 * MB
    trainer.ask("finish", 40)
    trainer.ask("delete", 10)
    stage.wait_status(
        place,
        lambda s: states(s).get("checkpoint-40") == "committed" and s["checkpoints"]["count"] == 3,
        "one more complete, one deleted",
    )
    trainer.ask("begin", 50, 40_000)
    stage.wait_status(place, lambda s: "checkpoint-50" in states(s), "the next one")
    trainer.kill()
    trainer.wait()
    status = stage.wait_status(
        place, lambda s: states(s).get("checkpoint-50") == "incomplete", "one left half-written"
    )
    assert status["run"]["state"] == "crashed"
    assert status["run"]["end_reason"].startswith("inferred: ")
    assert light(status, "STEP")["word"] == "CRIT"
    events = told(stage, place)
    for words in (
        "checkpoint checkpoint-40 complete",
        "checkpoint checkpoint-10 deleted",
        "checkpoint checkpoint-50 is incomplete",
    ):
        assert sum(words in text for text in events) == 1, (words, events)
    assert not any("checkpoint-20" in text for text in events), "it lay there before anyone looked"
    assert guard.alive
    assert stage.cli("guard", "--stop", str(place)).returncode == 0
    alone = json.loads(stage.cli("status", str(place), "--json").stdout)
    assert (alone["run"]["state"], alone["guard"]["pid"]) == ("crashed", 0)
    stage.guard(place)
    assert stage.status(place)["run"]["state"] == "crashed", "the next guard knows it as well"


def test_what_happens_while_no_guard_is_there_is_told_by_the_next(stage: Stage) -> None:
    place = stage.folder / "out"
    trainer = Writer(stage, "trainer", place)
    trainer.ask("save", 1, 1000)
    guard = stage.guard(place)
    assert guard.alive
    stopped = stage.cli("guard", "--stop", str(place))
    assert stopped.returncode == 0, stopped.stderr
    trainer.ask("save", 2, 1000)
    stage.guard(place)
    events = wait_for(lambda: told(stage, place), "what is told")
    assert sum("checkpoint-2 complete" in text for text in events) == 1
    assert not any("checkpoint-1 complete" in text for text in events)


def test_a_database_of_langgraph_is_followed_and_left_as_it_is(stage: Stage) -> None:
    place = stage.folder / "agent.sqlite"
    saver = Writer(stage, "langgraph", place)
    for step in range(3):
        saver.ask("put", "thread-1", step, 2_000 + step)
    stage.guard(place)
    first = stage.wait_status(place, lambda s: s["checkpoints"]["count"] == 3, "three checkpoints")
    assert first["source"]["kind"] == "langgraph"
    assert first["run"]["pid"] == saver.pid
    before = contents(stage.folder)
    name = saver.ask("put", "thread-1", 3, 5_000)
    status = stage.wait_status(place, lambda s: s["checkpoints"]["count"] == 4, "one more")
    (newest, *_) = status["checkpoints"]["newest"]
    assert (newest["id"], newest["bytes"], newest["step"]) == (name, 5_000, 3)
    assert any(name in text for text in told(stage, place))
    rows = stage.session(place).rows("checkpoints", 500)
    assert [one.bytes for one in rows] == [5_000, 2_002, 2_001, 2_000]
    changed = {name for name, was in contents(stage.folder).items() if before.get(name) != was}
    assert {path for path in changed if not path.startswith(("home", "config"))} <= {
        ".", "agent.sqlite-wal", "agent.sqlite-shm"
    }, "the saver itself writes these"  # fmt: skip


def test_nothing_is_written_in_a_store_nor_asked_of_it(stage: Stage) -> None:
    place = stage.folder / "out"
    trainer = Writer(stage, "trainer", place)
    for step in (1, 2):
        trainer.ask("save", step, 1000)
    before = contents(place)
    alone = stage.cli("ctl", str(place), "checkpoint")
    assert (alone.returncode, alone.stdout) == (1, "")
    refusal = "memwatch: checkpoint refused: a checkpoint store takes no commands\n"
    assert alone.stderr == refusal
    assert not (stage.home / "runs").exists(), "no guard is started to refuse"
    looked = stage.cli("status", str(place))
    assert "2 checkpoints" in looked.stdout
    stage.guard(place)
    stage.wait_status(place, lambda s: s["checkpoints"]["count"] == 2, "both")
    for words in (["checkpoint"], ["pause"], ["end"], ["mode", "act"]):
        done = stage.cli("ctl", str(place), *words)
        assert done.returncode == 1
        assert "a checkpoint store takes no commands" in done.stderr
    session = stage.session(place)
    assert session.latest(0, 5.0) is not None
    status = stage.cli("status", str(place), "--json")
    engine = json.loads(status.stdout)["engine"]
    assert engine["will"] == "WILL NOT ACT (a checkpoint store takes no commands)"
    assert engine["missing"]["checkpoint"] == "a checkpoint store takes no commands"
    assert contents(place) == before


def test_a_store_that_is_removed_is_over(stage: Stage) -> None:
    place = stage.folder / "out"
    trainer = Writer(stage, "trainer", place)
    trainer.ask("save", 1, 1000)
    guard = stage.short_guard(place, linger_s=0.5)
    trainer.ask("delete", 1)
    place.rmdir()
    wait_for(lambda: not guard.alive, "the guard to end: nobody needs it any more")
    assert guard.wait() == 0
    (run,) = json.loads(stage.cli("ls", "--json").stdout)["runs"]
    assert (run["state"], run["end"]) == ("ended", "done")


def test_it_is_found_again_by_path_id_and_name(stage: Stage) -> None:
    place = stage.folder / "out"
    trainer = Writer(stage, "trainer", place)
    trainer.ask("save", 1, 1000)
    guard = stage.guard(place)
    listed = json.loads(stage.cli("ls", "--json").stdout)["runs"]
    (run,) = (one for one in listed if one["path"] == str(place.resolve()))
    assert (run["source"], run["guarded"]) == ("directory", True)
    for target in (str(place), run["id"], "out"):
        line = stage.cli("status", target, "--line")
        assert line.returncode == 0, line.stderr
        assert "RUNNING observes" in line.stdout
    tonight = stage.cli("tonight", str(place))
    assert f"ok   guard     pid {guard.pid}, records" in tonight.stdout
    assert "it watches and tells, no more" in tonight.stdout
    assert "ctl" not in tonight.stdout, "no advice that would be refused"
    assert stage.cli("guard", "--stop", run["id"]).returncode == 0
    assert _listed_state(stage) == "not running"
    trainer.ask("begin", 2, 1000)
    assert _listed_state(stage) == "running, unwatched", "a file there is open for writing"


def _listed_state(stage: Stage) -> str:
    (run,) = json.loads(stage.cli("ls", "--json").stdout)["runs"]
    return str(run["state"])
