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
from memwatch.domain.errors import DamagedError
from memwatch.host.page_cache import forget
from memwatch.host.process import peak_bytes
from memwatch.wal.segment import BLOB_DIR, CHECKPOINT_DIR, WAL_DIR

_READING: tuple[TermName, ...] = ("load", "read")
_COLD_SHARE = 0.02
"""Cached pages up to this share of all still count as cold."""


class Drill(Struct, frozen=True, kw_only=True):
    """How a drill went."""

    run_id: str
    terms: tuple[Term, ...]
    """`read` and `replay` as in `recovery.report`; `load` as there, and all persisted values, from
    their blobs to proved text; `decode` is every value made an object: more than a restart does,
    which reads and decodes what it uses."""
    total_s: float
    """Of all terms, and what lies between them."""
    bytes: int
    """Read from disk."""
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


def drill(run_dir: Path) -> Drill:
    """Recover a run and decode every value; raises RecoveryError as `recover` does.

    A value that cannot be had may have gone with a checkpoint that a live agent dropped
    meanwhile: then all is done once more, from the start.
    """
    done = _drill(run_dir)
    return _drill(run_dir) if done.lossy else done


def _drill(run_dir: Path) -> Drill:
    cached = forget(_files(run_dir))
    began = time.perf_counter()
    state, report = recover(run_dir, verify_blobs=False)
    known = {term.name: term for term in report.terms}
    known["load"], known["decode"], lost = _decode(state, known["load"])
    total_s = time.perf_counter() - began
    return Drill(
        run_id=report.run_id,
        terms=tuple(known.values()),
        total_s=total_s,
        bytes=sum(known[name].bytes for name in _READING),
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


def _decode(state: State, load: Term) -> tuple[Term, Term, Findings]:
    """Decode every value; returns what `load` is with the blobs, `decode`, and what is lost."""
    began, text_bytes, lost = time.perf_counter(), 0, Findings()
    stored_bytes, loading_s = 0, 0.0
    for tier, values in state.items():
        for key, entry in state.tiers[tier].items():
            try:
                text, blob = None, entry.blob if entry.packed is None else None
                reading = time.perf_counter()
                try:
                    text = values.text(key)
                finally:
                    if blob is not None:
                        loading_s += time.perf_counter() - reading
                values.decoded(key, text)
                text_bytes += len(text or b"")
                if blob is not None:
                    stored_bytes += state.stored_bytes(blob)
            except DamagedError as error:
                if entry.source is None:
                    lost.add(f"{key!r} of tier {tier} cannot be read: {error}")
    decoding_s = time.perf_counter() - began - loading_s
    load = Term("load", load.seconds + loading_s, load.bytes + stored_bytes)
    return load, Term("decode", decoding_s, text_bytes), lost


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
    done = drill(Path(words[0]))
    print(msgspec.json.encode(done).decode())  # noqa: T201 -- its reader is another process
    return 0
