"""Values -> words and digits of fixed, short width. Pure; times in the zone of this terminal."""

from __future__ import annotations

from memwatch.domain.level import Level
from memwatch.domain.snapshot import Word
from memwatch.domain.units import bytes_text, duration_text, local_time_text

DAY_S = 86_400


def clock_text(t_us: int, *, seconds: bool = True) -> str:
    """Return the local time of day."""
    return local_time_text(t_us, "%H:%M:%S" if seconds else "%H:%M")


def moment_text(t_us: int, now_us: int, *, seconds: bool = False) -> str:
    """Return the local time of day, with the date when it is not within a day of `now_us`."""
    if abs(now_us - t_us) < DAY_S * 1_000_000:
        return clock_text(t_us, seconds=seconds)
    return local_time_text(t_us, "%m-%d %H:%M")


def rate_text(per_min: float | None) -> str:
    """Return a growth in bytes a minute: sign and at most five characters.

    >>> [rate_text(r) for r in (58_200_000, -1500, 0, 12.0, None)]
    ['+58M', '-1.5k', '0', '0', '–']
    """
    if per_min is None:
        return "–"
    if abs(per_min) < 1000:
        return "0"  # below a kilobyte a minute is no growth a person asks about
    sign = "+" if per_min > 0 else "-"
    return sign + bytes_text(abs(per_min))


def count_text(count: int | None) -> str:
    """Return a count in at most five characters.

    >>> [count_text(n) for n in (None, 7, 12345, 4_100_000)]
    ['–', '7', '12k', '4.1M']
    """
    if count is None:
        return "–"
    return str(count) if count < 10_000 else bytes_text(count)


def percent_text(percent: float | None) -> str:
    """Return percent with one digit where it matters.

    >>> [percent_text(p) for p in (None, 0.34, 12.6)]
    ['–', '0.3%', '13%']
    """
    if percent is None:
        return "–"
    return f"{percent:.1f}%" if percent < 9.95 else f"{percent:.0f}%"


def speed_text(bytes_per_s: float | None) -> str:
    """Return what is written to the terminal, always in kB/s, so that the digits stay in place.

    >>> [speed_text(n) for n in (None, 430.0, 12_600)]
    ['–', '0.4kB/s', '13kB/s']
    """
    if bytes_per_s is None:
        return "–"
    kilo = bytes_per_s / 1000
    return f"{kilo:.1f}kB/s" if kilo < 9.95 else f"{kilo:.0f}kB/s"


def age_text(seconds: float | None) -> str:
    """Return an age in whole seconds, minutes or hours: calmer than tenths.

    >>> [age_text(s) for s in (None, -1.0, 0.4, 12.7, 249.0)]
    ['–', '0s', '0s', '12s', '4m09s']
    """
    if seconds is None:
        return "–"
    return f"{max(int(seconds), 0)}s" if seconds < 10 else duration_text(float(int(seconds)))


WORD_STYLES: dict[Word, str] = {
    "ok": "ok",
    "watch": "watch",
    "WARN": "warn",
    "ACT": "act",
    "CRIT": "crit",
    "no data": "nodata",
}
"""Name of the style for each word of a light."""

LEVEL_STYLES: dict[Level, str] = {
    "normal": "",
    "warn": "warn",
    "intervene": "act",
    "emergency": "crit",
    "hard": "crit",
}
"""Name of the style for each level."""
