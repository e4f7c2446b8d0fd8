"""The viewer on the demo: first useful screen, CPU, memory, bytes to the terminal.

A bare Textual app, and htop, btop and glances where they are installed, run in the same run.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from memwatch.runtime.runs.attach import Attachment
from memwatch.runtime.runs.target import newest_live
from tests.benchmarks.load import own_home
from tests.benchmarks.table import Row
from tests.benchmarks.terminal import Cost, measure

SIZES = {"80×24": (80, 24), "200×50": (200, 50)}
ASKED = {
    "80×24": (("≤ 5 %", "≤ 2.2 %"), ("≤ 2 kB/s", "≤ 0.6 kB/s")),
    "200×50": (("≤ 10 %", "≤ 2.6 %"), ("≤ 4 kB/s", "≤ 0.9 kB/s")),
}
WARM_S = 8.0
SECONDS = 30.0
STARTS = 5
BARE_APP = """
from textual.app import App
from textual.widgets import Label
class Bare(App):
    def compose(self):
        yield Label("READY")
Bare().run()
"""
PEERS = {"htop": ("htop", "PID"), "btop": ("btop", "cpu"), "glances": ("glances", "CPU")}


def run() -> list[Row]:
    """Measure on a demo that runs without a screen of its own."""
    with own_home():
        demo = subprocess.Popen(
            [_memwatch(), "demo", "--headless", "--seconds", "100000"],
            stdout=subprocess.DEVNULL,
        )
        try:
            target = _wait_for_demo()
            return [*_starts(target), *_costs(target), *_peers()]
        finally:
            demo.terminate()
            demo.wait()


def _memwatch() -> str:
    return str(Path(sys.executable).parent / "memwatch")


def _wait_for_demo() -> str:
    while True:
        time.sleep(0.5)
        try:
            path = newest_live()
            Attachment(path).connect().close()
        except Exception:  # noqa: BLE001 -- not there yet, in any of many ways
            continue
        time.sleep(15)
        return str(path)


def _starts(target: str) -> list[Row]:
    ours, bare = [], []
    for _ in range(STARTS):
        ours.append(_start([_memwatch(), target], "MEMORY (ok|watch|WARN|ACT|CRIT)"))
        bare.append(_start([sys.executable, "-c", BARE_APP], "READY"))
    what = "first useful screen, guard running, against a bare Textual app"
    reached, reference = statistics.median(ours), statistics.median(bare)
    return [Row(what, reached * 1000, "ms", reference * 1000, "≤ 2×", "≤ 1.3×")]


def _start(argv: list[str], until: str) -> float:
    return measure(argv, SIZES["80×24"], until, warm_s=0.0, seconds=0.1).useful_s


def _costs(target: str) -> list[Row]:
    rows = []
    for name, size in SIZES.items():
        cost = measure([_memwatch(), target], size, "MEMORY", warm_s=WARM_S, seconds=SECONDS)
        cpu, traffic = ASKED[name]
        rows += _rows(f"viewer {name}", cost, cpu, traffic)
    return rows


def _rows(what: str, cost: Cost, cpu: tuple[str, str], traffic: tuple[str, str]) -> list[Row]:
    memory = ("≤ 75 MB", "≤ 55 MB") if what.startswith("viewer") else ("", "")
    return [
        Row(f"{what}: CPU", cost.cpu_percent, "%", None, *cpu),
        Row(f"{what}: to the terminal", cost.bytes_per_s / 1000, "kB/s", None, *traffic),
        Row(f"{what}: memory", cost.rss_bytes / 1e6, "MB", None, *memory),
    ]


def _peers() -> list[Row]:
    rows = []
    for name, (command, until) in PEERS.items():
        if shutil.which(command) is None:
            continue
        for size_name, size in SIZES.items():
            cost = measure([command], size, until, warm_s=WARM_S, seconds=SECONDS / 2)
            rows += _rows(f"({name} {size_name})", cost, ("", ""), ("", ""))
    return rows
