"""A home of its own, and the processes of a test: agents, guards, commands. All end with it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from memwatch.domain.errors import MemwatchError, SessionError
from memwatch.runtime.protocol.client import GuardSession
from memwatch.runtime.protocol.thin_client import status_json
from memwatch.runtime.runs.attach import Attachment
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
AGENT = Path(__file__).with_name("agent.py")
PERIOD_S = 0.25
QUICK = f"""
name: quick
windows: {{growth_s: [8, 20, 600], chart_s: 60}}
probe: {{period_s: {PERIOD_S}, disk_s: 0.5}}
"""
"""A profile whose figures come soon."""


class Process:
    """A process that is ended by its number."""

    def __init__(self, popen: subprocess.Popen[str]) -> None:
        self.popen = popen
        self.pid = popen.pid

    @property
    def alive(self) -> bool:
        return self.popen.poll() is None

    def kill(self, number: int = signal.SIGKILL) -> None:
        if self.alive:
            os.kill(self.pid, number)

    def wait(self, seconds: float = 20.0) -> int:
        return self.popen.wait(timeout=seconds)

    def end(self) -> None:
        if self.alive:
            self.kill(signal.SIGCONT)
            self.kill(signal.SIGTERM)
            try:
                self.popen.wait(timeout=15)
            except subprocess.TimeoutExpired:
                self.kill()
                self.popen.wait()
        for pipe in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


class Puppet(Process):
    """An agent that does what it is told."""

    def __init__(self, popen: subprocess.Popen[str], run_dir: Path) -> None:
        super().__init__(popen)
        self.run_dir = run_dir
        self.about = self._answer()
        self.run_id = str(self.about["run_id"])

    def ask(self, name: str, *arguments: Any) -> Any:
        self.tell(name, *arguments)
        return self._answer()

    def tell(self, name: str, *arguments: Any) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(json.dumps([name, *arguments]) + "\n")
        self.popen.stdin.flush()

    def _answer(self) -> Any:
        assert self.popen.stdout is not None
        line = self.popen.stdout.readline()
        if not line:
            raise AssertionError(f"the agent is gone: {self.popen.wait(timeout=10)}")
        return json.loads(line)


class Stage:
    """Where a test plays. `env` is that of every process started here."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mw-"))
        self.home = self.folder / "home"
        self.env = {
            **{k: v for k, v in os.environ.items() if not k.startswith(_NOT_HANDED_ON)},
            "MEMWATCH_HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "PYTHONPATH": str(ROOT),
        }
        self._before = {name: os.environ.get(name) for name in _OURS}
        self.processes: list[Process] = []
        self._sessions: list[GuardSession] = []
        self.profile("quick", QUICK)

    def __enter__(self) -> Stage:
        for name in _OURS:
            if name in self.env:
                os.environ[name] = self.env[name]
            else:
                os.environ.pop(name, None)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for session in self._sessions:
            session.close()
        for process in reversed(self.processes):
            process.end()
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        shutil.rmtree(self.folder, ignore_errors=True)

    def profile(self, name: str, text: str) -> str:
        """Write a profile, return its name."""
        folder = self.folder / "config" / "memwatch" / "profiles"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.yaml").write_text(text)
        return name

    def puppet(self, name: str = "run", **options: Any) -> Puppet:
        """Start an agent in a run directory, which may have been used before."""
        return self.play(AGENT, name, options)

    def play(self, program: Path, name: str, options: dict[str, Any]) -> Puppet:
        """Start a program that does what it is told in a run directory."""
        run_dir = self.folder / name
        asked = json.dumps({"profile": "quick", **options})
        popen = self._popen([str(program), str(run_dir), asked], stdin=subprocess.PIPE)
        puppet = Puppet(popen, run_dir)
        self.processes.append(puppet)
        return puppet

    def guard(self, run_dir: Path, *options: str) -> Process:
        """Start a guard and wait until it answers."""
        words = ["-m", "memwatch", "guard", str(run_dir), *options]
        return self._answering(self.start(words), run_dir)

    def short_guard(self, run_dir: Path, linger_s: float) -> Process:
        """Start a guard that stays for `linger_s` only when nobody needs it any more."""
        code = (
            "import sys; from pathlib import Path; from memwatch.runtime.guard.guard import Guard\n"
            "Guard(Path(sys.argv[1]), linger_s=float(sys.argv[2])).run()"
        )
        return self._answering(self.start(["-c", code, str(run_dir), str(linger_s)]), run_dir)

    def start(self, words: list[str]) -> Process:
        """Start a Python program."""
        process = Process(self._popen(words, stdin=subprocess.DEVNULL))
        self.processes.append(process)
        return process

    def cli(self, *words: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [sys.executable, "-m", "memwatch", *words],
            capture_output=True,
            text=True,
            env=self.env,
            cwd=self.folder,
            timeout=timeout,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def session(self, run_dir: Path) -> GuardSession:
        """Open a viewer's session."""
        return self.keep(wait_for(lambda: _connected(run_dir), "a session with the guard"))

    def keep(self, session: GuardSession) -> GuardSession:
        """Close a session when the test is over."""
        self._sessions.append(session)
        return session

    def status(self, run_dir: Path) -> dict[str, Any]:
        """Return what the guard says now."""
        found: dict[str, Any] = json.loads(status_json(str(Attachment(run_dir).socket)))
        return found

    def wait_status(
        self, run_dir: Path, holds: Callable[[dict[str, Any]], Any], what: str
    ) -> dict[str, Any]:
        """Return the first status for which `holds` is true."""

        def look() -> dict[str, Any] | None:
            status = self.status(run_dir)
            seen["status"] = {k: status[k] for k in ("run", "level", "lights", "guard")}
            return status if holds(status) else None

        seen: dict[str, Any] = {}
        try:
            return wait_for(look, what)
        except AssertionError as error:
            raise AssertionError(f"{error}: {json.dumps(seen, indent=1)}") from None

    def _answering(self, process: Process, run_dir: Path) -> Process:
        def look() -> bool:
            if not process.alive:
                raise AssertionError(f"the guard ended: {process.popen.communicate()}")
            return Attachment(run_dir).guard_pid == process.pid and _answers(run_dir)

        wait_for(look, "the guard to answer")
        return process

    def _popen(self, words: list[str], stdin: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *words],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if stdin == subprocess.DEVNULL else None,
            text=True,
            env=self.env,
            cwd=self.folder,
            start_new_session=True,
        )


