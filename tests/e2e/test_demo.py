"""`memwatch demo`: a real agent under watch, and nothing left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.stage import (
    Process,
    Stage,
    demo_run,
    exists,
    files,
    is_run,
    light,
    memory,
    processes_of,
)
from tests.waiting import wait_for

pytestmark = pytest.mark.e2e

MB = 1_000_000


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


def test_headless_prints_the_last_status_and_leaves_nothing(stage: Stage) -> None:
    done = stage.cli("demo", "--headless", "--seconds", "6", "--json", "--seed", "3")
    assert done.stderr == ""
    assert done.returncode == 0
    status = json.loads(done.stdout)
    assert (status["run"]["agent"], status["run"]["state"]) == ("demo", "running")
    assert status["run"]["experiment"] >= 2
    assert status["guard"]["recording"]
    assert sum(tier["bytes"] for tier in status["tiers"]) > MB
    assert memory(status)["used"] > 20 * MB
    assert status["profile_note"].startswith("demo clock")
    assert {one["name"] for one in status["lights"]} == {"MEMORY", "DISK", "PROCS", "CKPT", "STEP"}
    assert light(status, "STEP")["word"] == "ok"
    assert files(stage.home) == []
    assert processes_of(stage.folder) == []


def test_headless_as_text_and_listed_while_it_lives(stage: Stage) -> None:
    demo = stage.start(["-m", "memwatch", "demo", "--headless", "--seconds", "5"])
    run_dir = wait_for(lambda: demo_run(stage), "the demo's run")
    stage.session(run_dir).close()
    listed = json.loads(stage.cli("ls", "--json").stdout)["runs"]
    assert [(run["agent"], run["state"], run["guarded"]) for run in listed] == [
        ("demo", "running", True)
    ]
    refused = stage.cli("demo", "leak", "-5")
    assert refused.returncode == 2
    leaking = stage.cli("demo", "leak", "600")
    assert (leaking.returncode, leaking.stdout) == (0, "leak done\n")
    out, err = demo.popen.communicate(timeout=30)
    assert (demo.popen.returncode, err) == (0, "")
    assert re.search(r"guard, pid \d+: WILL (NOT )?ACT \(", out)
    assert "MEMORY" in out
    assert stage.cli("ls").stdout == "no run was ever watched here; try: memwatch demo\n"


def test_the_leak_is_real_and_stops(stage: Stage) -> None:
    demo = stage.start(["-m", "memwatch", "demo", "--headless", "--seconds", "40"])
    run_dir = wait_for(lambda: demo_run(stage), "the demo's run")
    stage.session(run_dir).close()
    before = memory(stage.status(run_dir))["used"]
    assert stage.cli("demo", "leak", "2000").returncode == 0
    stage.wait_status(run_dir, lambda s: memory(s)["used"] > before + 80 * MB, "memory lost")
    leaked = _unaccounted(stage.status(run_dir))
    assert leaked > 60 * MB, "it lies outside of all tiers"
    assert stage.status(run_dir)["run"]["switches"] == {"leak": 2000.0}
    off = stage.cli("demo", "leak", "0", "--json")
    assert off.returncode == 0
    told = json.loads(off.stdout)
    assert (told["op"], told["state"]) == ("leak", "done")
    assert told["done_us"] >= told["asked_us"] > 0
    stage.wait_status(run_dir, lambda s: s["run"]["switches"] == {"leak": 0.0}, "the switch")
    stage.wait_status(run_dir, lambda s: _unaccounted(s) < leaked - 60 * MB, "memory given back")
    demo.kill(signal.SIGINT)
    assert demo.wait() == 130
    wait_for(lambda: processes_of(stage.folder) == [], "all processes gone")
    assert files(stage.home) == []


def test_a_leak_without_a_demo_is_one_sentence(stage: Stage) -> None:
    puppet = stage.puppet("other")
    stage.guard(puppet.run_dir)
    asked = stage.cli("demo", "leak", "60")
    assert asked.returncode == 2
    assert asked.stderr.startswith("memwatch: no demo is alive here")


def test_killed_callers_leave_nothing(stage: Stage) -> None:
    demo = stage.start(["-m", "memwatch", "demo", "--headless", "--seconds", "60"])
    run_dir = wait_for(lambda: demo_run(stage), "the demo's run")
    stage.session(run_dir).close()
    assert len(processes_of(stage.folder)) == 4, "both keepers, engine and guard"
    demo.kill()
    wait_for(lambda: processes_of(stage.folder) == [], "all processes gone")
    assert files(stage.home) == []


class Keeper(Process):
    """A keeper whose caller may vanish."""

    def __init__(self, stage: Stage, stay_s: float) -> None:
        self.run_dir = stage.home / "demo" / "kept"
        self.run_dir.parent.mkdir(parents=True)
        words = ["-m", "memwatch.demo.keeper", str(self.run_dir), "--stay", str(stay_s)]
        super().__init__(
            subprocess.Popen(
                [sys.executable, *words],
                stdin=subprocess.PIPE,
                env=stage.env,
                start_new_session=True,
                text=True,
            )
        )

    def say(self, word: str) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(word)
        self.popen.stdin.close()


def test_a_keeper_whose_caller_vanished_stays_a_while(stage: Stage) -> None:
    keeper = Keeper(stage, stay_s=2.0)
    try:
        wait_for(lambda: is_run(keeper.run_dir), "the run")
        assert stage.cli("guard", str(keeper.run_dir), "--detach").returncode == 0
        keeper.say("")
        seq = stage.status(keeper.run_dir)["seq"]
        stage.wait_status(keeper.run_dir, lambda s: s["seq"] > seq + 1, "the demo to go on")
        assert keeper.alive
        assert keeper.wait() == 0
        assert files(stage.home) == []
        assert processes_of(stage.folder) == []
    finally:
        keeper.end()


@pytest.mark.parametrize("how", ["quit", "terminate"])
def test_a_keeper_ends_when_told(stage: Stage, how: str) -> None:
    keeper = Keeper(stage, stay_s=600.0)
    try:
        wait_for(lambda: is_run(keeper.run_dir), "the run")
        if how == "quit":
            keeper.say("quit\n")
        else:
            keeper.kill(signal.SIGTERM)
        assert keeper.wait() == 0
        assert files(stage.home) == []
        assert processes_of(stage.folder) == []
    finally:
        keeper.end()


def test_an_engine_whose_keeper_was_killed_ends_by_itself(stage: Stage) -> None:
    keeper = Keeper(stage, stay_s=600.0)
    try:
        wait_for(lambda: is_run(keeper.run_dir), "the run")
        keeper.kill()
        keeper.wait()
        wait_for(lambda: processes_of(stage.folder) == [], "the engine to end")
        assert " ENDED " in stage.cli("status", str(keeper.run_dir), "--line").stdout
    finally:
        keeper.end()


def test_a_keeper_ends_an_engine_that_does_not_listen(stage: Stage) -> None:
    keeper = Keeper(stage, stay_s=600.0)
    try:
        wait_for(lambda: is_run(keeper.run_dir), "the run")
        (engine,) = (pid for pid in processes_of(stage.folder) if pid != keeper.pid)
        os.kill(engine, signal.SIGSTOP)
        keeper.say("quit\n")
        assert keeper.wait() == 0
        assert not exists(engine)
    finally:
        keeper.end()


def _unaccounted(status: dict[str, Any]) -> float:
    found = (r["used"] for r in status["resources"] if r["name"] == "unaccounted")
    return float(next(found, 0.0))
