"""What a chart shows, in whole cells."""

from __future__ import annotations

import math
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memwatch.domain.intervention import Intervention, Verdict
from memwatch.domain.sample import GAP, Column
from memwatch.domain.snapshot import Event, Limits
from memwatch.ui.charts.axis import value_top
from memwatch.ui.charts.course import Course, fetch, from_the_left, span_of
from memwatch.ui.charts.deeds import deed_marks
from memwatch.ui.charts.model import ChartModel, chart_model
from memwatch.ui.view import Bounds, View
from tests.ui.charting import LIMITS, T0_US, course, event
from tests.ui.fake_session import FakeRun, FakeSession


def model_of(shown: Course, rows: int = 10) -> ChartModel:
    return chart_model(shown, LIMITS, rows)


def test_layers_stack_and_the_top_one_is_the_process_tree() -> None:
    model = model_of(course([90, 100], {"workspace": [20, 30], "recent": [10, 10]}))
    assert model.layers == ((2, 3), (3, 4), (9, 10))


def test_tiers_that_claim_more_than_the_tree_holds_leave_nothing_unaccounted_for() -> None:
    model = model_of(course([50, 50], {"workspace": [60, 50]}))
    assert model.layers == ((6, 5), (6, 5))


def test_a_gap_is_an_empty_column_whatever_the_tiers_say() -> None:
    model = model_of(course([50, None, 50], {"workspace": [20, 20, 20]}))
    assert model.layers == ((2, 0, 2), (5, 0, 5))


def test_a_spike_inside_a_column_is_kept() -> None:
    model = model_of(course([30, 30, 30], peaks=[30, 90, 31]))
    assert model.peaks == (0, 9, 0)


def test_thresholds_lie_at_their_share_of_the_limit_and_say_so() -> None:
    model = model_of(course([50]), rows=20)
    labels = {line.row: line.label for line in model.thresholds}
    assert labels == {
        20: "limit 100B",
        19: "hard 95%",
        18: "emergency 90%",
        15: "intervene 75%",
        12: "warn soft 60%",
    }


def test_thresholds_that_share_a_row_share_a_label() -> None:
    labels = [line.label for line in model_of(course([50]), rows=8).thresholds]
    assert labels == ["warn soft 60%", "intervene 75%", "emergency 90%", "limit 100B hard95"]


def test_low_usage_scales_to_the_data_and_says_where_the_next_threshold_is() -> None:
    model = model_of(course([10, 12]))
    assert model.top_bytes == 15
    assert model.thresholds == ()
    assert model.beyond == "warn +48B"


def test_the_scale_comes_down_again() -> None:
    high = chart_model(course([20]), Limits(), 10)
    low = chart_model(course([5]), Limits(), 10, high.top_bytes)
    assert (high.top_bytes, low.top_bytes) == (30, 6)


def test_the_scale_does_not_flicker_around_a_step() -> None:
    tops = []
    top = None
    for peak in (39, 41, 39, 41, 39):
        top = value_top(peak, None, top)
        tops.append(top)
    assert len(set(tops)) == 1
    assert value_top(26, 100) == 100
    assert value_top(22, 100, 100) == 100
    assert value_top(19, 100, 100) < 100


def test_over_the_limit_the_chart_grows_above_it() -> None:
    model = model_of(course([130]))
    assert model.top_bytes == 150
    assert model.thresholds[-1].label.startswith("limit")
    assert model.thresholds[-1].row < model.rows


def test_no_limit_means_no_thresholds() -> None:
    model = chart_model(course([50]), Limits(), 10)
    assert (model.thresholds, model.beyond) == ((), "")


def test_nothing_recorded_is_said() -> None:
    assert model_of(course([None, None])).empty
    assert not model_of(course([None, 1])).empty


def test_marks_stand_in_their_column_and_the_gravest_wins() -> None:
    events = (
        event(1, "checkpoint.incremental"),
        event(2, "purge"),
        event(2, "checkpoint.full"),
        event(3, "phase", "phase x"),
        event(4, "note"),
        event(4, "fault", severity="error"),
        event(5, "experiment"),
    )
    model = model_of(course([1.0] * 7, events=events))
    assert [(column, glyph) for column, glyph, _ in model.marks] == [
        (1, "c"),
        (2, "C"),
        (3, "▏"),
        (4, "!"),
    ]


def test_what_was_done_is_marked_and_what_was_in_vain_has_a_cross() -> None:
    events = (event(1, "purge"), event(4, "purge"))
    deeds = deed_marks(
        Intervention(id=f"{n}", action=action, verdict=verdict, asked_at_us=event(n, "").t_us)
        for n, action, verdict in DONE
    )
    model = model_of(replace(course([1.0] * 12, events=events), deeds=deeds))
    marks = "".join({c: g for c, g, _ in model.marks}.get(n, " ") for n in range(12))
    assert marks == " p×zp g×kxR "


