"""The estimate against recoveries of machines whose true costs are known."""

from __future__ import annotations

import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memwatch.analytics.recovery.costs import LEARNT, Costs, StartSeen, learn, shared
from memwatch.analytics.recovery.estimate import comparable, estimate, expected
from memwatch.analytics.recovery.work import Work
from memwatch.domain.recovery import PastRecovery, RecoveryTerm, Span
from tests.analytics.recovery.builders import DISK, NOW_US, machine, recovered, work

_STARTS = (StartSeen(NOW_US - 5_000_000, 0.5), StartSeen(NOW_US - 9_000_000, 0.52))
_SIZES = [work(full, chain) for full, chain in product((1, 10, 100, 1000), (0, 5, 50))]


def _terms(done: Work, costs: Costs) -> tuple[dict[str, RecoveryTerm], Span]:
    terms, span = estimate(done, costs, DISK, NOW_US)
    return {term.name: term for term in terms}, span


def test_an_untaught_machine_is_assumed_and_wide() -> None:
    terms, span = _terms(work(100, 5), Costs())
    assert {term.basis for term in terms.values()} == {"assumed"}
    assert list(terms) == ["start", "load", "blobs", "read", "replay"]
    assert span.high == pytest.approx(4 * span.low)
    assert span.likely == pytest.approx(sum(term.seconds for term in terms.values()))
    assert all(term.how and term.age_s is None for term in terms.values())


@pytest.mark.parametrize("true", [machine(0.5), machine(3), machine(1, load=2.5, replay=0.4)])
def test_one_drill_teaches_all_sizes(true: dict[str, float]) -> None:
    costs = learn([recovered(work(10, 5), true)], _STARTS)
    for size in _SIZES:
        terms, _ = estimate(size, costs, DISK, NOW_US)
        drill = recovered(size, true)
        span = comparable(terms, [term.name for term in drill.terms], 0.1)
        assert span is not None
        assert span.low <= drill.total_s <= span.high, size
        assert span.likely == pytest.approx(drill.total_s, rel=0.25), size
        assert span.high <= 2 * span.low * 1.0001, size


def test_a_size_that_was_drilled_is_known_whatever_the_shape_of_the_reference() -> None:
    """This machine is fast with small ones and slow with large ones."""
    small, large = work(20, 1), work(1000, 50)
    past = [recovered(large, machine(4), t_us=NOW_US - 1), recovered(small, machine(0.5))]
    costs = learn(past, _STARTS)
    for size, slower in ((small, 0.5), (large, 4)):
        terms, _ = _terms(size, costs)
        true = sum(term.seconds for term in recovered(size, machine(slower)).terms[1:])
        likely = sum(terms[name].seconds for name in LEARNT)
        assert likely == pytest.approx(true, rel=0.25), size


def test_a_small_term_that_was_never_there_before_does_not_widen_what_was_drilled() -> None:
    before = Work(full_bytes=100_000, full_entries=60, log_bytes=50_000, tail_bytes=9_000)
    costs = learn([recovered(before, machine(1.2), noise=1.1)], _STARTS)
    now = replace(before, blob_bytes=900_000, blob_count=40)
    terms, span = estimate(now, costs, DISK, NOW_US)
    by_name = {term.name: term for term in terms}
    assert by_name["blobs"].basis == "assumed", "the only drill had none"
    assert span.high <= 2 * span.low
    drilled = comparable(terms, by_name, 0.1)
    assert drilled is not None
    assert drilled.high <= 2 * drilled.low
    much = replace(before, blob_bytes=900_000_000, blob_count=40_000)
    _, span = estimate(much, costs, DISK, NOW_US)
    assert span.high > 2 * span.low, "then it is mostly assumed"


def test_a_term_that_nobody_thought_of_and_a_drill_found_is_drilled() -> None:
    done = Work(full_bytes=9_000, full_entries=40, blob_bytes=900_000, blob_count=4, log_bytes=9)
    thought = estimate(replace(done, blob_bytes=0, blob_count=0), Costs(), DISK, NOW_US)[0]
    drill = replace(recovered(done, machine(3)), expected=expected(thought))
    terms, _ = _terms(done, learn([drill], _STARTS))
    assert terms["blobs"].basis == "drilled"
    assert terms["blobs"].how.startswith("1 drill of this run")


