"""The examples of the README run as they stand, and again on what they left."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from memwatch.agent import recover

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = re.findall(
    r"<!-- example -->\n```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL
)


def run(code: str, folder: Path) -> None:
    env = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_there_are_a_plain_a_threaded_and_an_asyncio_program() -> None:
    assert len(EXAMPLES) == 3
    assert "ThreadPoolExecutor" in EXAMPLES[1]
    assert "asyncio.run" in EXAMPLES[2]


@pytest.mark.parametrize("number", range(3))
def test_an_example_runs_and_goes_on(tmp_path: Path, number: int) -> None:
    counts = []
    for _ in range(2):
        run(EXAMPLES[number], tmp_path)
        (run_dir,) = (tmp_path / "runs").iterdir()
        state, report = recover(run_dir)
        assert not report.lossy
        counts.append(state.experiments)
    assert counts == ([9, 9], [1, 2], [1, 2])[number]
    if number == 0:
        assert state["recent"]["result/9"] == {"ratio": 3.2}
    if number == 1:
        assert state["workspace"]["call/19"] == {"square": 361}
    if number == 2:
        assert (tmp_path / "workspace/answer.txt").read_text() == "forty-two"
