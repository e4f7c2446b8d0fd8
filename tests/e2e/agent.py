"""An agent that does what a test tells it: a request a line on stdin, an answer a line on stdout.

`python agent.py RUN_DIR OPTIONS`, both sides in JSON: requests are `[name, argument...]`.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec

from memwatch.agent import Cadence, ReadOnlyError, Run, RunOptions
from memwatch.wal import codec
from memwatch.wal.segment import segment_name

STEPS, STEP_S = 8, 0.02
"""Of an experiment of the work that goes on by itself."""
NEVER = Cadence(incremental_s=1e9, full_s=1e9, incremental_experiments=10**9)


class Agent:
    """A run, and what a test may ask of it."""

    def __init__(self, run_dir: Path, options: dict[str, Any]) -> None:
        cadence = options.pop("cadence", None)
        self.run = Run.open(
            run_dir,
            RunOptions(
                **{"agent": "puppet", "sample_s": 0.2, **options},
                cadence=NEVER if cadence is None else msgspec.convert(cadence, Cadence),
            ),
        )
        self.held: list[bytearray] = []
        self.run.register_cache("held", self.held.clear)
        self.acknowledged = 0
        self.seen: list[str] = []
        self._over = threading.Event()
        self._worker = threading.Thread(target=self._work, name="worker", daemon=True)
        self._steps = STEPS
        self.children: dict[int, subprocess.Popen[str]] = {}

    def hello(self) -> dict[str, Any]:
        return {"pid": os.getpid(), "run_id": self.run.id, "start_id": self.run.start_id}

    def note(self, text: str) -> int:
        self.run.note(text)
        return self.run.log.last_lsn

    def step(self) -> None:
        with self.run.step("step"):
            pass
        self.run.safe_point()

    def experiments(self, count: int, status: str = "kept") -> int:
        """Do experiments, each with a step and a value in a tier."""
        number = 0
        for _ in range(count):
            with self.run.experiment("try", "exploration") as experiment:
                with self.run.step("step"):
                    pass
                number = experiment.number
                self.run.tiers["history"].put(f"metrics/{number}", {"score": number})
                experiment.status = msgspec.convert(status, Any)
        return number

    def checkpoint(self, kind: str) -> dict[str, Any]:
        outcome = self.run.checkpoints.take(msgspec.convert(kind, Any))
        found: dict[str, Any] = msgspec.to_builtins(outcome)
        return found

    def safe_point(self) -> None:
        self.run.safe_point()

    def hold(self, size: int) -> None:
        """Really occupy memory outside all tiers."""
        block = bytearray(size)
        block[::4096] = b"x" * len(block[::4096])
        self.held.append(block)

    def work(self, steps: int = STEPS) -> None:
        """Do one experiment after another, of so many steps, in a thread of their own."""
        self._steps = steps
        if not self._worker.is_alive():
            self._worker.start()

    def done(self) -> dict[str, Any]:
        """Return how far the work is: the newest value that was acknowledged, and experiments."""
        return {
            "acknowledged": self.acknowledged,
            "experiments": self.run.experiments,
            "at_work": self.run.current is not None,
            "mode": self.run.mode,
            "outcomes": self.seen[-20:],
        }

    def rest(self) -> None:
        """End the work."""
        self._over.set()
        if self._worker.is_alive():
            self._worker.join(20)

    def _work(self) -> None:
        while not self._over.is_set():
            if self.run.mode not in ("running", "draining"):  # the library would wait, not for us
                self.run.safe_point()
                self._over.wait(STEP_S)
                continue
            try:
                with self.run.experiment("search", "exploration") as experiment:
                    self._experiment()
                self.seen.append(experiment.status)
            except ReadOnlyError:
                self.seen.append("read-only")

    def _experiment(self) -> None:
        for _ in range(self._steps):
            if self._over.is_set():
                return
            with self.run.step("step"):
                self.run.tiers["verified"].put("count", {"number": self.acknowledged + 1})
                self.acknowledged += 1
            self.run.safe_point()
            self._over.wait(STEP_S)

    def release(self) -> None:
        self.held.clear()
        gc.collect()

    def fill(self, tier: str, count: int, size: int) -> dict[str, int]:
        """Put values into a tier; returns its bytes and what tracemalloc saw of them."""
        gc.collect()
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        for number in range(count):
            text = os.urandom(size // 2).hex()
            self.run.tiers[tier].put(f"value/{number}", {"text": text, "parts": [number] * 8})
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return {"bytes": self.run.tiers[tier].bytes, "traced": after - before}

    def child(self) -> dict[str, int]:
        """Start a shell that starts a sleeper and stays until `leave`."""
        shell = subprocess.Popen(
            ["sh", "-c", "sleep 600 </dev/null & echo $!; read word"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert shell.stdout is not None
        self.children[shell.pid] = shell
        return {"parent": shell.pid, "sleeper": int(shell.stdout.readline())}

    def leave(self, pid: int) -> None:
        """Let the shell go; its sleeper stays."""
        shell = self.children.pop(pid)
        assert shell.stdin is not None
        shell.stdin.close()
        shell.wait()

    def roll(self) -> int:
        return self.run.log.roll()

    def close(self, status: str = "done", reason: str = "") -> None:
        self.run.close(status, reason)

    def tear(self) -> None:
        """Die in the middle of a line."""
        self.run.log.sync()
        line = codec.encode(self.run.log.last_lsn + 1, 1, 1, "note", {"text": "never whole"})
        path = self.run.path / "wal" / segment_name(self.run.log.segment)
        fd = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.write(fd, line[: len(line) // 2])
        os.kill(os.getpid(), signal.SIGKILL)


def serve(kind: type[Agent], words: list[str]) -> None:
    """Serve requests until stdin closes."""
    agent = kind(Path(words[1]), json.loads(words[2]))
    print(json.dumps(agent.hello()), flush=True)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(json.dumps(getattr(agent, name)(*arguments)), flush=True)
    agent.rest()
    agent.close()


if __name__ == "__main__":
    serve(Agent, sys.argv)
