"""The panels of figures, compared as text."""

from __future__ import annotations

from typing import get_args

from msgspec.structs import replace

from memwatch.domain.command import CommandInfo
from memwatch.domain.control import Suggestion
from memwatch.domain.intervention import Advice
from memwatch.domain.recovery import RecoveryBudget
from memwatch.domain.snapshot import Event, Limits, Processes, Severity, Source, Tier
from memwatch.ui.actions import ACTIONS
from memwatch.ui.frame import Frame, OwnCost
from memwatch.ui.line import Line, text_of
from memwatch.ui.panels.acts import acts, command_line
from memwatch.ui.panels.footer import footer, next_step, own_cost, tabs
from memwatch.ui.panels.growth import growth
from memwatch.ui.panels.help import help_lines
from memwatch.ui.panels.log import LogPanel, log_title
from memwatch.ui.panels.processes import processes
from memwatch.ui.panels.since import since_left
from memwatch.ui.view import View
from tests.ui.harness import frame_of, snapshot_of, texts


def log(frame: Frame, width: int, height: int) -> list[Line]:
    """Return the log as it is first painted."""
    return LogPanel()(frame, width, height)


def changed(**changes: object) -> Frame:
    return frame_of(snapshot=replace(snapshot_of(), **changes))


def test_growth_at_the_width_of_the_wide_layout() -> None:
    assert texts(growth(frame_of(), 45, 9)) == [
        "tier           now share    10s    60s  10min",
        "workspace      30M   10%   +18M  +2.3M  +303k",
        "recent         11M    4%  -1.2M  -150k   -20k",
        "verified       14M    5%  +500k   +62k  +8.3k",
        "history       3.5M    1%      0      0      0",
        "unaccounted    41M   14%      0      0      –",
        "tree           99M   33%  +8.1M  +1.2M  +400k",
        "limit in 41–55min if this goes on",
        "limit 300M profile demo · others: host 7.9G",
    ]


def test_growth_shows_more_where_there_is_room() -> None:
    rows = texts(growth(frame_of(), 78, 20))
    assert rows[0].split() == [
        "tier",
        "now",
        "share",
        "entries",
        "mean",
        "cap",
        "10s",
        "60s",
        "10min",
    ]
    assert rows[1].split() == [
        "workspace",
        "30M",
        "10%",
        "60",
        "497k",
        "–",
        "+18M",
        "+2.3M",
        "+303k",
    ]
    assert rows[-1].startswith("demo clock")


def test_a_tier_over_its_share_and_a_fast_one_stand_out_in_style() -> None:
    over = Tier(name="workspace", bytes=1, share=0.4, level="warn", growth_per_min={"10s": 99e6})
    line = growth(changed(tiers=(over,)), 45, 9)[1]
    styles = {text.strip(): style for text, style in line if text.strip()}
    assert styles["workspace"] == "warn"
    assert styles["40%!"] == "warn"
    assert styles["+99M"] == "warn"


def test_what_nobody_measured_is_a_dash_never_a_zero() -> None:
    unknown = Tier(name="workspace")
    rows = texts(growth(changed(tiers=(unknown,), limits=Limits(), resources=()), 45, 9))
    assert rows[1].split() == ["workspace", "–", "–", "–", "–", "–"]
    assert "no limit known" in rows


def test_no_kind_of_intervention_crowds_another_out() -> None:
    found = snapshot_of().interventions
    full = next(one for one in found if one.action == "checkpoint full")
    purge = next(one for one in found if one.action == "purge")
    many = tuple(replace(purge, id=f"{n}", asked_at_us=full.asked_at_us + n) for n in range(9))
    rows = texts(acts(changed(interventions=(*many, full)), 71, 5))
    assert any("checkpoint full" in row for row in rows)
    assert len(rows) == 5
    young = replace(full, id="young", asked_at_us=full.asked_at_us + 9, after_10s=None)
    rows = texts(acts(changed(interventions=(young, *many, full)), 80, 3))
    assert any("checkpoint full" in row and "113M" in row for row in rows), "the measured one"


def test_a_request_is_asked_then_accepted_then_done_never_done_at_once() -> None:
    now_us = 1_000_000_000
    asked = CommandInfo(
        id="1", op="checkpoint", state="asked", asked_us=now_us - 1_200_000, changed_us=now_us
    )
    assert text_of(command_line(asked, now_us)) == "checkpoint asked 1s"
    accepted = replace(asked, state="accepted")
    assert text_of(command_line(accepted, now_us)) == "checkpoint accepted 1s"
    done = replace(asked, state="done", detail="full 4.2M")
    assert text_of(command_line(done, now_us)) == "checkpoint done after 1.2s  full 4.2M"
    refused = replace(asked, state="refused", detail="draining")
    assert ("refused after 1.2s", "warn") in command_line(refused, now_us)


