"""Levels on recorded traces of real processes: they do not flap (leaks, 7.1)."""

from __future__ import annotations

import pytest

from memwatch.config.policy import Policy
from memwatch.domain.level import Level
from tests.engine import leakbench

pytestmark = [
    pytest.mark.skipif(
        not leakbench.CORPUS.is_dir(), reason="the corpus leakbench is not beside the checkout"
    ),
]


def test_levels_flap_at_most_1_5_times_a_day_where_the_literal_thresholds_do_5_3_times() -> None:
    def literally(trace: leakbench.Trace) -> list[tuple[float, Level]]:
        return leakbench.levels_of(trace, Policy(), "off", grows=False)

    literal = leakbench.count(literally, ("dev",))
    ours = leakbench.count(lambda trace: leakbench.levels_of(trace, Policy()), ("dev",))
    assert literal.flaps == pytest.approx(5.3, abs=0.1)
    assert ours.flaps <= 1.5
    assert ours.levels < literal.levels


def test_other_peoples_traces_flap_no_more() -> None:
    ours = leakbench.count(lambda trace: leakbench.levels_of(trace, Policy()), ("public",))
    assert ours.flaps <= 1.5
