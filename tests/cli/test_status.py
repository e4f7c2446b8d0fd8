"""`status` and `ls`: exit statuses, one line, and words that a newcomer understands."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from memwatch.cli.status import exit_status
from memwatch.cli.status_text import status_line, status_text, worst_word
from memwatch.domain.errors import TargetError
from memwatch.domain.snapshot import GuardInfo
from memwatch.runtime.runs.attach import Attachment
from memwatch.runtime.runs.target import newest_live
from tests.e2e.stage import Stage
from tests.runtime.watched import MB, Watched
from tests.waiting import wait_for

Status = dict[str, Any]


def status_of(watched: Watched, **facts: Any) -> Status:
    found: Status = msgspec.json.decode(msgspec.json.encode(watched.snapshot(**facts)))
    return found


def at_work(used: int = 50) -> Watched:
    """Return a run that uses `used` of 100 MB."""
    watched = Watched()
    watched.begin(limits={"memory_bytes": 100 * MB})
    watched.say("experiment.begin", x=7, title="level 9", phase="exploration")
    watched.look(used * MB)
    return watched


@pytest.mark.parametrize(("used", "expected"), [(50, 0), (65, 0), (76, 1), (91, 1), (96, 1)])
def test_exit_status_by_level(used: int, expected: int) -> None:
    assert exit_status(status_of(at_work(used))) == expected


def test_exit_status_by_state() -> None:
    assert exit_status(status_of(at_work(), alive=False)) == 1, "crashed"
    silent = at_work()
    silent.clock.advance_s(100)
    assert exit_status(status_of(silent)) == 1
    for status, expected in (("done", 0), ("crashed", 1), ("killed", 1)):
        over = at_work(80)
        over.say("run.end", status=status)
        assert exit_status(status_of(over, alive=False)) == expected


def test_exit_status_when_nothing_is_recorded() -> None:
    lost = GuardInfo(pid=9, recording=False, not_recording_why="guard.wal: No space left on device")
    assert exit_status(status_of(at_work(), guard=lost)) == 1
    nobody = GuardInfo(engine="off", recording=False, not_recording_why="no guard watches this run")
    assert exit_status(status_of(at_work(), guard=nobody)) == 1


def test_one_line_starts_with_the_worst_word() -> None:
    assert status_line(status_of(at_work())) == (
        "ok run-1 RUNNING observes mem 50% 50M exp 7 ckpt –"
    )
    assert status_line(status_of(at_work(80))).startswith("ACT run-1 RUNNING observes mem 80% 80M")
    lost = GuardInfo(pid=9, recording=False, not_recording_since_us=5)
    assert status_line(status_of(at_work(), guard=lost)).startswith("CRIT NOT RECORDING run-1")
    nobody = GuardInfo(engine="off", recording=False)
    assert status_line(status_of(at_work(), guard=nobody)).startswith("ok NO GUARD run-1")
    stuck = GuardInfo(pid=9, recording=False, not_recording_why="the guard does not answer")
    assert status_line(status_of(at_work(), guard=stuck)).startswith("CRIT GUARD SILENT run-1")


def test_one_line_fits_a_status_bar() -> None:
    watched = at_work(80)
    watched.live(70, 80 * MB, grow=MB)
    status = status_of(watched, guard=GuardInfo(pid=9, recording=False))
    status["run"]["id"] = "an-extremely-long-name-of-a-run" * 5
    status["run"]["state"] = "read_only"
    line = status_line(status)
    assert len(line) <= 80
    assert "READ-ONLY" in line


def test_a_page_says_what_a_newcomer_asks() -> None:
    text = status_text(status_of(at_work(80)))
    first, second, third = text.splitlines()[:3]
    assert first == "run-1  searcher pid 4242  RUNNING  up 0.0ms"
    assert second == "experiment 7 level 9 (exploration)"
    assert third == "guard, pid 99: WILL NOT ACT (observe)"
    assert "MEMORY  ACT     80% 80M/100M" in text
    assert "limit: stated by the agent" in text


def test_a_page_of_a_run_that_nobody_watches() -> None:
    nobody = GuardInfo(engine="off", recording=False, not_recording_why="no guard watches this run")
    text = status_text(status_of(at_work(), guard=nobody))
    assert "no guard watches this run: nothing is recorded; begin with: memwatch guard /" in text
    assert "DISK    no data" in text
    over = status_text(status_of(at_work(), guard=GuardInfo(engine="off"), alive=False))
    assert "no guard: the run is over" in over
    assert "ended: the process is gone and its log names no end" in over


def test_a_page_says_what_a_crash_would_cost_and_what_was_learnt() -> None:
    status = status_of(at_work())
    status["recovery"] |= {"rto_s": {"low": 60.0, "likely": 74.0, "high": 90.0}, "grade": "watch"}
    status["recovery"] |= {"fix": "load 52s", "redo_s": 38.0, "error": "last 5: −8 … +12 %"}
    status["recovery"]["budget"]["over"] = ["recovery 74s is over your 60s"]
    status["advice"] = [{"text": "purge \x1b[31mrecent stopped working", "kind": "stopped"}]
    text = status_text(status)
    assert (
        "RECOVER WARN    1m14s (1m00s–1m30s) recovery 74s is over your 60s; load 52s; "
        "would do 38s again; estimates, last 5: −8 … +12 %"
    ) in text
    assert "learnt: purge \ufffd[31mrecent stopped working" in text
    status["recovery"]["rto_s"] = None
    assert "RECOVER" not in status_text(status)


def test_the_worst_word() -> None:
    def shown(*words: str) -> Status:
        return {"lights": [{"word": word} for word in words]}

    assert worst_word(shown("ok", "watch", "CRIT", "ACT")) == "CRIT"
    assert worst_word(shown("no data", "ok")) == "ok"
    assert worst_word(shown("no data")) == "no data"


@pytest.fixture(scope="module")
def shared() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


def test_unwatched_then_watched_then_past(shared: Stage) -> None:
    puppet = shared.puppet()
    puppet.ask("experiments", 2)
    place = str(puppet.run_dir)
    unwatched = shared.cli("status", place)
    assert unwatched.returncode == 1
    assert "no guard watches this run" in unwatched.stdout
    assert not shared.home.exists(), "a look writes nothing"
    guard = shared.guard(puppet.run_dir)
    for words in ([place], [puppet.run_id], []):
        watched = shared.cli("status", *words)
        assert (watched.returncode, watched.stderr) == (0, "")
        assert f"guard, pid {guard.pid}: WILL NOT ACT (" in watched.stdout
    (listed,) = json.loads(shared.cli("ls", "--json").stdout)["runs"]
    assert (listed["id"], listed["state"], listed["live"]) == (puppet.run_id, "running", True)
    guard.kill()
    guard.wait()
    (listed,) = json.loads(shared.cli("ls", "--json").stdout)["runs"]
    assert (listed["state"], listed["guarded"], listed["live"]) == (
        "running, unwatched",
        False,
        True,
    )
    assert "no guard watches this run" in shared.cli("status").stdout, "the newest live one"
    puppet.ask("close")
    puppet.end()
    table = shared.cli("ls").stdout.splitlines()
    assert table[0].split() == [
        *("run", "agent", "state", "level", "memory", "/min", "limit", "in", "began", "guard")
    ]
    assert "not running" in table[1]
    past = shared.cli("status", puppet.run_id)
    assert past.returncode == 0
    assert "no guard: the run is over" in past.stdout
    assert "ENDED" in past.stdout


def test_a_stopped_guard_is_told_at_once_and_is_not_no_guard(shared: Stage) -> None:
    puppet = shared.puppet("stopped")
    guard = shared.guard(puppet.run_dir)
    guard.kill(signal.SIGSTOP)
    line = shared.cli("status", str(puppet.run_dir), "--line")
    assert line.returncode == 1
    assert "GUARD SILENT" in line.stdout
    page = shared.cli("status", str(puppet.run_dir))
    assert "NOT RECORDING: the guard does not answer" in page.stdout
    assert f"to replace it: kill -KILL {guard.pid}" in page.stdout
    table = shared.cli("ls").stdout
    assert f"{guard.pid} SILENT" in table, "what it did when it last spoke is no news"
    stop = shared.cli("guard", "--stop", str(puppet.run_dir))
    assert stop.returncode == 2
    assert f"guard {guard.pid} does not answer: it goes on; by force: kill -KILL" in stop.stderr
    guard.kill(signal.SIGCONT)
    shared.wait_status(puppet.run_dir, lambda s: s["guard"]["recording"], "the guard again")
    for one in (guard, puppet):
        one.end()


def test_right_after_a_crash_status_shows_the_run_seen_last(shared: Stage) -> None:
    puppet = shared.puppet("crash")
    guard = shared.guard(puppet.run_dir)
    puppet.kill()
    puppet.wait()
    shared.wait_status(puppet.run_dir, lambda s: s["run"]["state"] == "crashed", "the crash")
    attachment = Attachment(puppet.run_dir)
    wait_for(lambda: not is_live(), "no run to be alive")
    found = shared.cli("status")
    assert found.returncode == 1
    assert (puppet.run_id in found.stdout, "CRASHED" in found.stdout) == (True, True)
    guard.end()
    assert attachment.guard_pid is None
    assert puppet.run_id in shared.cli("status").stdout


def is_live() -> bool:
    try:
        newest_live()
    except TargetError:
        return False
    return True


def test_runs_are_listed_live_ones_first(shared: Stage) -> None:
    newer = shared.puppet("newer")
    shared.guard(newer.run_dir)
    runs = json.loads(shared.cli("ls", "--json").stdout)["runs"]
    assert [run["live"] for run in runs] == [True] + [False] * (len(runs) - 1)
    assert runs[0]["id"] == newer.run_id
    assert runs[0]["rto_s"] is None