def test_a_settled_request_leaves_the_screen_after_a_while() -> None:
    snapshot = snapshot_of()
    old = snapshot.t_us - 30_000_000
    done = CommandInfo(id="1", op="leak", state="done", asked_us=old, changed_us=old)
    assert not any("leak" in row for row in texts(acts(changed(commands=(done,)), 71, 8)))
    still = replace(done, state="asked")
    assert texts(acts(changed(commands=(still,)), 71, 8))[0] == "leak asked 30s"


def test_processes_name_orphans_in_words() -> None:
    rows = texts(processes(frame_of(), 60, 9))
    assert rows[0] == "3 processes, 1 ORPHAN, 9 threads, 41 descriptors"
    assert "sleep (orphan)" in rows[-1]
    alone = Processes(count=1, threads=1, fds=8)
    assert texts(processes(changed(processes=alone), 60, 9))[0] == (
        "1 process, 1 thread, 8 descriptors"
    )
    assert texts(processes(changed(processes=Processes()), 60, 9)) == ["not measured yet"]


def test_the_log_tells_severity_without_colour() -> None:
    snapshot = snapshot_of()
    events = tuple(
        Event(seq=n, t_us=snapshot.t_us + n, kind="x", text=word, severity=word)
        for n, word in enumerate(get_args(Severity))
    )
    assert texts(log(changed(events=events), 40, 9)) == [
        "08:00:00   info",
        "08:00:00 • notice",
        "08:00:00 ▲ warning",
        "08:00:00 ! error",
    ]


def test_only_the_begin_of_the_present_experiment_is_worth_a_line() -> None:
    kinds = ("experiment.begin", "experiment", "experiment.begin")
    t_us = snapshot_of().t_us
    events = tuple(Event(seq=n, t_us=t_us + n, kind=k, text=f"e{n}") for n, k in enumerate(kinds))
    rows = texts(log(changed(events=events), 40, 9))
    assert [row.split()[-1] for row in rows] == ["e1", "e2"]


def test_trouble_with_reading_stands_in_the_frame_of_the_log() -> None:
    source = Source(damaged=2, gaps=1, watch="polling", watch_why="nfs")
    assert log_title(changed(source=source)) == "polling (nfs), 2 damaged, 1 gap"
    assert log_title(frame_of()) == ""


def test_footer_shows_keys_and_drops_the_least_needed_ones() -> None:
    wide = text_of(footer(frame_of(), 120)).split("  us ")[0].rstrip()
    assert wide == (
        " C checkpoint  P purge  Z pause agent  R read-only  X abort  L demo leak: off  G guard"
        "  ? help  q quit"
    )
    assert text_of(footer(frame_of(), 24)).split() == ["?", "help", "q", "quit"]


def test_no_key_is_cut_at_any_width() -> None:
    snapshot = snapshot_of()
    few = changed(run=replace(snapshot.run, ops=("pause",)))
    for frame in (frame_of(), few, frame_of(view_only=True)):
        for width in range(24, 140):
            assert "q quit" in text_of(footer(frame, width)), width


def test_a_key_that_cannot_be_used_is_greyed_and_in_brackets() -> None:
    line = footer(frame_of(view_only=True), 120)
    styles = dict(line)
    assert styles["(C checkpoint)"] == "greyed"
    assert styles["?"] == "key"


def test_the_checkpoint_that_brings_a_crash_under_its_budget_lights_up_without_colour() -> None:
    found = snapshot_of().recovery
    for kind, said in (("incremental", "C checkpoint!"), ("full", "F full checkpoint!")):
        budget = RecoveryBudget(recover_s=9.0, over=("over",), checkpoint=kind)  # type: ignore[arg-type]  # a word of the test
        line = footer(changed(recovery=replace(found, budget=budget)), 120)
        assert (said, "notice") in line
        assert text_of(line).count("checkpoint") == 1
    hopeless = RecoveryBudget(recover_s=9.0, over=("over",))
    assert "C checkpoint  " in text_of(
        footer(changed(recovery=replace(found, budget=hopeless)), 120)
    ), "a key that would not help is not lit"


