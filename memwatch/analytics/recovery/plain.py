"""The plain formula of R12, beside the estimate: in seconds, and in words with its figures."""

from __future__ import annotations

from typing import NamedTuple

from memwatch.analytics.recovery.work import Work
from memwatch.domain.recovery import DiskRate
from memwatch.domain.units import bytes_text, duration_text

ASSUMED_WRITE_BYTES_PER_S = 200e6
ASSUMED_READ_BYTES_PER_S = 300e6


class Plain(NamedTuple):
    """Its result."""

    seconds: float
    words: str


def plain_formula(
    work: Work,
    disk: DiskRate | None,
    checkpoint_bytes_per_s: float | None,
    mean_experiment_s: float | None,
) -> Plain | None:
    """Return full bytes / write speed + increments / read speed + one experiment; None without one.

    A full one is its own files and the persisted values that it refers to. Where the disk's write
    speed was not measured, that of the run's own checkpoints stands in.

    >>> disk = DiskRate(read_bytes_per_s=500e6, write_bytes_per_s=400e6, t_us=0)
    >>> plain_formula(Work(full_bytes=1_400_000_000, delta_bytes=18_000_000), disk, None, 32).words
    '1.4G / 400M/s + 18M / 500M/s + 32s an experiment'
    """
    if not work.full_bytes:
        return None
    write, write_words = _rate(
        disk.write_bytes_per_s if disk else None,
        checkpoint_bytes_per_s,
        ASSUMED_WRITE_BYTES_PER_S,
    )
    read, read_words = _rate(
        disk.read_bytes_per_s if disk else None, None, ASSUMED_READ_BYTES_PER_S
    )
    full_bytes = work.full_bytes + work.blob_bytes
    seconds = full_bytes / write + work.delta_bytes / read + (mean_experiment_s or 0.0)
    words = f"{bytes_text(full_bytes)} / {write_words}"
    if work.delta_bytes:
        words += f" + {bytes_text(work.delta_bytes)} / {read_words}"
    if mean_experiment_s is not None:
        words += f" + {duration_text(mean_experiment_s)} an experiment"
    return Plain(seconds, words)


def _rate(measured: float | None, instead: float | None, assumed: float) -> tuple[float, str]:
    """Return a rate that is above zero, and what it is in words."""
    if measured:
        return measured, f"{bytes_text(measured)}/s"
    if instead:
        return instead, f"{bytes_text(instead)}/s (its checkpoints)"
    return assumed, f"{bytes_text(assumed)}/s (assumed)"