_NOT_HANDED_ON = ("XDG_", "MEMWATCH", "PYTHON")
_OURS = ("MEMWATCH_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME")


def light(status: dict[str, Any], name: str) -> dict[str, Any]:
    """Return one light of a status."""
    found: dict[str, Any] = next(one for one in status["lights"] if one["name"] == name)
    return found


def memory(status: dict[str, Any]) -> dict[str, Any]:
    """Return the resource `memory` of a status."""
    found: dict[str, Any] = next(r for r in status["resources"] if r["name"] == "memory")
    return found


def exists(pid: int) -> bool:
    """Say whether a process lives, a zombie not counted."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


@contextlib.contextmanager
def still(seconds: float) -> Iterator[None]:
    """Hold what follows until `seconds` have passed since the block began."""
    until = time.monotonic() + seconds
    yield
    wait_for(lambda: time.monotonic() >= until, "time to pass", seconds + 5)


def _connected(run_dir: Path) -> GuardSession | None:
    try:
        return Attachment(run_dir).connect()
    except SessionError:
        return None


def _answers(run_dir: Path) -> bool:
    try:
        status_json(str(Attachment(run_dir).socket))
    except SessionError:
        return False
    return True


_OF_NO_RUN = ("cache", "host.json", "host.lock")


def files(home: Path) -> list[str]:
    """Return the files that are kept of runs; caches, and what is known of the machine, are not."""
    paths = (path.relative_to(home) for path in home.rglob("*") if not path.is_dir())
    return sorted(str(path) for path in paths if path.parts[0] not in _OF_NO_RUN)


def processes_of(folder: Path) -> list[int]:
    """Return the processes whose command line names a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes()
        except OSError:
            continue
        if os.fsencode(folder) in text and exists(int(path.parent.name)):
            found.append(int(path.parent.name))
    return found


def demo_run(stage: Stage) -> Path | None:
    """Return the run directory of the demo that runs here."""
    return next((path for path in (stage.home / "demo").glob("*") if is_run(path)), None)


def is_run(path: Path) -> bool:
    """Say whether a run can be opened there."""
    try:
        Attachment(path)
    except MemwatchError:
        return False
    return True
