"""A recovery for practice: done for real, measured, and held against what the live agent logged.

What is measured is this process: let it be a fresh one (`python -m memwatch.agent.recovery RUN`).
The state is restored into its memory and nowhere else, so nothing is left behind.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
from msgspec import Struct

from memwatch.agent.recovery.account import Findings
from memwatch.agent.recovery.recover import recover
from memwatch.agent.recovery.report import Report, Term, TermName
from memwatch.agent.recovery.state import State
from memwatch.domain.clock import SystemClock
from memwatch.domain.errors import DamagedError
from memwatch.host.page_cache import forget
from memwatch.host.process import age_us, peak_bytes, waited_s
from memwatch.wal.segment import BLOB_DIR, CHECKPOINT_DIR, WAL_DIR

_READING: tuple[TermName, ...] = ("load", "blobs", "read")
_COLD_SHARE = 0.02
"""Cached pages up to this share of all still count as cold."""


class Drill(Struct, frozen=True, kw_only=True):
    """How a drill went."""

    run_id: str
    terms: tuple[Term, ...]
    """As in `recovery.report`; `start` where the drill has a process of its own; `blobs` are all
    persisted values, from their files to proved text; `decode` is every value made an object.
    Both are more than a restart does, which reads and decodes what it uses."""
    total_s: float
    """Of all terms but `decode`, and what lies between them."""
    waited_s: float | None
    """For so long others had the processor, since the process began; None where nobody counts."""
    bytes: int
    """Read from disk."""
    state_bytes: int
    """What the recovered entries hold in memory."""
    memory_bytes: int
    """Most that the process held: the state, its values as text, each decoded in its turn."""
    cold_cache: bool
    """The system had forgotten the files before, so that they came from the disk."""
    matches: bool | None
    """Whether the state has the hash that the live agent logged; None where it logged none."""
    checked: dict[str, str]
    """State hash of each tier that was equal."""
    checked_lsn: int | None
    values: int
    last_lsn: int
    records: int
    full: str | None
    deltas: tuple[str, ...]
    damaged: tuple[str, ...]
    lost: tuple[str, ...]
    lossy: bool


def drill(run_dir: Path, start_s: float | None = None) -> Drill:
    """Recover a run and decode every value; raises RecoveryError as `recover` does.

    `start_s` is what this process needed to come so far. A value that cannot be had may have gone
    with a checkpoint that a live agent dropped meanwhile: then all is done once more.
    """
    start = () if start_s is None else (Term("start", start_s),)
    done = _drill(run_dir, start)
    return _drill(run_dir, start) if done.lossy else done


def _drill(run_dir: Path, start: tuple[Term, ...]) -> Drill:
    cached = forget(_files(run_dir))
    began = time.perf_counter()
    state, report = recover(run_dir, verify_blobs=False)
    known = {term.name: term for term in (*start, *report.terms)}
    known["blobs"], known["decode"], lost = _decode(state)
    total_s = time.perf_counter() - began - known["decode"].seconds
    return Drill(
        run_id=report.run_id,
        terms=tuple(known.values()),
        total_s=total_s + sum(term.seconds for term in start),
        waited_s=waited_s(),
        bytes=sum(known[name].bytes for name in _READING),
        state_bytes=report.memory_bytes,
        memory_bytes=peak_bytes(),
        cold_cache=cached is not None and cached <= _COLD_SHARE,
        matches=report.matches,
        checked=report.verified or {},
        checked_lsn=report.verified_lsn,
        values=sum(map(len, state.values())),
        last_lsn=report.last_lsn,
        records=report.records,
        full=report.full,
        deltas=report.deltas,
        damaged=report.damaged,
        lost=_all(report, lost),
        lossy=report.lossy or bool(lost),
    )


def _all(report: Report, lost: Findings) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*report.lost, *lost.all())))


def _decode(state: State) -> tuple[Term, Term, Findings]:
    """Read every persisted value and decode all; returns `blobs`, `decode`, and what is lost."""
    began, lost = time.perf_counter(), Findings()
    reading_s, stored_bytes, blobs, text_bytes, count = 0.0, 0, 0, 0, 0
    for tier, values in state.items():
        for key, entry in state.tiers[tier].items():
            is_stored, text, count = (
                entry.packed is None and entry.blob is not None,
                None,
                count + 1,
            )
            try:
                reading = time.perf_counter()
                try:
                    text = values.text(key)
                finally:
                    if is_stored:
                        reading_s += time.perf_counter() - reading
                values.decoded(key, text)
                text_bytes += len(text or b"")
                if is_stored and entry.blob is not None:
                    stored_bytes, blobs = stored_bytes + state.stored_bytes(entry.blob), blobs + 1
            except DamagedError as error:
                if entry.source is None:
                    lost.add(f"{key!r} of tier {tier} cannot be read: {error}")
    decoding_s = time.perf_counter() - began - reading_s
    decode = Term("decode", decoding_s, text_bytes, count)
    return Term("blobs", reading_s, stored_bytes, blobs), decode, lost


def _files(run_dir: Path) -> list[Path]:
    """Return the files that a recovery may read; what is no plain folder is not looked into."""
    found: list[Path] = []
    tops = (run_dir / name for name in (WAL_DIR, CHECKPOINT_DIR, BLOB_DIR))
    for top in (top for top in tops if not top.is_symlink()):
        for folder, _, names in os.walk(top):
            found += [Path(folder, one) for one in names]
    return found


def main(words: list[str]) -> int:
    """Drill the run directory that is named; prints one JSON object, returns the exit status."""
    age = age_us(SystemClock())
    done = drill(Path(words[0]), None if age is None else age / 1e6)
    print(msgspec.json.encode(done).decode())  # noqa: T201 -- its reader is another process
    return 0
