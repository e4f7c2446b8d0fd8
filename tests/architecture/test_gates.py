"""Format, lint, strict types and import contracts are tests like any other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
GATES = {
    "format": [str(BIN / "ruff"), "format", "--check", "."],
    "lint": [str(BIN / "ruff"), "check", "."],
    "types": [sys.executable, "-m", "mypy"],
    "imports": [str(BIN / "lint-imports"), "--no-cache"],
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("gate", GATES)
def test_gate_is_green(gate: str) -> None:
    done = subprocess.run(GATES[gate], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
