"""Quiet hours: by the clock on the wall, so they hold across midnight and changes of the clock."""

from __future__ import annotations

from datetime import datetime, time, tzinfo


def in_quiet_hours(begin: time, end: time, t_us: int, zone: tzinfo | None) -> bool:
    """Return whether the local time of an instant lies in [begin, end).

    `zone` None is the zone of this machine. Equal times are no quiet hours. An hour that the clock
    shows twice is quiet twice, one that it leaves out is not missed: only what it shows counts.

    >>> from datetime import timezone
    >>> [in_quiet_hours(time(23), time(7), h * 3_600_000_000, timezone.utc) for h in (22, 23, 6, 7)]
    [False, True, True, False]
    """
    shown = datetime.fromtimestamp(t_us / 1e6, zone).time()
    if begin <= end:
        return begin <= shown < end
    return shown >= begin or shown < end
