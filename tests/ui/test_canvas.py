"""The plot area, in glyphs."""

from __future__ import annotations

from memwatch.ui.charts.canvas import rows_of_glyphs
from memwatch.ui.charts.model import ChartModel, chart_model
from memwatch.ui.charts.picture import (
    at_right_edge,
    legend,
    picture,
    plot_columns,
    present,
)
from memwatch.ui.frame import Glyphs
from memwatch.ui.line import text_of, width_of
from tests.ui.charting import LIMITS, course, event
from tests.ui.harness import snapshot_of, texts

ASCII = Glyphs(tiers=("#", "=", "+", ":", "o"), unaccounted="/", line="-")


def drawn(model: ChartModel, glyphs: Glyphs = ASCII) -> list[str]:
    return rows_of_glyphs(model, glyphs)


def test_stack_gap_peak_and_thresholds() -> None:
    model = chart_model(
        course(
            [60, 60, None, 50, 50, 50],
            {"workspace": [20, 20, 20, 10, 30, 30], "recent": [20, 20, 20, 20, 10, 0]},
            peaks=[60, 60, None, 50, 90, 50],
        ),
        LIMITS,
        10,
    )
    assert drawn(model) == [
        "- - - ",  # limit
        "- - ' ",  # emergency, and a spike in the fifth column
        "- - - ",  # intervene
        "      ",
        "-/- - ",  # warn: what lies behind shows between its dashes; the third column is a gap
        "// ///",
        "== /=/",
        "== =##",
        "## =##",
        "## ###",
    ]


def test_frame_5000_is_as_cheap_as_frame_1_for_nothing_piles_up() -> None:
    import plotext

    model = chart_model(course([50, 60, 70], {"workspace": [20, 30, 40]}), LIMITS, 6)
    first = drawn(model)
    assert all(drawn(model) == first for _ in range(20))
    assert plotext._core._figure.monitor.x == []


def test_one_column_one_row_and_no_data_can_be_drawn() -> None:
    assert drawn(chart_model(course([50]), LIMITS, 1)) == ["-"]
    assert drawn(chart_model(course([None, None]), LIMITS, 2)) == ["  ", "  "]


def test_picture_has_axes_labels_marks_and_the_width_it_was_given() -> None:
    width = 80
    columns = plot_columns(width)
    shown = course([70.0] * columns, {"workspace": [30.0] * columns}, events=(event(4, "purge"),))
    model = chart_model(shown, LIMITS, 12)
    lines = picture(model, drawn(model), ASCII, width)
    assert [width_of(line) for line in lines] == [width] * 14
    rows = texts(lines)
    assert rows[0].startswith(" 100B│")
    assert rows[0].endswith("limit 100B")
    assert any(row.endswith("warn soft 60%") for row in rows)
    assert rows[-2] == " " * 10 + "p"
    assert rows[-1].startswith("     └┴08:00─")


def test_labels_are_short_where_there_is_little_room() -> None:
    columns = plot_columns(56)
    model = chart_model(course([70.0] * columns), LIMITS, 12)
    ends = [row.split()[-1] for row in texts(picture(model, drawn(model), ASCII, 56))[:12]]
    assert [end for end in ends if end.isalpha()] == ["limit", "hard", "intervene", "warn"]


def test_picture_says_when_nothing_was_recorded() -> None:
    model = chart_model(course([None] * 40), LIMITS, 6)
    rows = texts(picture(model, [], ASCII, 80))
    assert "nothing recorded in this span" in "".join(rows)
    assert "│" not in "".join(rows), "without data there is no scale"
    assert not any(row.endswith("B") for row in rows)


def test_legend_keeps_its_width_while_figures_change() -> None:
    values = present(snapshot_of())
    for width in (140, 100, 71, 60, 48):
        line = legend(values, ASCII, width)
        assert width_of(line) <= width
        assert [text for text, style in line if style.startswith("tier")] == ["#", "=", "+", ":"]


def test_full_names_fit_the_legend_at_80() -> None:
    text = text_of(legend(present(snapshot_of()), ASCII, 78))
    assert (
        text.replace("  ", " ")
        == "#workspace 30M =recent 11M +verified 14M :history 3.5M /unacc. 41M =99M "
    )


def test_the_legend_of_a_look_back_is_that_of_its_right_edge() -> None:
    past = course([50.0, 70.0], {"workspace": [20.0, 30.0]})
    values = at_right_edge(past)
    assert (values.tiers, values.unaccounted, values.tree) == ((("workspace", 30.0),), 40.0, 70.0)
    gap = at_right_edge(course([50.0, None], {"workspace": [20.0, 0.0]}))
    assert (gap.tiers, gap.unaccounted, gap.tree) == ((("workspace", None),), None, None)
