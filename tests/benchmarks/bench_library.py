"""What the library costs the agent that embeds it: time, import, and how soon it is back.

Time is measured on the demo engine in two ways. The meter counts the processor time of the
outermost calls into the library, and that of its threads, in one process. The pairs run the same
search with the library and with a null run in its place, each in a process of its own, by turns;
the search is led by ratios alone, so that both do the same work, without rests. The simulated day
is as many experiments as the demo does in one, on small texts, and the last ones on texts of the
usual size, so that what a recovery loads is what it would be; the engine is then killed.

    python -m tests.benchmarks.bench_library KIND FOLDER EXPERIMENTS [SLICE_BYTES]
"""

from __future__ import annotations

import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, cast

from memwatch.agent import Run
from memwatch.config.load import load_profile
from memwatch.demo import engine as demo
from memwatch.demo.__main__ import run_options
from memwatch.demo.corpus import SLICE_BYTES, read_corpus
from memwatch.demo.leak import Leak
from memwatch.domain.clock import SystemClock
from tests.benchmarks.meter import Meter
from tests.benchmarks.null_run import NullRun
from tests.benchmarks.table import Row

PAIRS = 10
EXPERIMENTS = 32
DAY_EXPERIMENTS = 48_000
"""Of the demo in 24 hours, with its rests."""
LAST_EXPERIMENTS = 30
SMALL_BYTES = 16_000
LIMIT_BYTES = 300_000_000
STARTS = 15
ROOT = Path(__file__).resolve().parents[2]


def run() -> list[Row]:
    """Measure all of it."""
    with tempfile.TemporaryDirectory() as folder:
        return [*_time_rows(Path(folder)), _import_row(Path(folder)), _day_row(Path(folder))]


def _time_rows(folder: Path) -> list[Row]:
    _child("library", folder / "first", 3)  # fills the cache of bytecode
    metered = [_child("metered", folder / f"m{n}", EXPERIMENTS) for n in range(5)]
    calls = statistics.median(100 * one["calls_s"] / one["cpu_s"] for one in metered)
    share = statistics.median(
        100 * (one["calls_s"] + one["threads_s"]) / one["cpu_s"] for one in metered
    )
    pairs: list[tuple[Any, Any]] = []
    for number in range(PAIRS):
        kinds = ("library", "null") if number % 2 else ("null", "library")
        took = {kind: _child(kind, folder / f"{kind}{number}", EXPERIMENTS) for kind in kinds}
        pairs.append((took["library"], took["null"]))
    asked, strive = "3 %", "0.5 %"
    return [
        Row("agent's time inside the library, demo engine", calls, "%", None, asked, strive),
        Row("the same and the library's threads", share, "%", None, asked, strive),
        Row(
            f"time it takes, with over without, {PAIRS} pairs",
            _more(pairs, "elapsed_s"),
            "%",
            None,
            asked,
            strive,
        ),
        Row(
            f"processor time, with over without, {PAIRS} pairs",
            _more(pairs, "cpu_s"),
            "%",
            None,
            asked,
            strive,
        ),
    ]


def _more(pairs: list[tuple[Any, Any]], what: str) -> float:
    return statistics.median(
        100.0 * (float(ours[what]) / float(null[what]) - 1) for ours, null in pairs
    )


def _import_row(folder: Path) -> Row:
    env = _env(folder)
    took: dict[str, list[float]] = {"pass": [], "import msgspec": [], "import memwatch.agent": []}
    for number in range(STARTS + 1):
        for code, times in took.items():
            began = _children_s()
            subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, check=True)
            if number:  # the first one fills the cache
                times.append(_children_s() - began)
    bare, peer, ours = (1e3 * statistics.median(times) for times in took.values())
    what = "import memwatch.agent, over bare Python (peer: msgspec alone)"
    return Row(what, ours - bare, "ms", peer - bare, "60 ms", "50 ms")


def _day_row(folder: Path) -> Row:
    path = folder / "day"
    _child("killed", path, DAY_EXPERIMENTS - LAST_EXPERIMENTS, SMALL_BYTES)
    _child("killed", path, LAST_EXPERIMENTS)
    back = _child("recovered", path, 0)
    count = f"{back['experiments']:,}"
    what = f"demo engine back after a simulated day ({count} experiments), opened to ready"
    return Row(what, back["opened_s"], "s", None, "30 s", "5 s")


def _env(folder: Path) -> dict[str, str]:
    """Return an environment in which bytecode is cached, as it is for an installed package."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return env | {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _child(kind: str, path: Path, experiments: int, slice_bytes: int = SLICE_BYTES) -> Any:
    words = [kind, str(path), str(experiments), str(slice_bytes)]
    command = [sys.executable, "-m", "tests.benchmarks.bench_library", *words]
    done = subprocess.run(
        command, cwd=ROOT, env=_env(path.parent), stdout=subprocess.PIPE, check=False
    )
    if done.returncode not in (0, -signal.SIGKILL):
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}")
    return json.loads(done.stdout) if done.stdout else {}


def main(kind: str, path: Path, experiments: int, slice_bytes: int) -> None:
    """Be one of the processes; prints figures as JSON."""
    corpus = read_corpus(slice_bytes=slice_bytes)
    options = run_options(load_profile("demo"), LIMIT_BYTES, corpus)
    setattr(demo, "score_of", _by_ratio_alone)  # noqa: B010 -- mypy refuses the assignment
    meter = Meter()
    if kind == "metered":
        options = meter.watch(options)
    began_s, opened_s = time.perf_counter(), 0.0
    if kind == "null":
        run = cast(Run, NullRun(options.builders))
    else:
        run = Run.open(path, options)
        opened_s = time.perf_counter() - began_s
    leak = Leak(run.tiers, SystemClock(), run.record)
    engine = demo.Engine(run, corpus, leak, seed=1, limit_bytes=1 << 40)
    engine.pace = demo.NO_REST
    cpu_s, elapsed_s = time.process_time(), time.perf_counter()
    engine.work(experiments)
    if kind == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    count = run.experiments
    run.close()
    cpu_s, elapsed_s = time.process_time() - cpu_s, time.perf_counter() - elapsed_s
    figures = {"cpu_s": cpu_s, "elapsed_s": elapsed_s, "opened_s": opened_s}
    figures |= {"calls_s": meter.calls_s, "threads_s": meter.threads_s}
    print(json.dumps(figures | {"experiments": count}))


def _by_ratio_alone(ratio: float, _mb_per_s: float) -> float:
    return ratio


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *(int(word) for word in sys.argv[3:5]))
