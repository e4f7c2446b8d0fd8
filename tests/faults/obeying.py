"""Start an agent that obeys, as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memwatch.agent.control.spool import Spool
from memwatch.agent.files import SYSTEM_FILES
from memwatch.domain.clock import SystemClock
from tests.agent.control.sending import a_command, publish
from tests.faults.obedient_agent import EFFECTS


def prepared(path: Path) -> Path:
    """Return a new run directory with one harmless and one destructive command."""
    (path / EFFECTS).mkdir(parents=True)
    Spool(path / "control", SYSTEM_FILES)
    for op in ("repeat", "destroy"):
        publish(path, a_command(SystemClock(), op, op=op))
    return path


@contextmanager
def serving(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run an agent that goes on, until it is killed."""
    command = [sys.executable, "-m", "tests.faults.obedient_agent", str(path), "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()
