"""Commands: hostile text is one inert argument; what hangs is ended with its children."""

from __future__ import annotations

import os
import shlex
import sys
import threading
from pathlib import Path

import pytest

from memwatch.actuators.notify.channels import message_of
from memwatch.actuators.notify.deliver import CommandLine, Outcome, deliver
from memwatch.actuators.notify.notice import Notice
from memwatch.config.settings import Channel
from tests.waiting import wait_for

HOSTILE = [
    "$(touch pwned)",
    "`touch pwned`; touch pwned",
    "a\nb\r\nc\td",
    "\x1b]0;title\x07\x1b[31m",
    "--help",
    "' \" \\ * ? ~ {1..9} $HOME & | > pwned",
    "中文 ☃ \u202eevil",
    "lone \udce9 surrogate",
    "nul \x00 byte",
]
TELL = """
import json, os, sys
names = ("MEMWATCH_KEY", "MEMWATCH_STATE", "MEMWATCH_SEVERITY")
told = {"argv": sys.argv[2:], "env": [os.environ[name] for name in names]}
told |= {"session": os.getsid(0) == os.getpid(), "input": sys.stdin.read(), "cwd": os.getcwd()}
print("x" * 200_000)
print("\\x1b[31m", file=sys.stderr)
with open(sys.argv[1] + ".part", "w") as file:
    json.dump(told, file)
os.rename(sys.argv[1] + ".part", sys.argv[1])
"""


def notice(text: str) -> Notice:
    return Notice(key="memory", state="raised", severity="error", text=text, run="run-1")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_one_inert_argument(
    tmp_path: Path, text: str, capfd: pytest.CaptureFixture[str]
) -> None:
    import json

    said = tmp_path / "said"
    channel = Channel(kind="command", argv=(sys.executable, "-c", TELL, str(said), "$(id)", "a b"))
    outcome = deliver(message_of(channel, notice(text)), "command")
    assert outcome == Outcome(ok=True, detail="the command is done")
    told = json.loads(said.read_text())
    first, second, line = told["argv"]
    assert (first, second) == ("$(id)", "a b")
    assert line.startswith("memwatch: run-1: ")
    assert line.isprintable(), "no line end, no escape, no hidden character"
    assert told["env"] == ["memory", "raised", "error"]
    assert (told["session"], told["input"], told["cwd"]) == (True, "", "/")
    assert capfd.readouterr() == ("", ""), "its output goes nowhere"
    assert {path.name for path in tmp_path.iterdir()} == {"said"}


def test_what_fails_is_told_by_its_status() -> None:
    def run(script: str) -> Outcome:
        return deliver(CommandLine(argv=("/bin/sh", "-c", script)), "command")

    assert run("exit 3").detail == "the command failed: exit status 3"
    assert run("kill -9 $$").detail == "the command failed: signal 9"
    assert run("exit 3").again


def test_what_is_not_there_is_not_tried_again(tmp_path: Path) -> None:
    outcome = deliver(CommandLine(argv=("memwatch-no-such-program", "s3cret")), "command")
    words = "the command cannot be run: not found"
    assert outcome == Outcome(ok=False, detail=words, again=False)
    plain = tmp_path / "plain"
    plain.touch()
    outcome = deliver(CommandLine(argv=(str(plain),)), "command")
    assert outcome.detail == "the command cannot be run: permission denied"
    assert not deliver(CommandLine(argv=("/bin/true", "a\0b")), "command").ok


def hanging(folder: Path) -> CommandLine:
    """Return a command that hangs with a child that hangs; both write down their ids."""
    place = shlex.quote(str(folder))
    script = "sh -c 'echo $$ > child; exec sleep 600' & echo $$ > parent; wait"
    return CommandLine(argv=("/bin/sh", "-c", f"cd {place} || exit; {script}"))


def ids(folder: Path) -> list[int]:
    def written() -> list[int] | None:
        found = [(folder / name) for name in ("parent", "child")]
        texts = [path.read_text() if path.exists() else "" for path in found]
        return [int(text) for text in texts] if all(t.endswith("\n") for t in texts) else None

    return wait_for(written, "the ids of both")


def gone(pid: int) -> bool:
    """Whether a process is no more; one that is dead and not yet reaped is gone as well."""
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    outcome = deliver(hanging(tmp_path), "command", deadline_s=1.0)
    assert outcome == Outcome(ok=False, detail="the command took over 1 s and was ended")
    wait_for(lambda: all(map(gone, ids(tmp_path))), "the end of both")
    assert not gone(os.getpid())


def test_a_command_ends_with_the_guard(tmp_path: Path) -> None:
    stop = threading.Event()
    found: list[Outcome] = []
    thread = threading.Thread(
        target=lambda: found.append(deliver(hanging(tmp_path), "c", stop=stop, deadline_s=60.0))
    )
    thread.start()
    try:
        pids = ids(tmp_path)
    finally:
        stop.set()
        thread.join(timeout=20)
    assert [one.detail for one in found] == ["the command was ended, as the guard ended"]
    wait_for(lambda: all(map(gone, pids)), "the end of both")
