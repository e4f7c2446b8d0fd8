"""Quantities in words: fixed, short, in the units people compare (MB = 10^6)."""

from __future__ import annotations

import time

_STEPS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def bytes_text(amount: float | None) -> str:
    """Return an amount of bytes in at most five characters and a sign.

    >>> [bytes_text(n) for n in (0, 999, 1500, 61_400_000, 5_130_000_000, -2_000_000, None)]
    ['0B', '999B', '1.5k', '61M', '5.1G', '-2.0M', '–']
    """
    if amount is None:
        return "–"
    sign, size = ("-", -amount) if amount < 0 else ("", amount)
    for step, unit in _STEPS:
        if size >= step * 0.9995:
            scaled = size / step
            return f"{sign}{scaled:.1f}{unit}" if scaled < 9.95 else f"{sign}{scaled:.0f}{unit}"
    return f"{sign}{size:.0f}B"


def duration_text(seconds: float | None) -> str:
    """Return a duration in its two largest units.

    >>> [duration_text(s) for s in (0.0004, 0.25, 3.14, 38, 249, 18720, 200000, None)]
    ['0.4ms', '0.25s', '3.1s', '38s', '4m09s', '5h12m', '2d07h', '–']
    """
    if seconds is None:
        return "–"
    if seconds < 0:
        return "-" + duration_text(-seconds)
    whole = round(seconds)
    if whole >= 10:
        return _long_duration(whole)
    if seconds < 0.01:
        return f"{seconds * 1e3:.1f}ms"
    return f"{seconds:.2f}s" if seconds < 1 else f"{seconds:.1f}s"


def _long_duration(seconds: int) -> str:
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m{seconds % 60:02d}s"
    if seconds < 86400:
        return f"{seconds // 3600}h{seconds % 3600 // 60:02d}m"
    return f"{seconds // 86400}d{seconds % 86400 // 3600:02d}h"


def rough_text(seconds: float | None) -> str:
    """Return a long time in one unit and at most five characters: how long ago, how long it held.

    >>> [rough_text(s) for s in (None, 38.2, 360, 5400, 6000, 10_800, 400_000)]
    ['–', '38s', '6min', '90min', '2h', '3h', '5d']
    """
    if seconds is None:
        return "–"
    if seconds < 60:
        return f"{max(int(seconds), 0)}s"
    if seconds < 5970:  # 99.5 minutes
        return f"{seconds / 60:.0f}min"
    return f"{seconds / 3600:.0f}h" if seconds < 172_800 else f"{seconds / 86_400:.0f}d"


def short_text(seconds: float | None) -> str:
    """Return a duration in at most five characters: its two largest units, or one of them.

    >>> [short_text(s) for s in (0.0004, 249, 750, 18720, 40_000, None)]
    ['0.4ms', '4m09s', '12min', '5h12m', '11h', '–']
    """
    text = duration_text(seconds)
    return text if len(text) <= 5 else rough_text(seconds)


NOTICED_S = 0.01
"""A shorter time is none that a person would notice."""


def brief_text(seconds: float) -> str:
    """Return a short duration; one that nobody would notice has no digits that change all the time.

    >>> [brief_text(s) for s in (0.0, 0.0042, 0.02, 74)]
    ['<10ms', '<10ms', '0.02s', '1m14s']
    """
    return "<10ms" if seconds < NOTICED_S else short_text(seconds)


def span_text(low_s: float, high_s: float) -> str:
    """Return a range of durations in at most eleven characters; of one unit, it stands once.

    >>> [span_text(18, 26), span_text(0.25, 3.1), span_text(58, 75), span_text(2, 2)]
    ['18–26s', '0.25–3.1s', '58s–1m15s', '2.0s']
    >>> [span_text(0.004, 0.02), span_text(0.001, 0.002)]
    ['0–0.02s', '<10ms']
    """
    low, high = brief_text(low_s), brief_text(high_s)
    if low == high:
        return low
    if low_s < NOTICED_S:
        return f"0–{high}"
    unit = high.lstrip("0123456789.")
    number = low.removesuffix(unit)
    same = unit.isalpha() and number.replace(".", "").isdigit()
    return f"{number if same else low}–{high}"


def estimate_text(low_s: float, likely_s: float, high_s: float) -> str:
    """Return a duration that is not known for sure.

    >>> estimate_text(18, 21, 26), estimate_text(0.001, 0.002, 0.004)
    ('21s (18–26s)', '<10ms')
    """
    likely = brief_text(likely_s)
    return likely if high_s < NOTICED_S else f"{likely} ({span_text(low_s, high_s)})"


def counted(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun.

    >>> counted(1, "plan"), counted(3, "plan"), counted(3, "loss", "losses")
    ('1 plan', '3 plans', '3 losses')
    """
    return f"{count} {one if count == 1 else many or one + 's'}"


def times_text(count: int) -> str:
    """Return how often something was.

    >>> times_text(1), times_text(3)
    ('once', '3 times')
    """
    return "once" if count == 1 else f"{count} times"


def change_text(share: float) -> str:
    """Return by how much something is more or less, in whole percent and with its sign.

    >>> [change_text(share) for share in (0.094, -0.08, 0.001, 1.5)]
    ['+9 %', '−8 %', '±0 %', '+150 %']
    """
    percent = round(share * 100)
    return f"{percent:+d} %".replace("-", "−") if percent else "±0 %"


def arrival_text(low_s: float, high_s: float) -> str:
    """Return a span of arrival times.

    >>> [arrival_text(0, 0), arrival_text(2460, 3300), arrival_text(40, 90000)]
    ['0s', '41–55min', '40s–1d01h']
    """
    if high_s < 1:
        return "0s"
    if low_s >= 60 and high_s < 7200:
        low, high = round(low_s / 60), round(high_s / 60)
        return f"{low}min" if low == high else f"{low}–{high}min"
    low_text, high_text = duration_text(low_s), duration_text(high_s)
    return low_text if low_text == high_text else f"{low_text}–{high_text}"


def share_text(share: float | None) -> str:
    """Return a share in whole percent.

    >>> [share_text(s) for s in (0.637, None)]
    ['64%', '–']
    """
    return "–" if share is None else f"{share * 100:.0f}%"


def window_label(seconds: float) -> str:
    """Return the name of a time window, as used in JSON and on screen.

    >>> [window_label(s) for s in (10, 60, 600, 3600, 86400)]
    ['10s', '60s', '10min', '60min', '24h']
    """
    if seconds < 120:
        return f"{seconds:g}s"
    return f"{seconds / 60:g}min" if seconds <= 7200 else f"{seconds / 3600:g}h"


def local_time_text(t_us: int, form: str) -> str:
    """Return a wall time in the local zone; a log may claim any, also beyond all calendars.

    >>> local_time_text(253_402_387_200_000_000, "%Y"), local_time_text(1 << 200, "%Y")
    ('10000', '–')
    """
    try:
        return time.strftime(form, time.localtime(t_us / 1e6))
    except (OverflowError, OSError, ValueError):
        return "–"