DONE: tuple[tuple[int, str, Verdict], ...] = (
    (1, "purge", "none"),
    (3, "pause", "pending"),
    (4, "purge", "effective"),
    (6, "reclaim", "worse"),
    (8, "compact", "effective"),
    (9, "abort-experiment", "unmeasured"),
    (10, "restart", "effective"),
)


def test_many_purges_do_not_crowd_other_marks_out_and_unknown_ones_are_said() -> None:
    class Busy(OddSession):
        def events(
            self,
            after: int,
            limit: int,
            t0_us: int | None = None,
            t1_us: int | None = None,
            kinds: tuple[str, ...] = (),
        ) -> list[Event]:
            early = event(0, "checkpoint.full")
            purges = [event(5, "purge")] * 5000
            return [e for e in (early, *purges) if not kinds or e.kind in kinds][-limit:]

    span = span_of(
        View(end_us=event(9, "").t_us), Bounds(start_us=0, now_us=T0_US * 2, default_s=600), 10
    )
    found = fetch(Busy([50.0] * 10), span, ())
    glyphs = [(column, glyph) for column, glyph, _ in model_of(found).marks]
    assert glyphs == [(0, "C"), (4, "…"), (5, "p")]


def test_a_phase_is_named_where_there_is_room() -> None:
    events = (event(0, "phase", "phase accumulation"), event(4, "purge"))
    crowded = model_of(course([1.0] * 20, events=events))
    assert "".join(glyph for _, glyph, _ in crowded.marks) == "▏p"
    alone = model_of(course([1.0] * 20, events=events[:1]))
    assert "".join(glyph for _, glyph, _ in sorted(alone.marks)) == "▏accumulation"


def test_time_ticks_are_round_and_far_enough_apart() -> None:
    ticks = model_of(course([1.0] * 100)).ticks
    columns = [column for column, _ in ticks]
    assert all(b - a >= 16 for a, b in pairwise(columns))
    assert [label for _, label in ticks] == ["08:00", "08:30", "09:00", "09:30"]


@given(
    st.lists(
        st.one_of(st.none(), st.floats(0, 1e13), st.just(math.inf), st.just(math.nan)),
        min_size=1,
        max_size=40,
    ),
    st.integers(1, 40),
)
def test_any_numbers_give_a_chart(values: list[float | None], rows: int) -> None:
    session = OddSession(values)
    span = span_of(View(end_us=T0_US), Bounds(start_us=0, now_us=T0_US, default_s=60), len(values))
    model = chart_model(fetch(session, span, ("workspace",)), LIMITS, rows)
    for layer in model.layers:
        assert all(0 <= filled <= rows for filled in layer)


class OddSession(FakeSession):
    """Answers with the numbers it was given, whatever they are."""

    def __init__(self, values: list[float | None]) -> None:
        super().__init__(FakeRun())
        self._values = values

    def series(self, resource: str, t0_us: int, t1_us: int, columns: int) -> list[Column]:
        return [GAP if value is None else Column(value, value, value) for value in self._values]


def test_a_tier_holds_its_value_between_two_samples_but_not_for_ever() -> None:
    class Sparse(OddSession):
        def series(self, resource: str, t0_us: int, t1_us: int, columns: int) -> list[Column]:
            if resource == "memory":
                return [Column(9.0, 9.0, 9.0)] * columns
            return [Column(4.0, 4.0, 4.0), *[GAP] * (columns - 1)]

    bounds = Bounds(start_us=0, now_us=T0_US, default_s=300)
    found = fetch(Sparse([]), span_of(View(end_us=T0_US), bounds, 10), ("workspace",))  # 30 s each
    assert found.tiers[0][1] == (4.0, 4.0, *[0.0] * 8)


def test_more_than_five_tiers_share_the_last_layer() -> None:
    session = OddSession([10.0])
    span = span_of(View(end_us=T0_US), Bounds(start_us=0, now_us=T0_US, default_s=60), 1)
    names = tuple("abcdefg")
    layers = fetch(session, span, names).tiers
    assert [name for name, _ in layers] == ["a", "b", "c", "d", "others"]
    assert layers[-1][1] == (30.0,)


def test_columns_lie_on_a_grid_that_does_not_move() -> None:
    later = [
        span_of(View(), Bounds(start_us=0, now_us=T0_US + second * 1_000_000, default_s=3600), 100)
        for second in range(0, 600, 7)
    ]
    assert {span.step_us for span in later} == {36_000_000}
    firsts = sorted({span.first for span in later})
    assert len(firsts) <= 4  # ten minutes are 17 columns: it moves on by eight at a time
    assert all(span.t1_us >= span.now_us for span in later)


def test_what_is_young_fills_up_from_the_left() -> None:
    young = course([None, None, 5.0, None, 7.0], {"workspace": [0, 0, 1, 1, 2]})
    moved = from_the_left(young)
    assert moved.memory == (5.0, None, 7.0, None, None)
    assert moved.tiers == (("workspace", (1, 1, 2, 0.0, 0.0)),)
    assert moved.span.first == young.span.first + 2
    assert from_the_left(moved) is moved