def test_what_the_reference_takes_for_short_and_was_not_is_believed() -> None:
    """A few values that are a thousandth of themselves on disk: 54 ms to read half a kB."""
    done = Work(full_bytes=1_400, full_entries=40, blob_bytes=444, blob_count=3, log_bytes=1_000)
    true = machine(1, blobs=37)
    past = [recovered(done, true, t_us=NOW_US - number) for number in range(4)]
    costs = learn(past, _STARTS)
    took_s = {term.name: term.seconds for term in recovered(done, true).terms}
    terms, _ = _terms(done, costs)
    assert terms["blobs"].seconds == pytest.approx(took_s["blobs"], rel=0.25)
    assert terms["blobs"].low_s <= took_s["blobs"] <= terms["blobs"].high_s
    blip = learn([recovered(done, machine(1, replay=8))], _STARTS)
    terms, _ = _terms(done, blip)
    assert terms["replay"].seconds < 2 * took_s["replay"], "three milliseconds are what is going on"


def test_nine_of_ten_noisy_drills_lie_inside_and_the_range_narrows() -> None:
    draw = random.Random(5)
    done, past, inside, widths = work(20, 4), list[PastRecovery](), 0, list[float]()
    for number in range(60):
        noise = draw.lognormvariate(0, 0.09)
        drill = recovered(done, machine(1.7), t_us=NOW_US + number, noise=noise)
        if past:
            terms, _ = estimate(done, learn(past[:20], _STARTS), DISK, NOW_US)
            span = comparable(terms, [term.name for term in drill.terms], 0.1)
            assert span is not None
            inside += span.low <= drill.total_s <= span.high
            widths.append(span.high / span.low)
            assert span.high <= 2 * span.low
        past.insert(0, drill)
    assert inside >= 0.9 * 59
    assert sum(widths[-10:]) < 10 * widths[0]


def test_one_outlier_among_drills_moves_little() -> None:
    usual = [recovered(work(20, 4), machine(), t_us=NOW_US - n) for n in range(1, 5)]
    odd = recovered(work(20, 4), machine(6), t_us=NOW_US)
    _, before = estimate(work(20, 4), learn(usual, _STARTS), DISK, NOW_US)
    _, after = estimate(work(20, 4), learn([odd, *usual], _STARTS), DISK, NOW_US)
    assert after.likely == pytest.approx(before.likely, rel=0.05)


def test_a_drill_that_others_kept_from_the_processor_teaches_less() -> None:
    """The calm ones are older, and fewer."""
    calm = [recovered(work(20, 4), machine(), t_us=NOW_US - n) for n in (8, 9)]
    busy = [recovered(work(20, 4), machine(3), t_us=NOW_US - n) for n in (1, 2)]
    disturbed = [replace(one, waited_s=one.total_s * 0.66) for one in busy]
    _, misled = estimate(work(20, 4), learn([*busy, *calm], _STARTS), DISK, NOW_US)
    _, span = estimate(work(20, 4), learn([*disturbed, *calm], _STARTS), DISK, NOW_US)
    true = sum(term.seconds for term in calm[0].terms[1:])
    assert span.likely - 0.5 == pytest.approx(true, rel=0.25)
    assert misled.likely - 0.5 > 2 * true


def test_a_short_first_drill_that_was_kept_waiting_is_not_followed_far() -> None:
    """Of 3 ms a single measurement of 24 is what else the machine did."""
    tiny = work(0.01)
    terms, _ = _terms(tiny, learn([recovered(tiny, machine(8))], _STARTS))
    untaught, _ = _terms(tiny, learn([], _STARTS))
    assert terms["load"].seconds < 3 * untaught["load"].seconds


def test_an_error_about_the_work_comes_again_in_the_same_run_only() -> None:
    """Three of four values that the chain refers to are not needed any more."""
    thought, real = (
        Work(blob_bytes=80_000_000, blob_count=40),
        Work(blob_bytes=20_000_000, blob_count=10),
    )
    terms, _ = estimate(thought, Costs(), DISK, NOW_US)
    drill = recovered(real, machine())
    kept = PastRecovery(
        t_us=drill.t_us,
        total_s=drill.total_s,
        terms=drill.terms,
        cold_cache=True,
        expected=expected(terms),
    )
    own, _ = _terms(thought, learn([kept], _STARTS))
    others, _ = _terms(thought, learn([], _STARTS, shared(learn([kept]), None)))
    took = {term.name: term.seconds for term in drill.terms}
    assert own["blobs"].seconds == pytest.approx(took["blobs"], rel=0.15)
    assert others["blobs"].seconds == pytest.approx(4 * took["blobs"], rel=0.15)


