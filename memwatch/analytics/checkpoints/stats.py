"""Figures over a course of checkpoints: how long, how large, how often. Source: metrics."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from memwatch.analytics.checkpoints.course import Seen, fulls, intervals_s, percentile, step_slope
from memwatch.domain.checkpoints import CheckpointStats

_GROWTH_FROM = 3
_TELLS_OF_SPEED = 1_000_000


def stats_of(
    course: Sequence[Seen], *, complete: int, failed: int, total_bytes: int | None
) -> CheckpointStats:
    """Return the figures of complete checkpoints, oldest first; counts and sum are the caller's."""
    durations = [seen.one.duration_s for seen in course if seen.one.duration_s is not None]
    sizes = [float(seen.one.bytes or 0) for seen in fulls(course)]
    between = intervals_s(course)
    return CheckpointStats(
        complete=complete,
        failed=failed,
        duration_p50_s=percentile(durations, 0.5),
        duration_p95_s=percentile(durations, 0.95),
        full_bytes_p50=percentile(sizes, 0.5),
        full_bytes_p95=percentile(sizes, 0.95),
        growth_bytes=step_slope(sizes) if len(sizes) >= _GROWTH_FROM else None,
        every_s=median(between) if between else None,
        total_bytes=total_bytes,
        write_bytes_per_s=_write_rate(course),
        time_share=time_share(course),
    )


def time_share(course: Sequence[Seen]) -> float | None:
    """Return the share of its time that a course spent in checkpoints; None before two of them.

    From the commit of the first, whose own time lies before that, to the commit of the last.
    """
    if len(course) < 2:
        return None
    span_s = (course[-1].at_us - course[0].at_us) / 1e6
    durations = [seen.one.duration_s for seen in course[1:] if seen.one.duration_s is not None]
    if span_s <= 0 or not durations:
        return None
    return min(sum(durations) / span_s, 1.0)


def _write_rate(course: Sequence[Seen]) -> float | None:
    """Return bytes a second over all large ones whose own bytes and time are known.

    Of a small one the time is that of its begin and end, and tells nothing of speed.
    """
    written, seconds = 0, 0.0
    for _, one in course:
        size = one.bytes if one.file_bytes is None else one.file_bytes
        if size is not None and size >= _TELLS_OF_SPEED and one.duration_s is not None:
            written += size
            seconds += one.duration_s
    return written / seconds if seconds > 0 else None
