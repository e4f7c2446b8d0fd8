"""Recoveries of a machine whose true costs are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from memwatch.analytics.recovery.costs import LEARNT, amounts, reference_s
from memwatch.analytics.recovery.work import Work
from memwatch.domain.recovery import DiskRate, MeasuredTerm, PastRecovery

MB = 1_000_000
NOW_US = 1_800_000_000_000_000
DISK = DiskRate(read_bytes_per_s=500e6, write_bytes_per_s=400e6, t_us=NOW_US)


def work(full_mb: float, chain_mb: float = 0.0) -> Work:
    """Return the work of a run of tool results: half of its chain are increments, half log."""
    return Work(
        full_bytes=round(full_mb * MB),
        full_entries=round(full_mb * 650),
        blob_bytes=round(full_mb * MB * 0.08),
        blob_count=round(full_mb * 12),
        delta_bytes=round(chain_mb * MB / 2),
        delta_entries=round(chain_mb * 300),
        delta_count=2,
        log_bytes=round(chain_mb * MB),
        tail_bytes=round(chain_mb * MB / 2),
        tail_records=round(chain_mb * 300),
    )


def machine(slower: float = 1.0, **terms: float) -> dict[str, float]:
    """Return by how much each term is slower than the reference."""
    return dict.fromkeys(LEARNT, slower) | terms


def recovered(  # what a recovery is like
    done: Work,
    true: Mapping[str, float],
    *,
    t_us: int = NOW_US,
    kind: Literal["drill", "restart"] = "drill",
    start_s: float = 0.1,
    noise: float = 1.0,
) -> PastRecovery:
    """Return a cold recovery of this work on such a machine."""
    names = [name for name in LEARNT if kind == "drill" or name != "blobs"]
    terms = [MeasuredTerm("start", start_s, 0)]
    for name in names:
        size, records = amounts(name, done)
        seconds = reference_s(name, done, DISK) * true[name] * noise
        terms.append(MeasuredTerm(name, seconds, size, records))
    return PastRecovery(
        t_us=t_us,
        total_s=sum(term.seconds for term in terms),
        kind=kind,
        terms=tuple(terms),
        cold_cache=kind == "drill",
        memory_bytes=200 * MB,
    )
