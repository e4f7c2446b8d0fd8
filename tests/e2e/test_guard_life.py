"""One guard a run: how it begins, is found, is told to end, and ends by itself."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from memwatch.config.locations import run_home
from memwatch.runtime.runs.attach import LOG_FILE, Attachment
from memwatch.runtime.runs.keeper import keeper_of
from tests.e2e.stage import Stage, exists
from tests.waiting import wait_for

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


def test_a_second_guard_says_so_and_goes(stage: Stage) -> None:
    puppet = stage.puppet("single")
    guard = stage.guard(puppet.run_dir)
    second = stage.cli("guard", str(puppet.run_dir))
    assert second.returncode == 0
    assert second.stdout == f"already guarded by process {guard.pid}\n"
    assert second.stderr == ""
    assert guard.alive


def test_detached_it_outlives_its_caller_and_is_stopped_by_name(stage: Stage) -> None:
    puppet = stage.puppet("detached")
    begun = stage.cli("guard", str(puppet.run_dir), "--detach")
    assert begun.returncode == 0
    attachment = Attachment(puppet.run_dir)
    pid = attachment.guard_pid
    assert pid is not None
    assert re.fullmatch(
        rf"guard {pid} watches {puppet.run_id}: WILL NOT ACT \(\w+\); "
        rf"end it with: memwatch guard --stop {puppet.run_id}\n",
        begun.stdout,
    )
    keeper = keeper_of(pid)
    assert keeper is not None
    assert os.getsid(pid) == keeper, "no terminal can take it along"
    again = stage.cli("guard", str(puppet.run_dir), "--detach")
    assert f"guard {pid} watches" in again.stdout
    stopped = stage.cli("guard", "--stop", puppet.run_id)
    assert (stopped.returncode, stopped.stderr) == (0, "")
    assert stopped.stdout == f"guard of {puppet.run_id} ended; the agent goes on\n"
    wait_for(lambda: not exists(pid) and not exists(keeper), "guard and keeper gone")
    assert puppet.alive
    assert not attachment.socket.exists()
    nobody = stage.cli("guard", "--stop", puppet.run_id)
    assert nobody.returncode == 2
    assert nobody.stderr == f"memwatch: no guard watches {puppet.run_id}\n"


def test_a_detached_guard_that_is_killed_comes_again(stage: Stage) -> None:
    puppet = stage.puppet("kept")
    assert stage.cli("guard", str(puppet.run_dir), "--detach").returncode == 0
    attachment = Attachment(puppet.run_dir)
    pid = attachment.guard_pid
    assert pid is not None
    keeper = keeper_of(pid)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: attachment.guard_pid not in (None, 0, pid), "another guard")
    stage.session(puppet.run_dir).close()
    again = attachment.guard_pid
    assert again is not None
    assert keeper_of(again) == keeper
    log = (run_home(attachment.key) / LOG_FILE).read_text()
    assert "the guard was killed by signal 9 and is started again (1 of 5)" in log
    assert stage.cli("guard", "--stop", puppet.run_id).returncode == 0
    wait_for(lambda: keeper is not None and not exists(keeper), "the keeper gone")
    assert attachment.guard_pid is None


@pytest.fixture
def hangs_up() -> Iterator[None]:
    """Have a hang-up end what is started here, also where the tests run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hangs_up")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_in_the_foreground_a_signal_ends_it_cleanly(stage: Stage, number: signal.Signals) -> None:
    """A hang-up as well: who wants it to stay detaches it."""
    puppet = stage.puppet(f"signal-{number}")
    guard = stage.guard(puppet.run_dir)
    guard.kill(number)
    assert guard.wait() == 0
    out, err = guard.popen.communicate()
    head, *more = out.splitlines()
    assert head == f"watching {puppet.run_id}, pid {guard.pid}"
    assert more in ([], ["WILL NOT ACT (shadow)"]), "said once it listens"
    assert err == ""
    attachment = Attachment(puppet.run_dir)
    assert attachment.guard_pid is None
    assert not attachment.socket.exists()
    assert puppet.alive


