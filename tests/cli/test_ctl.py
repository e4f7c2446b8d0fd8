"""`memwatch ctl` against a guard that says what a test wants: words, exit statuses, shapes."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memwatch.domain.control import EngineInfo, Hold
from memwatch.domain.plan import Plan
from tests.cli.conftest import Command
from tests.cli.fake_hub import RUN_ID, FakeHub, make_run
from tests.e2e.stage import Stage
from tests.waiting import wait_for


@pytest.fixture
def run_dir(stage: Stage) -> Path:
    return make_run(stage.folder / "runs" / "seventh")


@pytest.fixture
def hub(run_dir: Path) -> Iterator[FakeHub]:
    with FakeHub(run_dir) as hub:
        yield hub


def test_pause_in_one_line(memwatch: Command, hub: FakeHub, run_dir: Path) -> None:
    hub.answers = [("asked", "", {}), ("accepted", "", {}), ("done", "", {"drained": True})]
    done = memwatch("ctl", str(run_dir), "pause", "--why", "lunch")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "paused: no new experiment begins (agent, 0.14s); until: memwatch ctl night-7 resume\n"
    )
    (asked,) = hub.asked
    assert (asked.op, asked.args, asked.by, asked.why) == ("pause", {}, "ctl", "lunch")
    assert hub.viewers == [], "who asks for something has not looked: since-you-left goes on"


def test_json_has_the_shape_that_scripts_know(
    memwatch: Command, hub: FakeHub, run_dir: Path
) -> None:
    hub.answers = [("done", "", {"freed_bytes": 5_000_000, "entries": 3})]
    done = memwatch("ctl", str(run_dir), "purge", "--tier", "workspace", "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 0
    assert told == {
        "id": "id-1",
        "op": "purge",
        "state": "done",
        "detail": "",
        "result": {"freed_bytes": 5_000_000, "entries": 3},
        "asked_us": 1_000_000,
        "done_us": 1_140_000,
        "dry_run": False,
    }


@pytest.mark.parametrize("state", ["refused", "failed", "expired", "unknown"])
def test_what_was_not_done_is_exit_1(
    memwatch: Command, hub: FakeHub, run_dir: Path, state: Any
) -> None:
    hub.answers = [("asked", "", {}), (state, "because \x1b[31mof this", {})]
    done = memwatch("ctl", str(run_dir), "checkpoint")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"memwatch: checkpoint {state}: because \ufffd[31mof this\n"
    told = memwatch("ctl", str(run_dir), "checkpoint", "--json")
    assert told.returncode == 1
    assert json.loads(told.stdout)["state"] == state


def test_refused_by_the_guard_at_once(memwatch: Command, hub: FakeHub, run_dir: Path) -> None:
    hub.refusal = "this agent does not offer 'compact'"
    done = memwatch("ctl", str(run_dir), "compact")
    assert done.returncode == 1
    assert done.stderr == "memwatch: compact refused: this agent does not offer 'compact'\n"
    told = json.loads(memwatch("ctl", str(run_dir), "compact", "--json").stdout)
    assert (told["id"], told["state"], told["op"]) == ("", "refused", "compact")


def test_no_answer_in_time(memwatch: Command, hub: FakeHub, run_dir: Path) -> None:
    hub.answers = [("asked", "", {})]
    late = memwatch("ctl", str(run_dir), "reclaim", "--wait", "0.3", "--json")
    assert late.returncode == 1
    assert json.loads(late.stdout)["done_us"] is None
    unwaited = memwatch("ctl", str(run_dir), "reclaim", "--wait", "0")
    assert unwaited.returncode == 0, "who does not wait has what was asked for"
    assert "reclaim asked: the agent has not answered yet" in unwaited.stderr


@pytest.mark.parametrize(
    ("words", "op", "args"),
    [
        (["checkpoint"], "checkpoint", {}),
        (["checkpoint", "--kind", "experiment"], "checkpoint", {"kind": "experiment"}),
        (["checkpoint-full"], "checkpoint", {"kind": "full"}),
        (["purge", "--how", "oldest"], "purge", {"how": "oldest"}),
        (
            ["purge", "--tier", "recent", "--target-bytes", "5000"],
            "purge",
            {"tier": "recent", "target_bytes": 5000},
        ),
        (["reclaim"], "reclaim", {}),
        (["read-only"], "read_only", {}),
        (["read-write"], "read_write", {"owner": "ctl"}),
        (["resume"], "resume", {"owner": "ctl"}),
        (["resume", "--all"], "resume", {"all": True}),
        (["approve", "p-1"], "engine.approve", {"plan": "p-1"}),
        (["decline", "p-1"], "engine.decline", {"plan": "p-1"}),
        (["reset"], "engine.reset", {}),
        (
            ["mode", "ask", "--allow", "checkpoint,abort-experiment", "--allow", "pause"],
            "engine.mode",
            {"mode": "ask", "allow": ["checkpoint", "abort_experiment", "pause"]},
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_words_become_requests(
    memwatch: Command, hub: FakeHub, run_dir: Path, words: list[str], op: str, args: dict[str, Any]
) -> None:
    assert memwatch("ctl", str(run_dir), *words).returncode == 0
    (asked,) = hub.asked
    assert (asked.op, asked.args, asked.dry_run, asked.confirm) == (op, args, False, "")


def test_a_mode_for_some_time(memwatch: Command, hub: FakeHub, run_dir: Path) -> None:
    until_us = hub.snapshot.t_us + 8 * 3600 * 1_000_000

    def act(_: object, snapshot: Any) -> Any:
        will = "WILL ACT (warn, intervene, emergency)"
        engine = EngineInfo(mode="act", will=will, until_us=until_us)
        return type(snapshot)(**{**_members(snapshot), "engine": engine})

    hub.after = act
    done = memwatch("ctl", str(run_dir), "mode", "act", "--for", "8h")
    assert done.returncode == 0
    assert done.stdout.startswith("WILL ACT (warn, intervene, emergency) until ")
    (asked,) = hub.asked
    assert abs(asked.args["until_us"] - until_us) < 60_000_000


def _members(snapshot: Any) -> dict[str, Any]:
    return {name: getattr(snapshot, name) for name in snapshot.__struct_fields__}


@pytest.mark.parametrize(
    "words",
    [["abort"], ["end"], ["purge", "--tier", "verified"], ["purge", "--key", "proof/1"]],
    ids=" ".join,
)
def test_what_goes_for_good_needs_the_name(
    memwatch: Command, hub: FakeHub, run_dir: Path, words: list[str]
) -> None:
    bare = memwatch("ctl", str(run_dir), *words)
    assert bare.returncode == 2
    assert bare.stderr == f"memwatch: {words[0]} needs the run's name: add --yes night-7\n"
    wrong = memwatch("ctl", str(run_dir), *words, "--yes", "night-8")
    assert wrong.returncode == 2
    assert "nothing was asked" in wrong.stderr
    assert hub.asked == []
    for name in (RUN_ID, run_dir.name):
        assert memwatch("ctl", str(run_dir), *words, "--yes", name).returncode == 0
    assert [asked.confirm for asked in hub.asked] == [RUN_ID, run_dir.name]


def test_a_dry_run_needs_no_name(memwatch: Command, hub: FakeHub, run_dir: Path) -> None:
    hub.answers = [("done", "", {"freed_bytes": 12_000_000, "entries": 30, "dropped": 30})]
    done = memwatch("ctl", str(run_dir), "purge", "--tier", "verified", "--dry-run")
    assert done.stdout == (
        "dry run: would free 12M in 30 entries (30 made again on demand) (agent, 0.14s); "
        "nothing was purged\n"
    )
    assert hub.asked[0].dry_run


def test_on_a_terminal_the_name_is_asked_for(stage: Stage, hub: FakeHub, run_dir: Path) -> None:
    for typed, status in (("night-7", 0), ("nigth-7", 2), ("", 2)):
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "memwatch", "ctl", str(run_dir), "abort"]
        with subprocess.Popen(
            command, stdin=theirs, stderr=theirs, stdout=subprocess.DEVNULL, env=stage.env
        ) as asking:
            os.close(theirs)
            said = b""
            while b"type night-7 to go on: " not in said:
                said += os.read(ours, 1000)
            os.write(ours, typed.encode() + b"\n")
            assert asking.wait(timeout=20) == status
        os.close(ours)
    assert [asked.op for asked in hub.asked] == ["abort_experiment"]


def test_the_plan_that_waits_is_meant(memwatch: Command, hub: FakeHub, run_dir: Path) -> None:
    nothing = memwatch("ctl", str(run_dir), "approve")
    assert nothing.returncode == 2
    assert "no plan waits" in nothing.stderr
    plan = Plan(id="5f-warn", level="warn", rule="level", why="memory", steps=())
    hub.change(engine=EngineInfo(mode="ask", plan=plan))
    assert memwatch("ctl", str(run_dir), "decline").returncode == 0
    assert hub.asked[0].args == {"plan": "5f-warn"}


@pytest.mark.parametrize(
    ("action", "detail", "result", "said"),
    [
        ("resume", "nothing held it", {}, "nothing held it (agent, "),
        ("resume", "released", {"mode": "running"}, "resumed: experiments begin again (agent, "),
        ("abort", "", {"experiment": 7}, "experiment 7 is aborted (agent, "),
        ("abort", "", {"experiment": None}, "none was in progress any more, nothing is aborted ("),
    ],
)
def test_what_was_not_there_is_not_said_to_be_ended(  # noqa: PLR0917 - two fixtures
    memwatch: Command,
    hub: FakeHub,
    run_dir: Path,
    action: str,
    detail: str,
    result: dict[str, Any],
    said: str,
) -> None:
    hub.answers = [("done", detail, result)]
    done = memwatch("ctl", str(run_dir), action, "--yes", RUN_ID)
    assert done.stdout.startswith(said)


def test_what_only_others_hold_is_released_by_saying_so(
    memwatch: Command, hub: FakeHub, run_dir: Path
) -> None:
    hub.answers = [("failed", "held by engine, not by ctl", {})]
    done = memwatch("ctl", str(run_dir), "read-write")
    assert done.returncode == 1
    assert "held by engine, not by ctl; memwatch ctl " in done.stderr
    assert " read-write --all releases whatever holds it" in done.stderr


def test_resumed_but_held_by_somebody_else(memwatch: Command, hub: FakeHub, run_dir: Path) -> None:
    hub.change(holds=(Hold(id="h", op="pause", owner="engine", effective=True),))
    done = memwatch("ctl", str(run_dir), "resume")
    assert done.returncode == 1, "it does not go on"
    assert "still paused: held by engine; resume --all releases that too" in done.stderr
    assert memwatch("ctl", str(run_dir), "read-write").returncode == 0, "that is another kind"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["pause", "--tier", "recent"], "--tier does not go with pause, only with purge"),
        (["mode"], "name the mode of the engine, one of: off, observe, shadow, ask, act"),
        (["mode", "wild"], "name the mode of the engine"),
        (["mode", "shadow", "--for", "8h"], "--for goes with ask and act, not with shadow"),
        (["pause", "more"], "a further word does not go with pause"),
        (["checkpoint", "--all"], "--all does not go with checkpoint, only with"),
        (["reset", "--dry-run"], "--dry-run does not go with reset"),
        (["checkpoint", "--for", "8h"], "--for does not go with checkpoint, only with mode"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_words_that_contradict_each_other(
    memwatch: Command, hub: FakeHub, run_dir: Path, words: list[str], said: str
) -> None:
    done = memwatch("ctl", str(run_dir), *words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert said in done.stderr
    assert hub.asked == []


@pytest.mark.parametrize(
    "words",
    [
        ["dance"],
        ["mode", "act", "--for", "-3h"],
        ["mode", "act", "--for", "99d"],
        ["purge", "--how", "wildly"],
        ["purge", "--target-bytes", "0"],
        ["pause", "--wait", "nan"],
    ],
    ids=" ".join,
)
def test_words_that_make_no_sense(
    memwatch: Command, hub: FakeHub, run_dir: Path, words: list[str]
) -> None:
    done = memwatch("ctl", str(run_dir), *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: " in done.stderr
    assert hub.asked == []


def test_a_guard_that_goes_and_comes_while_waiting(
    stage: Stage, hub: FakeHub, run_dir: Path
) -> None:
    hub.answers = [("asked", "", {})]
    asking = stage.start(["-m", "memwatch", "ctl", str(run_dir), "checkpoint"])
    wait_for(lambda: hub.looks.get("id-1"), "it waits")
    hub._server.stop()
    hub._server = type(hub._server)(hub._server.path, RUN_ID, "again", hub)
    hub.answers = [("done", "", {"kind": "incremental", "bytes": 5_000})]
    hub._server.start()
    out, err = asking.popen.communicate(timeout=30)
    assert (asking.popen.returncode, err) == (0, "")
    assert out == "incremental checkpoint of 5.0k is on disk (agent, 0.14s)\n"


def test_ctrl_c_leaves_it_asked(stage: Stage, hub: FakeHub, run_dir: Path) -> None:
    hub.answers = [("asked", "", {})]
    asking = stage.start(["-m", "memwatch", "ctl", str(run_dir), "checkpoint"])
    wait_for(lambda: hub.looks.get("id-1"), "it waits")
    asking.kill(signal.SIGINT)
    out, err = asking.popen.communicate(timeout=30)
    assert (asking.popen.returncode, out, err) == (130, "", "")
    assert [asked.op for asked in hub.asked] == ["checkpoint"]


def test_an_agent_that_is_no_more(stage: Stage, memwatch: Command, run_dir: Path) -> None:
    manifest = json.loads((run_dir / "run.json").read_text())
    (run_dir / "run.json").write_text(json.dumps(manifest | {"start_ticks": 1}))
    done = memwatch("ctl", str(run_dir), "pause")
    assert done.returncode == 1
    assert done.stderr == ("memwatch: pause refused: the agent is not running: nothing was asked\n")
    assert not stage.home.exists(), "no guard was started for it"
