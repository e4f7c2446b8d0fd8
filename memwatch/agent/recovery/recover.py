"""Recovery: the newest full checkpoint that is whole, its increments, and the rest of the log.

    state, report = recover(Path("runs/night-7"))
    state["recent"]["call/7"]        # decoded when asked for
    report.lossy, report.lost        # what is not as the run left it, in sentences

Nothing is written, so that a second recovery finds what the first one found. A damaged increment
is made up for by the log of its range, a damaged full checkpoint by the chain before it. Behind
the first hole that nothing fills nothing is believed: the state is that of the record before it.
Source: requirements R5, R6, R7.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from memwatch.agent.memory.values import Types
from memwatch.agent.recovery.attempt import Attempt
from memwatch.agent.recovery.place import Place
from memwatch.agent.recovery.report import FileState, Progress, Report
from memwatch.agent.recovery.state import State
from memwatch.agent.recovery.workspace import compare_files

_LOOKS = 5
"""Attempts while the agent, alive, prunes what is being read."""


def recover(
    run_dir: str | PathLike[str],
    *,
    types: Iterable[type] = (),
    progress: Callable[[Progress], None] | None = None,
    workspace: Path | None = None,
    verify_blobs: bool = True,
) -> tuple[State, Report]:
    """Return the state that a run directory holds, and how that was found.

    `types` are the classes of values (`RunOptions.types`). With `workspace` the files that the
    run wrote there are compared with its log. Without `verify_blobs` a persisted value is only
    looked for, and proved when it is read.

    Raises RecoveryError for a directory that is no run, that two runs are mixed in, or that a
    newer memwatch wrote. Damage raises nothing: see `Report.damaged` and `Report.lost`.
    """
    began = time.perf_counter()
    known = Types(types)
    with _no_cyclic_collection():
        for _ in range(_LOOKS):
            attempt = Attempt(Place(Path(run_dir), progress), verify_blobs=verify_blobs)
            attempt.run()
            if not attempt.overtaken():
                break
    state = attempt.state(known)
    files: tuple[FileState, ...] = ()
    if workspace is not None:
        files = compare_files(workspace, state.journal)
    return state, attempt.report(time.perf_counter() - began, files)


@contextmanager
def _no_cyclic_collection() -> Iterator[None]:
    """Nothing that is read is part of a cycle; a million new objects wake the collector often."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