def test_advice_is_given_where_nothing_graver_is_said() -> None:
    advice = (Advice(text="purge workspace frees 37M in 0.9s", kind="action"),)
    assert texts(next_step(changed(advice=advice), 80)) == [
        " advice: purge workspace frees 37M in 0.9s"
    ]
    graver = changed(advice=advice, suggestion=Suggestion(op="purge", text="purge recent"))
    assert "recent" in texts(next_step(graver, 80))[0]
    rows = texts(since_left(changed(advice=advice), 80, 9))
    assert rows[-1] == "▸ purge workspace frees 37M in 0.9s"


def test_the_leak_says_how_it_stands_as_the_agent_tells() -> None:
    def shown(**switches: float) -> str:
        return text_of(footer(changed(run=replace(snapshot_of().run, switches=switches)), 120))

    assert "L demo leak 120/min: on  " in shown(leak=120.0)
    assert "L demo leak: off  " in shown(leak=0.0)
    assert "L demo leak  " in shown(), "an agent that has not said yet"


def test_the_leak_is_offered_only_where_the_agent_takes_it() -> None:
    run = replace(snapshot_of().run, ops=("checkpoint",))
    assert "leak" not in text_of(footer(changed(run=run), 120))


def test_what_we_cost_is_the_sum_of_guard_and_viewer() -> None:
    own = OwnCost(rss_bytes=45_000_000, cpu_percent=1.1, terminal_bytes_per_s=430.0)
    assert text_of(own_cost(frame_of(own=own))) == "us 128M 1.9% 0.4kB/s "


def test_what_each_costs_is_said_where_there_is_room() -> None:
    own = OwnCost(rss_bytes=45_000_000, cpu_percent=1.1, terminal_bytes_per_s=430.0)
    assert text_of(footer(frame_of(own=own), 160)).endswith(
        "guard 83M 0.8%  viewer 45M 1.1% 0.4kB/s "
    )
    assert "viewer" not in text_of(footer(Frame(), 160))


def test_tabs_mark_the_panel_in_front_without_colour() -> None:
    assert text_of(tabs(frame_of(panel="growth"), 80)).startswith(
        " 1 tiers [2 growth] 3 acts  4 recovery  5 since  6 procs  7 log "
    )


def test_help_names_every_action_and_why_one_cannot_be_used() -> None:
    words = " ".join(" ".join(texts(help_lines(frame_of(view_only=True), 90))).split())
    for action in ACTIONS:
        assert f"{action.shown} {action.help}" in words
    assert words.count("not now: this viewer was opened with --view") == 13


def test_a_span_without_events_does_not_show_those_of_now() -> None:
    back = replace(frame_of(), view=View(end_us=snapshot_of().t_us - 3_600_000_000))
    assert texts(log(back, 60, 9)) == ["nothing happened in this span"]


def told(*texts: str, kind: str = "purge", severity: Severity = "info") -> tuple[Event, ...]:
    t_us = snapshot_of().t_us // 60_000_000 * 60_000_000
    return tuple(
        Event(seq=n, t_us=t_us + n * 1_000_000, kind=kind, text=text, severity=severity)
        for n, text in enumerate(texts, 1)
    )


def test_purges_that_repeat_are_one_line_with_their_count() -> None:
    events = told("purge a (retention): 1 entry, 2M", "purge b (x): 3M") * 3
    events = tuple(replace(e, seq=n, t_us=e.t_us + n * 1_000_000) for n, e in enumerate(events))
    rows = texts(log(changed(events=events), 60, 9))
    assert [row.strip()[11:] for row in rows] == [
        "purge a (retention) ×3 in 4s, last 1 entry, 2M",
        "purge b (x) ×3 in 4s, last 3M",
    ]


def test_what_is_notable_does_not_scroll_off_with_the_page() -> None:
    events = told("memory emergency: 91 %", kind="level", severity="error")
    events += tuple(
        replace(e, seq=e.seq + 9) for e in told(*[f"experiment {n}" for n in range(99)], kind="x")
    )
    rows = texts(log(changed(events=events), 60, 9))
    assert len(rows) == 9
    assert "! memory emergency: 91 %" in rows[0]
    assert "experiment 98" in rows[-1]


def test_a_run_that_is_over_has_no_process() -> None:
    run = replace(snapshot_of().run, state="crashed")
    over = changed(run=run, processes=Processes())
    assert texts(processes(over, 60, 9)) == ["the run is over, no process is left"]
