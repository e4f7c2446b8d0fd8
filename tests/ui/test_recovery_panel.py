"""If it crashed now, as text: the answer first, then what it rests on, and what is wrong."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from memwatch.domain.checkpoints import Checkpoints
from memwatch.domain.recovery import (
    DiskRate,
    PastRecovery,
    Recovery,
    RecoveryBudget,
    RecoveryTerm,
)
from memwatch.ui.frame import Frame
from memwatch.ui.line import text_of
from memwatch.ui.panels.crash_evidence import recovery_facts
from memwatch.ui.panels.recovery import recovery, recovery_heading
from tests.ui import crash
from tests.ui.harness import frame_of, snapshot_of, texts

NOW_US = snapshot_of().t_us


def changed(**changes: object) -> Frame:
    return frame_of(snapshot=replace(snapshot_of(), **changes))


def shown(found: Recovery, width: int = 100, height: int = 20) -> str:
    return "\n".join(texts(recovery(changed(recovery=found), width, height)))


def test_the_answer_stands_first_and_each_term_says_what_it_rests_on() -> None:
    assert texts(recovery(frame_of(), 96, 16)) == [
        "back in 21s (18–26s)  good  drill 3h ago  last 5: −8 … +12 %",
        "term    takes       range of             rests on",
        "start   0.90s   0.77–1.1s                measured 2h ago: the last two starts",
        "load     9.1s     7.7–11s 1.4G           drilled 3h ago: 3 drills of this run, 6.5 s a GB",
        "read    0.20s  0.17–0.25s 18M            drilled 3h ago: 3 drills of this run",
        "replay    11s     9.2–14s 212k, 841 rec. assumed: 2-core machine, 78 records/s",
        "lose         3s  of experiment 100, redone",
        "at risk   3m12s  in the log only, 4 exp.",
        "memory     2.1G  fits: 1.5 × the state, of 7.9G free",
        "formula     24s  = 1.4G at 410M/s + 18M at 410M/s + 1 experiment of 8.7s",
        "drilled     19s  cold, 3h ago, hash matches",
        "last       4.2M  full    26s ago, took 0.10s",
        "next        18s  to go, 1 experiment since",
    ]


def test_where_there_is_little_room_the_terms_stand_side_by_side() -> None:
    assert texts(recovery(frame_of(), 42, 5)) == [
        "back in 21s (18–26s)  good  drill 3h ago",
        "start 0.90s + load 9.1s 1.4G",
        "+ read 0.20s 18M + replay ~11s 212k",
        "lose         3s  of experiment 100, redone",
        "at risk   3m12s  in the log only, 4 exp.",
    ]
    assert texts(recovery(frame_of(), 42, 1)) == ["back in 21s (18–26s)  good  drill 3h ago"]


def test_what_is_over_budget_or_does_not_fit_outlives_all_but_the_answer() -> None:
    over = crash.over_budget(crash.estimate(NOW_US))
    rows = texts(recovery(changed(recovery=over), 78, 4))
    assert rows == [
        "back in 1m14s (1m01s–1m37s)  watch  not drilled",
        "OVER BUDGET recovery 74 s is over your 60 s  F full checkpoint",
        "fix       chain of 48M: a full checkpoint saves 52 s",
        "memory     9.0G  DOES NOT FIT: 2 × the state, of 7.9G free",
    ]


def test_a_budget_that_is_kept_is_said_and_one_that_nothing_helps_has_no_key() -> None:
    found = crash.estimate(NOW_US)
    assert "within 30s" in shown(replace(found, budget=RecoveryBudget(recover_s=30.0)))
    said = ("recovery 21 s is over your 9 s",)
    hopeless = shown(replace(found, budget=RecoveryBudget(recover_s=9.0, over=said, beyond=said)))
    assert "OVER BUDGET recovery 21 s is over your 9 s  no checkpoint brings it under" in hopeless
    assert "within" not in hopeless


def test_an_assumption_stands_out_without_colour() -> None:
    found = crash.estimate(NOW_US)
    assert "~11s" in shown(found, 60, 6)
    assert "assumed" in shown(found, 60, 20)
    measured = RecoveryTerm(name="load", seconds=1.0, low_s=0.9, high_s=1.2, basis="measured")
    assert "~" not in shown(replace(found, terms=(measured,)), 60, 6)


@pytest.mark.parametrize(
    ("drill", "said"),
    [
        (
            PastRecovery(t_us=0, total_s=2.31, cold_cache=True, matches=True),
            "2.3s  cold, {}, hash matches",
        ),
        (PastRecovery(t_us=0, total_s=0.5, matches=None), "0.50s  warm, {}, no hash yet"),
        (
            PastRecovery(t_us=0, total_s=12, matches=False, lossy=True),
            "12s  warm, {}, HASH DIFFERS",
        ),
        (PastRecovery(t_us=0, total_s=12, matches=True, lossy=True), "12s  warm, {}, SOME LOST"),
    ],
)
def test_what_a_drill_measured_and_a_bad_one_outlives_the_terms(
    drill: PastRecovery, said: str
) -> None:
    drill = replace(drill, t_us=NOW_US - 300_000_000)
    found = replace(crash.estimate(NOW_US), drill=drill, past=(drill,))
    rows = shown(found).splitlines()
    (row,) = [row for row in rows if row.startswith("drilled")]
    assert row.split(maxsplit=1)[1] == said.format("5min ago")
    bad = drill.matches is False or drill.lossy
    assert any("drilled" in row for row in shown(found, 60, 2).splitlines()) == bad


def test_a_restart_is_called_one() -> None:
    restart = PastRecovery(t_us=NOW_US - 60_000_000, total_s=2.0, kind="restart")
    found = replace(crash.estimate(NOW_US), past=(restart,))
    assert "restart 1min ago" in shown(found).splitlines()[0]


def test_before_there_is_an_estimate_the_raw_figures_stand() -> None:
    frame = changed(checkpoints=Checkpoints(overdue=True, incomplete=("C-1",)), recovery=Recovery())
    rows = texts(recovery(frame, 60, 9))
    assert rows[0] == "not known yet: no start and no checkpoint was seen"
    assert rows[1] == "load full none that is complete"
    assert "lose      not known yet" in rows
    assert "next      OVERDUE" in rows
    assert rows[-1] == "broken    1 incomplete: C-1"


def test_of_a_store_only_its_load_is_told_and_all_since_is_lost() -> None:
    frame = changed(checkpoints=crash.trainer(NOW_US), recovery=crash.load_alone())
    rows = texts(recovery(frame, 78, 12))
    assert rows[0] == "load alone 6.6s (3.3–13s)"
    assert "lose      20m39s  all since the newest complete checkpoint" in rows
    assert not any("at risk" in row or "drill" in row for row in rows)


def test_a_run_that_is_over_does_not_speak_as_a_living_one() -> None:
    frame = changed(run=replace(snapshot_of().run, state="crashed"))
    rows = texts(recovery(frame, 78, 20))
    assert recovery_heading(frame) == "if it is started again"
    assert any(row.startswith("lost  ") for row in rows)
    assert any("before end" in row for row in rows)
    assert not any(row.startswith("next") for row in rows)


def test_any_number_of_rows_is_a_part_of_all_rows_in_their_order() -> None:
    frame = changed(recovery=crash.over_budget(crash.estimate(NOW_US)))
    for height in range(12):
        rows = [text_of(line) for line in recovery(frame, 78, height)]
        whole = iter([text_of(line) for line in recovery(frame, 78, max(height, 1))])
        assert len(rows) <= height
        assert all(row in whole for row in rows)


def test_the_evidence_says_how_old_the_rates_of_the_disk_are() -> None:
    snapshot = snapshot_of()
    assert ("disk", "not measured: its rates are assumed") in recovery_facts(snapshot)
    rate = DiskRate(
        read_bytes_per_s=1.4e9,
        write_bytes_per_s=8.02e8,
        t_us=NOW_US - 3 * 3_600_000_000,
        how="32M of our own, written and read cold",
    )
    known = replace(snapshot, recovery=replace(snapshot.recovery, disk=rate))
    said = dict(recovery_facts(known))["disk"]
    assert said == (
        "reads 1.4G/s, writes 802M/s, measured 3h ago: 32M of our own, written and read cold"
    )


def test_one_record_is_one_in_the_evidence() -> None:
    snapshot = snapshot_of()
    one = replace(snapshot.recovery, tail_bytes=90, tail_records=1)
    assert ("tail", "90 bytes, 1 record") in recovery_facts(replace(snapshot, recovery=one))
