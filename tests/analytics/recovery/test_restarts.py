"""Starts and restarts as a log tells them, its segments read in any order."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from memwatch.analytics.recovery.restarts import Restarts
from memwatch.domain.record import Record

_T0 = 1_800_000_000_000_000


def _record(lsn: int, kind: str, members: dict[str, Any], m_us: int = 0) -> Record:
    return Record(lsn, _T0 + lsn * 1_000_000, m_us or lsn * 1_000_000, kind, members)


def _begin(lsn: int, up_us: int | None = 400_000) -> Record:
    return _record(lsn, "run.begin", {} if up_us is None else {"up_us": up_us})


def _recovery(lsn: int, m_us: int, **members: Any) -> Record:
    term = {"us": 60_000, "bytes": 1000, "records": 7}
    terms = {"load": term, "read": term, "replay": term}
    told = {"duration_us": 200_000, "terms": terms, "state_bytes": 5000, "lost": []}
    return _record(lsn, "recovery", told | members, m_us)


def _folded(*records: Record) -> Restarts:
    restarts = Restarts()
    for record in records:
        restarts.take(record)
    return restarts


def test_a_restart_is_over_when_the_run_goes_on() -> None:
    restarts = _folded(_begin(1), _begin(50), _recovery(52, 50_030_000))
    (done,) = restarts.restarts()
    assert (done.kind, done.total_s, done.t_us) == ("restart", 0.43, _T0 + 52_000_000)
    took = {term.name: (term.seconds, term.bytes, term.records) for term in done.terms}
    assert took["start"] == (0.2, 0, 0), "the recovery aside"
    assert took["replay"] == (0.06, 1000, 7)
    assert (done.bytes, done.state_bytes, done.lossy) == (2000, 5000, False)
    assert restarts.began(done).t_us == _T0 + 50_000_000


def test_each_start_tells_how_long_it_took() -> None:
    starts = _folded(_begin(1), _begin(50), _recovery(52, 0)).starts()
    assert [(seen.t_us, seen.seconds) for seen in starts] == [
        (_T0 + 50_000_000, 0.2),
        (_T0 + 1_000_000, 0.4),
    ]


def test_a_recovery_belongs_to_the_start_before_it() -> None:
    records = (_begin(1), _begin(50), _recovery(52, 0), _begin(90, 500_000), _recovery(92, 0))
    expected = _folded(*records)
    for order in permutations(records):
        found = _folded(*order)
        assert found.starts() == expected.starts()
        assert found.restarts() == expected.restarts()
    assert [done.terms[0].seconds for done in expected.restarts()] == [0.3, 0.2]


def test_what_is_not_told_or_nonsense_teaches_nothing() -> None:
    assert _folded(_begin(1, None)).starts() == ()
    assert _folded(_begin(1, 100_000), _recovery(2, 0)).starts() == (), "shorter than its recovery"
    assert _folded(_begin(1), _recovery(2, 0, terms="all")).restarts() == ()
    assert _folded(_begin(1), _recovery(2, 0, duration_us="long")).starts() == ()
    odd = {"load": {"us": -5, "bytes": "x", "records": None}, "read": 3}
    (done,) = _folded(_begin(1), _recovery(2, 0, terms=odd)).restarts()
    assert [(term.name, term.seconds, term.bytes) for term in done.terms[1:]] == [("load", 0.0, 0)]


def test_of_very_many_the_newest_are_kept() -> None:
    restarts = _folded(*(_begin(lsn) for lsn in range(1, 100)))
    assert len(restarts.starts()) < 20
    assert restarts.starts()[0].t_us == _T0 + 99_000_000
