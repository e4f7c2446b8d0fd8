"""The ten lines tell what the logs hold, figure by figure, and say what they cannot know."""

from __future__ import annotations

from typing import Any

import pytest

from memwatch.analytics.report.model import Report, Stay
from memwatch.analytics.report.words import when_text
from memwatch.domain.intervention import Intervention, ResourceEffect
from memwatch.domain.recovery import PastRecovery, Recovery, RecoveryBudget, Span
from tests.analytics.report.night import MB, agent_log, guard_log, snapshot, told
from tests.builders import T0_US, record


def line(report: Report, label: str) -> str:
    return next(one.text for one in report.lines if one.label == label)


def test_there_are_ten_lines_whatever_is_known() -> None:
    full = told(agent_log().records, guard_log().records)
    for report in (full, told([], []), told(agent_log().records, []), told([], [], snapshot=None)):
        assert len(report.lines) == 10
        assert all(one.text.endswith(".") for one in report.lines)


def test_an_hour_is_told_as_it_was() -> None:
    report = told(agent_log().records, guard_log().records)
    assert report.span.seconds == 3600
    assert "The guard watched all of it, and it was allowed to act." in line(report, "Run")
    assert line(report, "Work") == ("4 experiments ended (2 kept, 2 discarded), 4 an hour; best 2.")
    assert "At most 700M, 70% of 1.0G (policy)" in line(report, "Memory")
    assert "100M at first, 320M at the end" in line(report, "Memory")
    assert line(report, "Levels") == (
        "Intervene 1m00s (once), warn 9m00s (2 times); never emergency or hard."
    )
    assert line(report, "Guard") == (
        "Made 6 plans: 3 helped, 3 had no effect. The agent was paused for 1m00s in all. "
        "People asked once."
    )
    assert line(report, "Checkpoints").startswith("1 complete (1 full); 1 failed; p95 2.0s")
    assert "Back in 10s (8.0–12s), good, from where it ended; at worst 50s" in line(
        report, "If it crashed"
    )
    assert "1m40s of unfinished experiments to do again; no record lost" in line(report, "Lost")
    assert "nobody watched for 1m40s" in line(report, "Lost")
    assert (
        "1 alert in this time, all over. First: plans of levels.warn helped in none of 3"
        in line(report, "To do")
    )


def test_tables_hold_the_same_figures() -> None:
    report = told(agent_log().records, guard_log().records)
    assert report.levels[0] == Stay(name="intervene", seconds=60.0, times=1)
    assert [(row.rule, row.effective, row.freed_bytes) for row in report.plans] == [
        ("levels.warn", 0, 0.0),
        ("levels.warn.escalate", 3, 420.0 * MB),
    ]
    (death,) = report.starts
    assert (death.experiment, death.redo_s, death.down_s) == (5, 100.0, 30.0)
    assert death.recovered == "full-1, 2 deltas, 9 records in 0.5s"
    assert [(row.tier, row.cause, row.freed_bytes) for row in report.claims] == [
        ("workspace", "engine", 4 * MB)
    ]
    assert report.errors == {"oom: it was close": 1}
    assert report.requests == {"purge done": 1}
    assert [one.lasted_s for one in report.alerts] == [55.0]
    names = [one.name for one in report.resources]
    assert names == ["unaccounted", "workspace"]


def test_a_shorter_time_is_told_by_itself_with_the_states_it_begins_in() -> None:
    report = told(agent_log().records, guard_log().records, since_s=930)
    assert report.experiments.by_status == {"discarded": 1, "kept": 1}
    assert [(stay.name, stay.times) for stay in report.levels] == [
        ("intervene", 0),
        ("warn", 1),
        ("normal", 1),
    ]
    assert sum(row.plans for row in report.plans) == 0
    assert report.alert_count == 1, "it stood when this time began"
    late = told(agent_log().records, guard_log().records, since_s=9000)
    assert late.notes == ("Nothing was written in this time.",)
    assert late.experiments.by_status == {}


def test_what_was_measured_ten_seconds_after_goes_before_what_the_engine_saw_at_once() -> None:
    guard = guard_log().records
    said = line(told(agent_log().records, guard), "What helped")
    assert said.startswith(
        "3 escalations of warn freed 420M in all, as the engine saw it right after each."
    )
    held: dict[str, Any] = {"id": "p", "action": "plan warn", "origin": "engine"}
    held |= {"verdict": "effective", "freed_bytes": 60.0 * MB}
    held["effects"] = [{"resource": "memory", "freed": 60.0 * MB}]
    guard.append(record(300, "efficacy", 1400, at="10s", **held))
    said = line(told(agent_log().records, guard), "What helped")
    assert said.startswith("Freed most: ")
    assert "60M (once)" in said
    assert "420M" not in said