def test_what_nohup_made_it_ignore_it_ignores(stage: Stage) -> None:
    puppet = stage.puppet("nohup")
    code = (
        "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    guard = stage.start(["-c", code, "-m", "memwatch", "guard", str(puppet.run_dir)])
    session = stage.session(puppet.run_dir)
    guard.kill(signal.SIGHUP)
    newest = session.latest(0, 5.0)
    assert newest is not None
    later = session.latest(newest.seq + 1, 5.0)
    assert later is not None
    assert guard.alive
    session.close()


def test_it_stays_a_while_after_the_end_and_then_goes(stage: Stage) -> None:
    puppet = stage.puppet("linger")
    guard = stage.short_guard(puppet.run_dir, linger_s=1.0)
    session = stage.session(puppet.run_dir)
    assert session.latest(0, 5.0) is not None
    puppet.ask("close")
    stage.wait_status(puppet.run_dir, lambda s: s["run"]["state"] == "ended", "the end")
    seq = 0
    for _ in range(4):  # seconds, about: longer than it would linger
        newest = session.latest(seq, 5.0)
        assert newest is not None, "while somebody looks it stays"
        seq = newest.seq
    assert guard.alive
    session.close()
    assert guard.wait() == 0


def test_it_does_not_leave_while_the_run_lives(stage: Stage) -> None:
    puppet = stage.puppet("alone")
    guard = stage.short_guard(puppet.run_dir, linger_s=0.2)
    first = stage.status(puppet.run_dir)["seq"]
    stage.wait_status(puppet.run_dir, lambda s: s["seq"] > first + 2, "some time")
    assert guard.alive


_DEFECT = """
import sys
from {module} import {owner}
original, calls = {owner}.{method}, []
def fail(self, *rest):
    calls.append(1)
    if len(calls) in {when}:
        raise ArithmeticError("a defect \x1b[31mof ours")
    return original(self, *rest)
{owner}.{method} = fail
from memwatch.cli import main
sys.exit(main(["guard", sys.argv[1]]))
"""


@pytest.mark.parametrize(
    ("module", "owner", "method", "when", "what"),
    [
        ("ingest_loop", "IngestLoop", "_pass", "(1, 2)", "reading the log"),
        ("probe_loop", "ProbeLoop", "_look_at_tree", "(2, 3)", "measuring"),
        ("clerk", "Clerk", "look", "(1, 2)", "bookkeeping"),
    ],
)
def test_a_loop_with_a_defect_goes_on_and_says_so(
    stage: Stage, module: str, owner: str, method: str, when: str, what: str
) -> None:
    puppet = stage.puppet(f"defect-{owner}")
    place = {"module": f"memwatch.runtime.guard.{module}", "owner": owner, "method": method}
    guard = stage.start(["-c", _DEFECT.format(**place, when=when), str(puppet.run_dir)])
    wait_for(lambda: Attachment(puppet.run_dir).socket.exists(), "the guard")

    def told(status: dict[str, Any]) -> bool:
        texts = [event["text"] for event in status["events"] if event["severity"] == "error"]
        texts = [text for text in texts if text.startswith(f"{what} failed")]
        return len(texts) == 2 and all(map(str.isprintable, texts))

    stage.wait_status(puppet.run_dir, told, "both failures told")
    puppet.ask("experiments", 3)
    stage.wait_status(
        puppet.run_dir,
        lambda s: s["resources"] and sum(s["progress"]["experiments"].values()) == 3,
        "the watch to go on",
    )
    guard.kill(signal.SIGTERM)
    assert guard.wait() == 0


def test_a_defect_of_the_tick_ends_it_with_words(stage: Stage) -> None:
    puppet = stage.puppet("defect")
    place = {"module": "memwatch.runtime.guard.guard", "owner": "Guard", "method": "_tick"}
    code = _DEFECT.format(**place, when="(2,)")
    guard = stage.start(["-c", code, str(puppet.run_dir)])
    assert guard.wait() == 1
    _, err = guard.popen.communicate()
    assert "a defect" in err
    assert Attachment(puppet.run_dir).guard_pid is None
    assert not Attachment(puppet.run_dir).socket.exists()


def test_a_home_that_cannot_be_written_is_one_sentence(stage: Stage) -> None:
    puppet = stage.puppet("homeless")
    blocked = stage.folder / "a-file"
    blocked.write_text("in the way")
    env = {**stage.env, "MEMWATCH_HOME": str(blocked / "home")}
    done = subprocess.run(
        [sys.executable, "-m", "memwatch", "guard", str(puppet.run_dir)],
        capture_output=True,
        text=True,
        env=env,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("memwatch: Not a directory")
    assert done.stderr.count("\n") == 1
