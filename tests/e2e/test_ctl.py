"""`memwatch ctl` and `tonight` on real agents: what is asked for is really so afterwards."""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from memwatch.runtime.runs.attach import Attachment
from tests.e2e.stage import Process, Stage, exists, is_run, still
from tests.waiting import wait_for

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


class Agent:
    """The demo's engine, alive in a directory, and commands about it."""

    def __init__(self, stage: Stage, name: str) -> None:
        self.stage = stage
        self.run_dir = stage.folder / name
        words = ["-m", "memwatch.demo", str(self.run_dir), "--seconds", "300", "--seed", "3"]
        self.process: Process = stage.start(words)
        wait_for(lambda: is_run(self.run_dir), "the run")

    def ctl(self, *words: str) -> tuple[int, dict[str, Any]]:
        """Ask with --json; returns exit status and answer."""
        done = self.stage.cli("ctl", str(self.run_dir), *words, "--json")
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    @property
    def experiment(self) -> int:
        """Number of the newest experiment, as the guard counts."""
        return int(self.stage.status(self.run_dir)["run"]["experiment"] or 0)

    def state(self) -> str:
        return str(self.stage.status(self.run_dir)["run"]["state"])

    def end(self) -> None:
        pid = Attachment(self.run_dir).guard_pid
        self.stage.cli("guard", "--stop", str(self.run_dir))
        self.process.end()
        wait_for(lambda: pid is None or not exists(pid), "the guard gone")


@pytest.fixture
def agent(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Agent]:
    agent = Agent(stage, request.node.name.replace("[", "-").replace("]", ""))
    yield agent
    agent.end()


def test_paused_the_counter_stands_still_until_resumed(agent: Agent) -> None:
    """Nobody watches the run yet: the guard is started for the request."""
    assert Attachment(agent.run_dir).guard_pid is None
    done = agent.stage.cli("ctl", str(agent.run_dir), "pause", "--why", "maintenance")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("paused: no new experiment begins (agent, ")
    agent.stage.wait_status(
        agent.run_dir, lambda s: s["run"]["state"] == "paused", "drained and paused"
    )
    before = agent.experiment
    with still(4.0):  # two or three experiments' time
        held = agent.stage.status(agent.run_dir)["holds"]
    assert agent.experiment == before
    assert [(one["op"], one["owner"], one["effective"]) for one in held] == [("pause", "ctl", True)]
    page = agent.stage.cli("status", str(agent.run_dir)).stdout
    assert "held by ctl: pause" in page
    resumed = agent.stage.cli("ctl", str(agent.run_dir), "resume")
    assert (resumed.returncode, resumed.stderr) == (0, "")
    assert resumed.stdout.startswith("resumed: experiments begin again (agent, ")
    agent.stage.wait_status(
        agent.run_dir, lambda s: s["run"]["experiment"] > before, "the counter to go on"
    )


def test_a_dry_run_changes_nothing_and_says_what_would_go(agent: Agent) -> None:
    agent.stage.guard(agent.run_dir)
    agent.stage.wait_status(agent.run_dir, lambda s: s["progress"]["experiments"], "a result")
    assert agent.ctl("pause")[0] == 0
    agent.stage.wait_status(agent.run_dir, lambda s: s["run"]["state"] == "paused", "paused")
    status, dry = agent.ctl("purge", "--tier", "recent", "--dry-run")
    assert (status, dry["state"], dry["dry_run"]) == (0, "done", True)
    assert dry["result"]["entries"] > 0
    status, real = agent.ctl("purge", "--tier", "recent")
    assert (status, real["state"]) == (0, "done")
    assert real["result"]["entries"] == dry["result"]["entries"], "all of it was still there"
    assert set(real) == {
        *("id", "op", "state", "detail", "result", "asked_us", "done_us", "dry_run")
    }
    assert real["done_us"] >= real["asked_us"] > 0
    line = agent.stage.cli("ctl", str(agent.run_dir), "checkpoint-full").stdout
    assert line.startswith("full checkpoint of ")


