"""What a crash would cost, as estimated, against drills: sizes of 1 MB to 1 GB, chains to 50 MB.

Runs are made by the agent's own library, and drilled by `memwatch drill` in a home of their own.
First, each is estimated with nothing known but the disk and one drill of another run; then again
with one drill of its own behind it, as often as `REPETITIONS` says.

    python -m tests.benchmarks.bench_estimate --gb
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from memwatch.agent.files import SYSTEM_FILES
from memwatch.config.locations import home
from memwatch.domain.clock import SystemClock
from memwatch.host.disk_rate import measure
from memwatch.runtime.runs.host_file import HOST_FILE, HostFile, device_below
from tests.benchmarks.bench_recovery import build
from tests.benchmarks.load import own_home
from tests.benchmarks.table import Row, print_table

SIZES_MB = (1, 10, 100)
GB = 1_000
CHAINS_MB = (0, 5, 50)
REPETITIONS = 3
DEMO_S = 20.0
_TRIES = 4
_MOST_WAITED = 0.05
_TEACHER = "10 MB + 5 MB"
_DEMO = "demo engine"


@dataclass(frozen=True)
class Drilled:
    """One drill against the estimate before it."""

    what: str
    took_s: float
    low_s: float
    high_s: float
    error: float
    work_error: float | None
    """Of what a drill measures: without the start, which stands on both sides."""

    @property
    def inside(self) -> bool:
        """Whether it took neither less nor more than was said to be possible."""
        return self.low_s <= self.took_s <= self.high_s


def run(sizes_mb: tuple[int, ...] = SIZES_MB) -> list[Row]:
    """Measure all."""
    with tempfile.TemporaryDirectory(prefix="memwatch-bench-") as folder, own_home():
        runs = dict(_runs(Path(folder), sizes_mb))
        _learn_disk()
        began = _waiting()
        untaught = [_drill(_TEACHER, runs[_TEACHER])]
        taught = [one for one in _taught_once(runs) if one.what != _TEACHER]
        own = [_drill(what, path) for _ in range(REPETITIONS) for what, path in runs.items()]
        busy = _share(began, _waiting())
    return [
        *_summary("assumptions alone", untaught),
        *_summary(f"one drill of another run ({_TEACHER})", taught),
        *_summary("drills of its own", own),
        *(_row(one, "one drill of another run") for one in taught),
        *(_row(one, "own drills") for one in own),
        Row("tasks waited for a processor meanwhile", busy, "% of the time", None, "", "0: alone"),
    ]


def _runs(folder: Path, sizes_mb: tuple[int, ...]) -> Iterator[tuple[str, Path]]:
    for size in sizes_mb:
        for chain in CHAINS_MB:
            what = f"{size} MB + {chain} MB"
            print(f"  making {what} …", file=sys.stderr)
            build(folder / what, size * 1_000_000, chain * 1_000_000)
            yield what, folder / what
    command = [sys.executable, "-m", "memwatch.demo", str(folder / _DEMO), "--no-rest"]
    subprocess.run([*command, "--seconds", str(DEMO_S)], check=True, stdin=subprocess.DEVNULL)
    yield _DEMO, folder / _DEMO


def _learn_disk() -> None:
    """Know the disk, as a guard does before long."""
    own = home(create=True)
    device, rate = device_below(own), measure(own, SystemClock(), SYSTEM_FILES)
    if device is None or rate is None:
        raise RuntimeError("the disk cannot be measured")
    HostFile(own).remember_disk(device, rate)


def _taught_once(runs: dict[str, Path]) -> Iterator[Drilled]:
    """Drill each run with the machine as it was after the first drill of all."""
    path = home() / HOST_FILE
    kept = path.with_suffix(".kept")
    shutil.copy(path, kept)
    for what, run_dir in runs.items():
        shutil.copy(kept, path)
        yield _drill(what, run_dir)


def _waiting() -> tuple[float, float]:
    """Return the time, and for how much of it since boot some task waited for a processor."""
    try:
        some = Path("/proc/pressure/cpu").read_text().splitlines()[0]
    except OSError:
        return time.monotonic(), 0.0
    return time.monotonic(), int(some.rpartition("total=")[2]) / 1e6


def _share(began: tuple[float, float], ended: tuple[float, float]) -> float:
    return (ended[1] - began[1]) / (ended[0] - began[0]) * 100


def _drill(what: str, path: Path) -> Drilled:
    """Drill a run, again while others take the processor meanwhile: they are not what is asked."""
    command = [sys.executable, "-m", "memwatch", "drill", str(path), "--json"]
    for _ in range(_TRIES):
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        done = json.loads(said)
        if (done["waited_s"] or 0.0) <= _MOST_WAITED * done["total_s"]:
            break
    if not done["cold_cache"]:
        print(f"  {what}: the files came from memory", file=sys.stderr)
    span = done["estimate"]
    return Drilled(
        what,
        done["total_s"],
        span["low"],
        span["high"],
        done["error_share"],
        done["work_error_share"],
    )


def _summary(how: str, found: list[Drilled]) -> Iterator[Row]:
    inside = sum(one.inside for one in found) / len(found)
    worst = max(abs(one.error) for one in found)
    spread = max(one.high_s / one.low_s for one in found)
    yield Row(f"{how}: inside [low, high]", inside * 100, "%", None, "90 %", "100 %")
    yield Row(f"{how}: worst error of {len(found)}", worst * 100, "%", None, "25 % (demo)", "")
    alone = [abs(one.work_error) for one in found if one.work_error is not None]
    if alone:
        yield Row(f"{how}: median, without the start", median(alone) * 100, "%", None, "", "")
        yield Row(f"{how}: worst, without the start", max(alone) * 100, "%", None, "", "")
    yield Row(f"{how}: widest high / low", spread, "", None, "2", "1.3")


def _row(one: Drilled, how: str) -> Row:
    place = "inside" if one.inside else "OUTSIDE"
    span = f"[{one.low_s:.3g}, {one.high_s:.3g}] s, {one.error * 100:+.0f} %: {place}"
    if one.work_error is not None:
        span += f" ({one.work_error * 100:+.0f} % without the start)"
    return Row(f"{one.what}, {how}", one.took_s, "s", None, "", span)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--gb", action="store_true", help="runs of 1 GB as well: minutes")
    options = parser.parse_args()
    print_table(run((*SIZES_MB, GB) if options.gb else SIZES_MB))


if __name__ == "__main__":
    main()
