"""What follows from an estimate: grade and fix, plain formula, memory, errors of the past."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from memwatch.analytics.recovery.errors import error_text
from memwatch.analytics.recovery.grade import fix_of, grade_of
from memwatch.analytics.recovery.memory import memory_need
from memwatch.analytics.recovery.plain import plain_formula
from memwatch.analytics.recovery.work import Work
from memwatch.domain.recovery import DiskRate, PastRecovery, RecoveryTerm, Span, TermName
from tests.analytics.recovery.builders import DISK, MB, machine, recovered, work


def _span(likely: float) -> Span:
    return Span(low=likely, likely=likely, high=likely)


def _term(name: TermName, seconds: float) -> RecoveryTerm:
    return RecoveryTerm(name=name, seconds=seconds, low_s=seconds, high_s=seconds, basis="drilled")


def test_grades_are_those_of_the_requirement() -> None:
    assert [grade_of(_span(s)) for s in (30, 30.1, 120, 120.1)] == [
        "good",
        "watch",
        "watch",
        "poor",
    ]


@pytest.mark.parametrize(
    ("terms", "done", "after_s", "words"),
    [
        ((10, 10, 9), work(10, 48), {"full": 5}, ""),
        ((10, 10, 48), work(10, 96), {"full": 20}, "a full checkpoint saves 48s"),
        ((10, 80, 9), work(900), {"full": 99}, "load 1m20s: the full checkpoint is too large"),
        ((100, 10, 9), work(900), {"full": 119}, "start 1m40s: the program's own"),
        ((10, 10, 99), work(900, 9), {"full": 119}, "replay 1m39s: too many records"),
    ],
)
def test_what_to_mend_is_the_chain_else_the_largest_term(
    terms: tuple[float, float, float], done: Work, after_s: dict[str, float], words: str
) -> None:
    names: tuple[TermName, ...] = ("start", "load", "replay")
    found = [_term(name, seconds) for name, seconds in zip(names, terms, strict=True)]
    fix = fix_of(_span(sum(terms)), found, done, after_s)
    assert words in fix
    assert bool(fix) == bool(words)


def test_the_chain_is_named_with_its_size() -> None:
    fix = fix_of(_span(100), [_term("replay", 90)], work(10, 96), {"full": 20})
    assert fix.startswith("chain of 48M and 28,800 records to replay: ")


def test_persisted_values_are_part_of_the_full_checkpoint_in_the_plain_formula() -> None:
    found = plain_formula(Work(full_bytes=100 * MB, blob_bytes=300 * MB), DISK, None, None)
    assert found is not None
    assert found.words.startswith("400M / ")


def test_the_plain_formula_is_that_of_the_requirement() -> None:
    done = Work(full_bytes=1_400 * MB, delta_bytes=18 * MB)
    found = plain_formula(done, DISK, None, 32.0)
    assert found is not None
    assert found.seconds == pytest.approx(1_400 / 400 + 18 / 500 + 32)
    assert found.words == "1.4G / 400M/s + 18M / 500M/s + 32s an experiment"
    assert plain_formula(Work(delta_bytes=5), DISK, None, 1.0) is None


def test_speeds_that_nobody_measured_are_said_to_be_such() -> None:
    done = Work(full_bytes=100 * MB, delta_bytes=1 * MB)
    found = plain_formula(done, None, None, None)
    assert found is not None
    assert found.words == "100M / 200M/s (assumed) + 1.0M / 300M/s (assumed)"
    reading = DiskRate(read_bytes_per_s=1e9, t_us=0)
    found = plain_formula(done, reading, 50e6, None)
    assert found is not None
    assert found.words == "100M / 50M/s (its checkpoints) + 1.0M / 1.0G/s"


def test_memory_of_a_restore_grows_with_what_is_loaded() -> None:
    drill = recovered(work(100), machine())
    need = memory_need(work(200), [drill], 5, ("policy", 300 * MB))
    assert need is not None
    assert need.bytes == pytest.approx(25 * MB + 2 * 175 * MB, rel=0.01)
    assert need.fits is False
    assert "1 drill" in need.how
    assert "policy 300M" in need.how
    small = memory_need(work(100), [drill], 5, ("policy", 300 * MB))
    assert small is not None
    assert small.fits


def test_memory_without_a_drill_is_assumed_from_the_tiers() -> None:
    restart = replace(recovered(work(100), machine(), kind="restart"), memory_bytes=0)
    need = memory_need(work(100), [restart], 40 * MB, None)
    assert need is not None
    assert (need.bytes, need.fits) == (105 * MB, None)
    assert need.how.startswith("assumed")
    assert memory_need(work(100), [restart], None, None) is None


def _past(error: float | None) -> PastRecovery:
    span = None if error is None else _span(1.0)
    return PastRecovery(t_us=1, total_s=1 + (error or 0), estimate=span)


def test_errors_are_those_of_the_newest_five() -> None:
    assert error_text([]) == error_text([_past(None)]) == ""
    assert error_text([_past(None), _past(0.09)]) == "last: +9 %"
    errors = (0.12, -0.08, 0.0, 0.05, None, 0.01, 3.0)
    assert error_text(map(_past, errors)) == "last 5: −8 … +12 %"
