"""Control: what a safe point costs, what listening costs, how soon a pause ends."""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from pathlib import Path

from memwatch.agent import Run, RunOptions
from memwatch.agent.context import Context
from memwatch.agent.control.listener import ControlListener
from memwatch.agent.control.operation import Operation
from memwatch.agent.files import SYSTEM_FILES
from memwatch.agent.log import LogWriter
from memwatch.domain.clock import SystemClock
from tests.agent.control.sending import a_command, a_hold, publish, put_hold, state_of
from tests.benchmarks.table import Row
from tests.waiting import until

CALLS = 200_000
REPETITIONS = 7
IDLE_S = 5.0
ROUNDS = 15


def run() -> list[Row]:
    """Measure; the reference of a safe point is a call that does nothing."""
    rows = [_safe_point()]
    with tempfile.TemporaryDirectory() as folder:
        path, clock = Path(folder), SystemClock()
        log = LogWriter(path / "wal", clock=clock, durability="os")
        context = Context(path, "run-1", log, clock, SYSTEM_FILES)
        listener = ControlListener(context, {"mark": Operation(run=lambda _: {})})
        listener.start()
        rows += [_idle(), _answer(path, listener), _resume(path, listener)]
        listener.stop()
        log.close()
    return rows


def _safe_point() -> Row:
    with (
        tempfile.TemporaryDirectory() as folder,
        Run.open(Path(folder) / "run", RunOptions(agent="bench")) as run,
    ):
        ours = statistics.median(_call_ns(run.safe_point) for _ in range(REPETITIONS))
        nothing = statistics.median(_call_ns(lambda: None) for _ in range(REPETITIONS))
    return Row("a safe point when nothing waits", ours, "ns", nothing, "2,000 ns", "200 ns")


def _call_ns(call: object) -> float:
    assert callable(call)
    began = time.perf_counter_ns()
    for _ in range(CALLS):
        call()
    return (time.perf_counter_ns() - began) / CALLS


def _idle() -> Row:
    """Processor time of the listening thread, its looks and `state.json` included."""
    began = time.process_time()
    time.sleep(IDLE_S)
    share = (time.process_time() - began) / IDLE_S
    return Row("listening, of a processor", 100 * share, "%", None, "1 %", "0.3 %")


def _answer(path: Path, listener: ControlListener) -> Row:
    took: list[float] = []
    for n in range(ROUNDS):
        began = time.perf_counter()
        publish(path, a_command(SystemClock(), f"c{n}"))
        while state_of(path, f"c{n}") != "done":
            listener.safe_point()
            time.sleep(0.001)
        took.append(time.perf_counter() - began)
    return Row("a command, asked to done", 1e3 * statistics.median(took), "ms", None, "200 ms", "")


def _resume(path: Path, listener: ControlListener) -> Row:
    took: list[float] = []
    for _ in range(ROUNDS):
        hold = put_hold(path, a_hold())
        until(lambda: listener.mode.state == "paused")
        passed = threading.Event()

        def wait(passed: threading.Event = passed) -> None:
            listener.mode.gate(listener.safe_point)
            passed.set()

        thread = threading.Thread(target=wait)
        thread.start()
        began = time.perf_counter()
        hold.unlink()
        passed.wait()
        took.append(time.perf_counter() - began)
        thread.join()
    return Row("resumed after its hold went", 1e3 * max(took), "ms (worst)", None, "200 ms", "")