def test_an_alert_that_stood_before_the_time_told_of_is_not_forgotten() -> None:
    log = guard_log()
    log.say("alert", 3400, key="budget", state="raised", severity="warning", text="over it")
    log.records.sort(key=lambda one: one.t_us)
    now = snapshot("running")
    report = told(agent_log().records, log.records, since_s=3550, snapshot=now)
    assert "1 alert in this time, 1 of them still: over it" in line(report, "To do")


def test_a_short_time_says_nothing_of_what_was_dropped_before_it() -> None:
    kept = [one for one in agent_log().records if one.lsn > 5]
    said = "The agent dropped its log"
    told_of_all = told(kept, guard_log().records, first_lsn=6)
    assert any(note.startswith(said) for note in told_of_all.notes)
    late = told(kept, guard_log().records, since_s=3000, first_lsn=6)
    assert not any(note.startswith(said) for note in late.notes)


def test_growth_over_all_is_said_only_where_both_ends_agree_with_it() -> None:
    steady = [
        record(n, "probe", 60 * n, alive=True, rss_bytes=(100 + 10 * n) * MB, swap_bytes=0)
        for n in range(2, 40)
    ]
    begun = record(1, "guard.begin", 60, mode="act")
    assert "growing by 10M a minute" in line(told([], [begun, *steady]), "Memory")
    flat = record(91, "probe", 60 * 40, alive=True, rss_bytes=120 * MB, swap_bytes=0)
    assert "growing" not in line(told([], [begun, steady[0], flat]), "Memory")
    let_go = record(90, "probe", 60 * 40, alive=True, rss_bytes=110 * MB, swap_bytes=0)
    said = line(told([], [begun, *steady, let_go]), "Memory")
    assert "120M at first, 110M at the end" in said
    assert "growing" not in said


def test_what_is_over_its_budget_is_not_called_good() -> None:
    over = RecoveryBudget(recover_s=5, over=("recovery 10s is over your 5s",))
    known = Recovery(rto_s=Span(low=8, likely=10, high=12), grade="good", budget=over)
    report = told(agent_log().records, [], snapshot=snapshot("running", recovery=known))
    assert line(report, "If it crashed").startswith(
        "Back in 10s (8.0–12s), as of now; recovery 10s is over your 5s"
    )


def test_without_a_guard_nothing_is_made_up() -> None:
    report = told(agent_log().records, [])
    assert line(report, "Levels") == "Not known: no guard watched."
    assert line(report, "Guard") == "Did nothing: there was none."
    assert "by the agent's own account" in line(report, "Memory")
    assert "The agent says that 1 purge of its tiers freed 4.0M." in line(report, "What helped")
    assert report.notes[0].startswith("No guard watched in this time")


def test_what_the_agent_dropped_is_counted_by_the_guards_tallies_once() -> None:
    log, whole = agent_log().records, guard_log()
    known = {"from_us": T0_US, "agent_lsn": 7, "experiments": {"kept": 1, "discarded": 1}}
    earlier = {"from_us": T0_US - 5, "experiments": {"crashed": 2}, "checkpoints": 3}
    records = [
        *whole.records[:2],
        record(90, "viewer", 105, state="kept", known=earlier),
        record(91, "viewer", 110, state="left", known={"from_us": T0_US, "agent_lsn": 0}),
        record(92, "viewer", 950, state="kept", known=known),
        record(93, "viewer", 951, state="kept", known="no tally"),
        *whole.records[2:],
    ]
    dropped = [one for one in log if one.lsn > 5]
    report = told(dropped, records, first_lsn=6)
    assert report.experiments.by_status == {"kept": 2, "discarded": 2, "crashed": 2}
    assert report.checkpoints.counted == 4
    assert "the guard had counted its experiments" in report.notes[0]