def test_an_abort_needs_the_name_and_the_run_lives_on(agent: Agent) -> None:
    agent.stage.guard(agent.run_dir)
    agent.stage.wait_status(agent.run_dir, lambda s: s["run"]["experiment"], "an experiment")
    bare = agent.stage.cli("ctl", str(agent.run_dir), "abort")
    assert bare.returncode == 2
    assert "abort needs the run's name: add --yes " in bare.stderr
    for _ in range(9):  # it may end by itself just then
        aborted = agent.stage.cli("ctl", str(agent.run_dir), "abort", "--yes", agent.run_dir.name)
        if "no experiment is in progress" not in aborted.stderr and (
            "none was in progress any more" not in aborted.stdout
        ):
            break
    assert aborted.returncode == 0, aborted.stderr
    assert " is aborted (agent, " in aborted.stdout
    agent.stage.wait_status(
        agent.run_dir, lambda s: s["progress"]["experiments"].get("aborted"), "the abort counted"
    )
    assert agent.process.alive


def test_what_this_agent_lacks(agent: Agent) -> None:
    done = agent.stage.cli("ctl", str(agent.run_dir), "compact")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("memwatch: compact refused: ")
    assert done.stderr.count("\n") == 1
    status, wrong_tier = agent.ctl("purge", "--tier", "nowhere")
    assert (status, wrong_tier["state"]) == (1, "refused")
    assert "there is no tier nowhere" in wrong_tier["detail"]


def test_an_agent_that_does_not_listen(agent: Agent) -> None:
    agent.stage.guard(agent.run_dir)
    agent.stage.wait_status(agent.run_dir, lambda s: s["run"]["experiment"], "an experiment")
    agent.process.kill(signal.SIGSTOP)
    status, late = agent.ctl("checkpoint", "--wait", "1")
    assert (status, late["state"], late["done_us"]) == (1, "asked", None)
    agent.process.kill(signal.SIGCONT)


def test_an_agent_that_is_dead(stage: Stage) -> None:
    agent = Agent(stage, "dead")
    agent.process.kill()
    agent.process.wait()
    status, told = agent.ctl("pause")
    assert (status, told["state"]) == (1, "refused")
    assert Attachment(agent.run_dir).guard_pid is None, "no guard is started for a dead agent"
    stage.guard(agent.run_dir)
    stage.wait_status(agent.run_dir, lambda s: s["run"]["state"] == "crashed", "the crash")
    status, told = agent.ctl("pause")
    assert (status, told["state"]) == (1, "refused")
    agent.end()


def test_a_guard_killed_meanwhile_comes_back_with_the_hold(agent: Agent) -> None:
    assert agent.ctl("pause")[0] == 0
    attachment = Attachment(agent.run_dir)
    pid = attachment.guard_pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: attachment.guard_pid not in (None, 0, pid), "its keeper starts another")
    agent.stage.session(agent.run_dir).close()
    agent.stage.wait_status(
        agent.run_dir, lambda s: s["run"]["state"] == "paused" and s["holds"], "still paused"
    )
    status, _ = agent.ctl("resume")
    assert status == 0
    agent.stage.wait_status(
        agent.run_dir, lambda s: s["run"]["state"] == "running", "it runs again"
    )


def test_armed_for_the_night(agent: Agent) -> None:
    begun = agent.stage.cli("guard", str(agent.run_dir), "--detach", "--mode", "shadow")
    assert begun.returncode == 0, begun.stderr
    assert "WILL NOT ACT (shadow)" in begun.stdout
    asleep = agent.stage.cli("tonight", str(agent.run_dir))
    assert asleep.returncode == 1
    assert "NO   armed" in asleep.stdout
    armed = agent.stage.cli("ctl", str(agent.run_dir), "mode", "act", "--for", "10h")
    assert armed.returncode == 0, armed.stderr
    assert armed.stdout.startswith("WILL ACT (")
    assert agent.stage.cli("ctl", str(agent.run_dir), "checkpoint-full").returncode == 0
    checks = _tonight(agent)
    for name in ("guard", "armed", "policy", "agent", "restart", "logout", "reserve", "saved"):
        assert checks[name]["verdict"] == "ok", checks[name]
    assert checks["drill"]["verdict"] == "look"
    assert "checkpoint" in checks["steps"]["text"] or "purge" in checks["steps"]["text"]
    stop_file = agent.stage.home / "STOP"
    stop_file.touch()
    agent.stage.wait_status(
        agent.run_dir, lambda s: s["engine"]["stop_file"], "the stop file to be seen"
    )
    assert _tonight(agent)["armed"]["do"] == f"rm {shlex.quote(str(stop_file))}"
    stop_file.unlink()