def test_other_runs_teach_until_the_run_has_drills_of_its_own() -> None:
    host = shared(learn([recovered(work(10, 5), machine(3))]), None)
    terms, _ = _terms(work(10, 5), learn([], _STARTS, host))
    assert terms["load"].basis == "drilled"
    assert "other runs" in terms["load"].how
    own = recovered(work(10, 5), machine(1), t_us=NOW_US + 1)
    terms, _ = _terms(work(10, 5), learn([own], _STARTS, host))
    assert "1 drill of this run" in terms["load"].how
    took = next(term.seconds for term in own.terms if term.name == "load")
    assert terms["load"].seconds == pytest.approx(took, rel=0.1)


def test_a_restart_teaches_start_and_replay_and_is_called_measured() -> None:
    restart = recovered(work(10, 5), machine(2), kind="restart", t_us=NOW_US - 60_000_000)
    terms, _ = _terms(work(10, 5), learn([restart], _STARTS))
    took = {term.name: term.seconds for term in restart.terms}
    assert terms["replay"].seconds == pytest.approx(took["replay"], rel=0.1)
    assert (terms["replay"].basis, terms["replay"].age_s) == ("measured", 60)
    assert "1 restart of this run" in terms["replay"].how
    assert terms["blobs"].basis == "assumed", "a restart reads none"


def test_the_start_is_that_of_the_agents_own_starts() -> None:
    terms, _ = _terms(work(1), learn([], _STARTS, None, "demo"))
    start = terms["start"]
    assert start.seconds == pytest.approx(0.5, rel=0.05)
    assert (start.basis, start.age_s) == ("measured", 5)
    assert start.low_s < 0.5 < start.high_s
    kept = shared(learn([], _STARTS, None, "demo"), None)
    terms, _ = _terms(work(1), learn([], [], kept, "demo"))
    assert terms["start"].basis == "measured", "those of an earlier run of the same agent"
    terms, _ = _terms(work(1), learn([], [], kept, "other"))
    assert terms["start"].basis == "assumed"


def test_a_start_that_makes_up_the_whole_has_no_wider_range_than_that() -> None:
    apart = (StartSeen(NOW_US - 2, 0.43), StartSeen(NOW_US - 1, 0.2))
    past = [recovered(work(0.01), machine())]
    terms, span = _terms(work(0.01), learn(past, apart))
    assert terms["start"].seconds > 0.9 * span.likely
    assert terms["start"].high_s < span.high
    assert terms["start"].low_s > 0.9 * span.low


def test_what_there_is_nothing_of_has_no_term() -> None:
    terms, _ = _terms(Work(log_bytes=5000, tail_bytes=5000, tail_records=50), Costs())
    assert list(terms) == ["start", "read", "replay"]


def test_a_comparison_takes_the_terms_that_a_recovery_has() -> None:
    terms, _ = estimate(work(10, 5), learn([], _STARTS), DISK, NOW_US)
    known = {term.name: term for term in terms}
    span = comparable(terms, ["load", "read"])
    assert span is not None
    assert span.likely == pytest.approx(known["load"].seconds + known["read"].seconds)
    span = comparable(terms, ["start", "load"], start_s=7.0)
    assert span is not None
    assert span.likely == pytest.approx(known["load"].seconds + 7)
    assert comparable((), ["load"]) is None


@given(
    st.lists(
        st.tuples(st.floats(0, 1e6), st.integers(0, 1 << 40), st.integers(0, 1 << 30)), max_size=8
    ),
    st.floats(0, 1000),
    st.floats(0, 1000),
)
def test_whatever_was_measured_the_range_is_one(
    told: list[tuple[float, int, int]], full_mb: float, chain_mb: float
) -> None:
    past = []
    for number, (seconds, size, records) in enumerate(told):
        done = Work(full_bytes=size, blob_bytes=size, log_bytes=size, tail_records=records)
        drill = recovered(done, machine(), t_us=number)
        past.append(
            PastRecovery(t_us=number, total_s=seconds, terms=drill.terms, cold_cache=bool(records))
        )
    terms, span = estimate(work(full_mb, chain_mb), learn(past, _STARTS), DISK, NOW_US)
    assert 0 < span.low <= span.likely <= span.high < float("inf")
    if all(term.basis != "assumed" for term in terms):
        assert span.high <= 2 * span.low
    for term in terms:
        assert 0 < term.low_s <= term.seconds <= term.high_s
        assert term.high_s <= span.high * (1 + 1e-9), "no part takes longer than the whole"
