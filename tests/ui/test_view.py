"""Zoom and pan are pure, and have ends."""

from __future__ import annotations

from memwatch.ui.view import (
    LADDER_S,
    Bounds,
    View,
    pan_back,
    pan_forward,
    to_now,
    toggle_freeze,
    window_s,
    zoom_in,
    zoom_out,
)

HOUR_US = 3_600_000_000
BOUNDS = Bounds(start_us=0, now_us=10 * HOUR_US, default_s=3600)


def test_zoom_in_ends_at_the_shortest_span() -> None:
    view = View()
    for _ in range(30):
        view = zoom_in(view, BOUNDS)
    assert window_s(view, BOUNDS) == LADDER_S[0]


def test_zoom_out_ends_when_the_whole_run_is_in_view() -> None:
    view = View()
    for _ in range(30):
        view = zoom_out(view, BOUNDS)
    assert window_s(view, BOUNDS) == 43_200  # the first span that holds ten hours


def test_zoom_out_then_in_is_where_it_was() -> None:
    assert window_s(zoom_in(zoom_out(View(), BOUNDS), BOUNDS), BOUNDS) == 3600


def test_pan_moves_a_quarter_and_stops_at_the_start_of_the_run() -> None:
    view = pan_back(View(), BOUNDS)
    assert view.end_us == BOUNDS.now_us - HOUR_US // 4
    for _ in range(60):
        view = pan_back(view, BOUNDS)
    assert view.end_us == HOUR_US  # the first hour of the run


def test_pan_forward_reaches_now_and_moves_on_with_it() -> None:
    view = pan_back(pan_back(View(), BOUNDS), BOUNDS)
    assert not view.live
    view = pan_forward(pan_forward(view, BOUNDS), BOUNDS)
    assert view.live
    assert pan_forward(view, BOUNDS) == view


def test_a_run_younger_than_the_span_cannot_be_panned() -> None:
    young = Bounds(start_us=0, now_us=HOUR_US // 2, default_s=3600)
    assert pan_back(View(), young) == View()


def test_to_now_ends_freeze_and_pan_but_keeps_the_zoom() -> None:
    view = toggle_freeze(pan_back(zoom_in(View(), BOUNDS), BOUNDS), BOUNDS)
    assert view.frozen
    assert to_now(view, BOUNDS) == View(window_s=1800)
