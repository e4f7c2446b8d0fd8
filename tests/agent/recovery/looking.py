"""What tests ask of a recovery."""

from __future__ import annotations

import hashlib
from pathlib import Path

from memwatch.agent.recovery.recover import recover
from memwatch.agent.recovery.report import Report
from memwatch.agent.recovery.state import State
from memwatch.domain.errors import DamagedError
from tests.agent.recovery.building import Builder, Kept


def kept(state: State) -> Kept:
    """Return a recovered state in the form of the builder's; values that are lost are left out.

    One that can be made again counts as its source, wherever it lies.
    """
    found: Kept = {tier: {} for tier in state}
    for tier, entries in state.tiers.items():
        for key, entry in entries.items():
            try:
                found[tier][key] = (entry.lsn, entry.source or state[tier][key])
            except DamagedError:
                continue
    return found


def tree(path: Path) -> dict[str, tuple[int, int, int, str]]:
    """Return all that may be known of what lies in a directory, but for when it was read."""
    found = {}
    for file in sorted((path, *path.rglob("*"))):
        status = file.lstat()
        content = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
        found[str(file)] = (status.st_mode, status.st_mtime_ns, status.st_ctime_ns, content)
    return found


def recovered(run: Builder) -> Report:
    """Recover a run, hold the state against the truth at the lsn that is reported."""
    state, report = recover(run.path)
    truth = {tier: entries for tier, entries in run.truth[report.last_lsn].items() if entries}
    assert {tier: entries for tier, entries in kept(state).items() if entries} == truth
    return report


def whole(run: Builder) -> Report:
    """The same, for a run that must not have lost anything."""
    report = recovered(run)
    assert (report.last_lsn, report.lost, report.lossy) == (run.lsn, (), False)
    return report


def says(sentences: tuple[str, ...], *words: str) -> bool:
    """Whether one of the sentences holds all words."""
    return any(all(word in sentence for word in words) for sentence in sentences)


def flip(path: Path, offset: int, bit: int = 0) -> None:
    """Flip one bit of a file; a negative offset counts from its end."""
    data = bytearray(path.read_bytes())
    data[offset] ^= 1 << bit
    path.write_bytes(data)
