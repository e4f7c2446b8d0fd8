"""Quiet hours by the clock on the wall: across midnight, and where clocks are set."""

from __future__ import annotations

from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import pytest

from memwatch.actuators.notify.quiet import in_quiet_hours

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = (time(23), time(7))


def us(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1e6)


@pytest.mark.parametrize(
    ("span", "shown", "quiet"),
    [
        (NIGHT, "22:59:59", False),
        (NIGHT, "23:00:00", True),
        (NIGHT, "00:00:00", True),
        (NIGHT, "06:59:59", True),
        (NIGHT, "07:00:00", False),
        ((time(1), time(5)), "00:59:59", False),
        ((time(1), time(5)), "01:00:00", True),
        ((time(1), time(5)), "05:00:00", False),
        ((time(3), time(3)), "03:00:00", False),
    ],
)
def test_a_span_begins_and_ends_to_the_second(
    span: tuple[time, time], shown: str, quiet: bool
) -> None:
    assert in_quiet_hours(*span, us(f"2026-01-15T{shown}"), UTC) is quiet


def test_the_zone_decides() -> None:
    instant = us("2026-01-15T22:30:00")
    assert in_quiet_hours(*NIGHT, instant, BERLIN)
    assert not in_quiet_hours(*NIGHT, instant, UTC)
    assert not in_quiet_hours(*NIGHT, instant, ZoneInfo("America/New_York"))


@pytest.mark.parametrize(
    ("instant", "quiet"),
    [
        # 29 March 2026: at 01:00 UTC the clock goes from 02:00 to 03:00.
        ("2026-03-28T21:59:59", False),
        ("2026-03-28T22:00:00", True),
        ("2026-03-29T04:59:59", True),
        ("2026-03-29T05:00:00", False),
        # 25 October 2026: at 01:00 UTC it goes from 03:00 back to 02:00.
        ("2026-10-24T20:59:59", False),
        ("2026-10-24T21:00:00", True),
        ("2026-10-25T05:59:59", True),
        ("2026-10-25T06:00:00", False),
    ],
)
def test_a_night_in_which_the_clock_is_set_ends_by_the_clock(instant: str, quiet: bool) -> None:
    assert in_quiet_hours(*NIGHT, us(instant), BERLIN) is quiet


def test_an_hour_that_comes_twice_is_quiet_twice_and_one_left_out_is_not_missed() -> None:
    span = (time(2), time(2, 30))
    twice = [us("2026-10-25T00:10:00"), us("2026-10-25T01:10:00")]
    assert [in_quiet_hours(*span, one, BERLIN) for one in twice] == [True, True]
    around = [us("2026-03-29T00:59:59"), us("2026-03-29T01:00:00")]
    assert [in_quiet_hours(*span, one, BERLIN) for one in around] == [False, False]
    into_the_gap = (time(1, 30), time(2, 30))
    assert [in_quiet_hours(*into_the_gap, one, BERLIN) for one in around] == [True, False]