def _tonight(agent: Agent) -> dict[str, dict[str, str]]:
    done = agent.stage.cli("tonight", str(agent.run_dir), "--json")
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert told["ok"] is (done.returncode == 0)
    return {check["name"]: check for check in told["checks"]}


def test_a_unit_for_this_run(agent: Agent) -> None:
    done = agent.stage.cli("guard", str(agent.run_dir), "--unit", "--mode", "act")
    assert done.returncode == 0
    assert f'"memwatch" "guard" "{agent.run_dir}" "--mode" "act"\n' in done.stdout
    assert Attachment(agent.run_dir).guard_pid is None, "nothing was started"


def test_a_guard_in_the_foreground_takes_its_mode_and_policy(stage: Stage) -> None:
    puppet = stage.puppet("foreground")
    policy = stage.folder / "own.yaml"
    policy.write_text("thresholds: {hard: 0.97}\n")
    words = ["--mode", "ask", "--for", "2h", "--policy", str(policy)]
    guard = stage.guard(puppet.run_dir, *words)
    status = stage.wait_status(
        puppet.run_dir, lambda s: s["engine"]["mode"] == "ask", "the mode to be set"
    )
    assert status["engine"]["until_us"] is not None
    assert status["limits"]["hard_share"] == 0.97
    assert str(policy) in status["engine"]["policy"]
    again = stage.cli("guard", str(puppet.run_dir), "--mode", "shadow")
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout == f"already guarded by process {guard.pid}\nWILL NOT ACT (shadow)\n"
    late = stage.cli("guard", str(puppet.run_dir), "--detach", "--policy", str(policy))
    assert late.returncode == 2
    assert "--policy is for a guard that begins" in late.stderr
    guard.kill(signal.SIGTERM)
    out, err = guard.popen.communicate(timeout=20)
    assert (guard.popen.returncode, err) == (0, "")
    assert out.startswith(f"watching {puppet.run_id}, pid {guard.pid}\nWILL ")
    puppet.end()


def test_a_mode_outlives_the_guard_that_is_killed(stage: Stage) -> None:
    puppet = stage.puppet("armed")
    begun = stage.cli("guard", str(puppet.run_dir), "--detach", "--mode", "act", "--for", "9h")
    assert begun.returncode == 0, begun.stderr
    assert "WILL ACT (" in begun.stdout
    attachment = Attachment(puppet.run_dir)
    pid = attachment.guard_pid
    assert pid is not None
    before = stage.status(puppet.run_dir)["engine"]
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: attachment.guard_pid not in (None, 0, pid), "another guard")
    stage.session(puppet.run_dir).close()
    after = stage.status(puppet.run_dir)["engine"]
    assert (after["mode"], after["until_us"]) == ("act", before["until_us"])
    (listed,) = [
        run
        for run in json.loads(stage.cli("ls", "--json").stdout)["runs"]
        if run["id"] == puppet.run_id
    ]
    assert (listed["engine"], listed["guarded"]) == ("act", True)
    assert f"{attachment.guard_pid} acts" in stage.cli("ls").stdout
    assert stage.cli("guard", "--stop", str(puppet.run_dir)).returncode == 0
    puppet.end()


def test_a_test_notice_really_arrives_before_bed() -> None:
    with Stage() as alone:
        told = alone.folder / "told"
        config = alone.folder / "config" / "memwatch" / "config.yaml"
        config.write_text(
            f"notify: {{channels: [{{kind: command, argv: [touch, '{told}']}}, {{kind: json, "
            "url: 'http://127.0.0.1:9/hush-hush'}], retries: 0}\n"
        )
        agent = Agent(alone, "notified")
        assert alone.cli("guard", str(agent.run_dir), "--detach").returncode == 0
        untested = alone.cli("tonight", str(agent.run_dir)).stdout
        assert "command was never tested" in untested
        done = alone.cli("tonight", str(agent.run_dir), "--test-notify", "--json")
        assert told.exists()
        texts = [
            one["text"] for one in json.loads(done.stdout)["checks"] if one["name"] == "notify"
        ]
        assert texts[0].startswith("command got a test through ")
        assert texts[1].startswith("json failed: ")
        assert "hush" not in done.stdout, "an address may hold a secret"
        agent.end()