def test_interventions_are_ranked_by_what_was_really_freed() -> None:
    guard = guard_log().records
    done = (
        ("reclaim", 90, "effective"),
        ("purge", 300, "effective"),
        ("purge", 200, "effective"),
        ("pause", 0, "none"),
        ("purge", 999, "pending"),
    )
    for place, (action, freed_mb, verdict) in enumerate(done):
        one = Intervention(
            id=f"i{place}",
            action=action,
            tier="workspace" if action == "purge" else "",
            origin="engine",
            verdict=verdict,  # type: ignore[arg-type]  # words of the cases above
            freed_bytes=float(freed_mb * MB),
            rebound_s=60.0 if action == "purge" else None,
            held_s=None if action == "purge" else 600.0,
            effects=(ResourceEffect(resource="memory", freed=float(freed_mb * MB)),),
            duration_s=1.0,
        )
        members = {name: getattr(one, name) for name in one.__struct_fields__}
        members["effects"] = [{"resource": "memory", "freed": float(freed_mb * MB)}]
        members["experiments"] = {"before": 3, "after": 3, "before_s": 9.0, "after_s": 7.0 + place}
        pending = {**members, "verdict": "pending", "freed_bytes": None}
        guard.append(record(200 + 2 * place, "efficacy", 1400, at="10s", **pending))
        guard.append(record(201 + 2 * place, "efficacy", 1401, at="10min", **members))
    report = told(agent_log().records, guard)
    rows = [(row.what, row.freed_bytes, row.effective, row.not_measured) for row in report.deeds]
    assert rows[:2] == [
        ("purge workspace", 500.0 * MB, 2, 1),
        ("give memory back", 90.0 * MB, 1, 0),
    ]
    assert report.deeds[0].experiments_before_s == 9.0
    assert report.deeds[0].experiments_after_s == 9.0, "the median of 8, 9 and 11 s"
    assert line(report, "What helped") == (
        "Freed most: purge workspace 500M (3 times, 1 not measured), back after 1m00s; "
        "give memory back 90M (once), held. Without effect: pause once."
    )


def test_recoveries_are_held_against_their_estimates() -> None:
    drill = PastRecovery(t_us=T0_US, total_s=11.0, estimate=Span(low=8, likely=10, high=12))
    restart = PastRecovery(t_us=T0_US + 1, total_s=9.0, kind="restart", estimate=drill.estimate)
    report = told(agent_log().records, guard_log().records, past=(restart, drill))
    assert "2 recoveries: −10 % … +10 % against the estimate" in line(report, "If it crashed")
    assert "no record lost, down for 30s, each recovery within 9.0s" in line(report, "Lost")
    assert [one.kind for one in report.recoveries] == ["drill", "restart"]
    (death,) = report.starts
    died = when_text(death.t_us - 30_000_000, report)
    assert f"died once ({died})" in line(report, "Lost"), "not when it was there again"


@pytest.mark.parametrize(("state", "said"), [("crashed", "died once"), ("running", "no death")])
def test_a_death_at_the_end_is_told(state: str, said: str) -> None:
    until = [one for one in agent_log().records if one.t_us <= T0_US + 2_000_000_000]
    at_end = snapshot(state)  # type: ignore[arg-type]  # one of the cases above
    report = told(until, [], snapshot=at_end)
    assert said in line(report, "Lost")
    assert [one.experiment for one in report.starts] == ([5] if state == "crashed" else [])


def test_a_death_that_only_the_guard_saw_says_that_its_cost_is_not_known() -> None:
    guard = guard_log().records
    guard.append(record(300, "alert", 3000, key="crashed", state="raised", severity="error"))
    guard.append(record(301, "alert", 3010, key="crashed", state="cleared", lasted_us=9_000_000))
    later = [record(900, "note", 3100), record(901, "note", 3600)]
    report = told(later, guard, first_lsn=900)
    assert "died once" in line(report, "Lost")
    assert "what was lost is not in the log any more" in line(report, "Lost")
    assert report.starts[0].down_s == 9.0


def test_times_of_another_boot_are_no_durations() -> None:
    first = [record(1, "guard.begin", 1000, mode="act"), record(2, "level", 1000, level="warn")]
    later = record(3, "guard.begin", 0, mode="act")  # the boot clock began anew
    report = told([], [*first, later, record(4, "level", 60, level="normal")])
    assert {stay.name: stay.seconds for stay in report.levels}["warn"] == 60.0


def test_the_time_between_two_guards_is_not_called_watched() -> None:
    records = [
        record(1, "viewer", 0, state="kept"),
        record(2, "guard.begin", 0, mode="act"),
        record(3, "level", 10, level="warn"),
        record(4, "probe", 20, alive=True, rss_bytes=5),
        record(5, "viewer", 120, state="kept"),
        record(6, "guard.begin", 120.1, mode="act"),
        record(7, "level", 130, level="normal"),
    ]
    report = told([], records)
    assert report.span.watched_s == pytest.approx(29.9)
    assert {stay.name: stay.seconds for stay in report.levels}["warn"] == pytest.approx(19.9)
    assert [(one.until_us - one.from_us) / 1e6 for one in report.gaps] == [100.1]
    assert "nobody watched for 1m40s" in line(report, "Lost")
    later = told([], records, since_s=100)
    assert len(later.gaps) == 1
