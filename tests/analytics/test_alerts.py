"""Alerts: raised once, again only when worse, cleared once; a start neither loses nor doubles."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memwatch.analytics.alerts import (
    CLEAR_AFTER_S,
    AlertState,
    Cleared,
    Moment,
    Rules,
    grave,
    judge,
    restore,
)
from memwatch.analytics.budget import VAIN
from memwatch.domain.checkpoints import Checkpoints
from memwatch.domain.control import Alert, EngineInfo, Hold, NotifyInfo
from memwatch.domain.level import LEVELS, Level
from memwatch.domain.plan import Plan
from memwatch.domain.record import Record
from memwatch.domain.recovery import Recovery, RecoveryBudget
from memwatch.domain.snapshot import (
    GuardInfo,
    Light,
    Progress,
    Resource,
    RunInfo,
    RunState,
    Snapshot,
    Source,
)
from tests.builders import M0_US, T0_US, record

S = 1_000_000
MEMORY = Resource(name="memory", used=6.1e9, limit=8e9, share=0.76, time_to_limit_s=(2460, 3300))


def snapshot(state: RunState = "running", lsn: int = 1, **members: Any) -> Snapshot:
    run = RunInfo(id="r", path="/r", agent="searcher", profile="demo", host="h", pid=1, state=state)
    return Snapshot(
        **{
            "seq": 1,
            "t_us": T0_US,
            "run": run,
            "guard": GuardInfo(pid=2),
            "source": Source(last_lsn=lsn),
            **members,
        }
    )


class Watch:
    """Judges a course of snapshots, a second apart unless said otherwise."""

    def __init__(self, rules: Rules | None = None) -> None:
        self.rules = rules or Rules()
        self.state = AlertState()
        self.now_s = 0.0

    def see(
        self, shown: Snapshot, after_s: float = 1.0
    ) -> tuple[tuple[Alert, ...], tuple[Cleared, ...]]:
        self.now_s += after_s
        now = Moment(T0_US + round(self.now_s * S), M0_US + round(self.now_s * S))
        self.state, raised, cleared = judge(self.state, shown, now, self.rules)
        return raised, cleared

    def keys(self, shown: Snapshot, after_s: float = 1.0) -> list[str]:
        return [alert.key for alert in self.see(shown, after_s)[0]]


def at(level: Level, **members: Any) -> Snapshot:
    return snapshot(level=level, resources=(MEMORY,), **members)


def test_memory_is_told_from_the_least_level_up_again_when_worse_and_cleared_with_its_time() -> (
    None
):
    watch = Watch()
    assert watch.see(at("warn")) == ((), ())
    ((first,), _) = watch.see(at("intervene"))
    assert (first.key, first.severity) == ("memory", "warning")
    assert first.text == "memory intervene: 76% of 8.0G, limit in 41–55min"
    assert watch.see(at("intervene")) == ((), ())
    ((worse,), _) = watch.see(at("emergency"))
    assert (worse.severity, worse.raised_us) == ("error", first.raised_us)
    assert watch.see(at("intervene")) == ((), ()), "better is no news"
    assert watch.see(at("emergency")) == ((), ()), "and as bad as before is none"
    assert watch.see(at("normal")) == ((), ())
    raised, (gone,) = watch.see(at("normal"), CLEAR_AFTER_S)
    assert raised == ()
    assert gone.alert.key == "memory"
    assert gone.lasted_us == 5 * S, "until its reason was gone, not until it was told"
    assert not gone.moot
    assert watch.see(at("normal"), 60) == ((), ())
    assert watch.state.alerts == ()


def test_what_is_missing_for_a_moment_ends_nothing() -> None:
    watch = Watch()
    watch.see(at("emergency"))
    assert watch.see(snapshot()) == ((), ())
    assert watch.see(at("emergency"), CLEAR_AFTER_S - 1) == ((), ())
    assert watch.see(snapshot()) == ((), ())
    assert watch.see(snapshot(), CLEAR_AFTER_S - 1) == ((), ()), "counted anew"


@pytest.mark.parametrize("least", ["warn", "emergency"])
def test_the_least_level_is_a_rule(least: Level) -> None:
    found = [Watch(Rules(least=least)).keys(at(level)) for level in LEVELS]
    begin = LEVELS.index(least)
    assert found == [[]] * begin + [["memory"]] * (len(LEVELS) - begin)


def test_a_run_that_says_nothing_is_told_of_once_until_it_speaks() -> None:
    watch = Watch(Rules(silent_after_s=30))
    found = [watch.keys(snapshot(lsn=7)) for _ in range(40)]
    assert found[:30] == [[]] * 30
    assert found[30] == ["silent"], "30 s after it was first seen"
    assert found[31:] == [[]] * 9
    watch.see(snapshot(lsn=8))
    _, (gone,) = watch.see(snapshot(lsn=9), CLEAR_AFTER_S)
    assert gone.alert.key == "silent"


def test_silence_counts_from_the_last_record_for_a_guard_that_begins() -> None:
    watch = Watch(Rules(silent_after_s=300))
    long_ago = Progress(last_record_us=T0_US - 400 * S)
    assert watch.keys(snapshot(lsn=7, progress=long_ago)) == ["silent"]


def test_a_machine_that_slept_did_not_listen() -> None:
    watch = Watch(Rules(silent_after_s=300))
    watch.see(snapshot(lsn=7))
    assert watch.keys(snapshot(lsn=7), after_s=8 * 3600.0) == []
    assert watch.keys(snapshot(lsn=8)) == []


@pytest.mark.parametrize("state", ["crashed", "killed"])
def test_a_crash_is_told_and_what_ended_with_the_run_is_no_all_clear(state: RunState) -> None:
    watch = Watch()
    watch.see(at("emergency"))
    assert watch.keys(at("emergency", state=state)) == [state]
    _, (gone,) = watch.see(snapshot(state), CLEAR_AFTER_S)
    assert (gone.alert.key, gone.moot) == ("memory", True)
    watch.see(snapshot())
    _, (again,) = watch.see(snapshot(), CLEAR_AFTER_S)
    assert (again.alert.key, again.moot) == (state, False), "it came back"


def proposed(name: str, **members: Any) -> EngineInfo:
    plan = Plan(id=name, level="intervene", rule="level", why="memory 76%", steps=(), **members)
    return EngineInfo(mode="ask", plan=plan)


HELD = Hold(id="h", op="read_only", owner="engine", effective=True)


def test_a_run_that_lives_at_warn_wakes_nobody_when_nothing_helps_there() -> None:
    open_ones = ("warn", "tier:recent warn", "intervene", "emergency")
    raised, _ = Watch().see(snapshot(engine=EngineInfo(open_breakers=open_ones)))
    assert [alert.severity for alert in raised] == ["notice", "notice", "error", "error"]


@pytest.mark.parametrize(
    ("members", "keys"),
    [
        ({"guard": GuardInfo(pid=2, recording=False, not_recording_why="full")}, ["recording"]),
        ({"guard": GuardInfo(recording=None)}, []),
        ({"lights": (Light(name="DISK", word="ACT", figure="2.1G"),)}, ["disk"]),
        ({"lights": (Light(name="DISK", word="WARN", figure="9.1G"),)}, []),
        ({"checkpoints": Checkpoints(next_fits=False)}, ["disk"]),
        (
            {"engine": EngineInfo(open_breakers=("warn", "disk hard"))},
            ["breaker.warn", "breaker.disk hard"],
        ),
        ({"engine": EngineInfo(policy_error="line 3")}, ["policy"]),
        ({"notify": NotifyInfo(error="config.yaml line 3: no url")}, ["settings"]),
        ({"engine": proposed("p1")}, ["plan.p1"]),
        ({"engine": proposed("p1", dry=True)}, []),
        ({"engine": replace(proposed("p1"), mode="shadow")}, []),
        ({"holds": (HELD,)}, ["read_only"]),
        ({"holds": (replace(HELD, owner="ctl"),)}, []),
        ({"holds": (replace(HELD, effective=False),)}, []),
    ],
)
def test_what_is_an_alert(members: dict[str, Any], keys: list[str]) -> None:
    assert Watch().keys(snapshot(**members)) == keys
    of_past = [key for key in keys if key in ("recording", "policy", "settings")]
    assert Watch().keys(snapshot("ended", **members)) == of_past


def test_a_guard_that_cannot_record_is_no_full_disk_as_well() -> None:
    lights = (Light(name="DISK", word="CRIT", figure="0B"),)
    guard = GuardInfo(pid=2, recording=False)
    assert Watch().keys(snapshot(guard=guard, lights=lights)) == ["recording"]


def test_texts_are_inert() -> None:
    engine = EngineInfo(policy_error="a\x1b]0;evil\x07b\nc")
    ((alert,), _) = Watch().see(snapshot(engine=engine))
    assert alert.text.isprintable()


def as_records(lsn: int, told: tuple[tuple[Alert, ...], tuple[Cleared, ...]]) -> list[Record]:
    raised, cleared = told
    found = [record(lsn, "alert", 0, key=it.alert.key, state="cleared", text="") for it in cleared]
    for it in raised:
        members = {"key": it.key, "severity": it.severity, "text": it.text}
        found.append(Record(lsn, it.raised_us, 0, "alert", {**members, "state": "raised"}))
    return found


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(LEVELS),
            st.sampled_from(["running", "paused", "crashed", "ended"]),
            st.integers(1, 3),
            st.sampled_from([1.0, 3.0, 6.0, 40.0]),
            st.booleans(),
        ),
        max_size=40,
    )
)
def test_each_raise_has_at_most_one_clear_and_nothing_is_raised_twice(
    course: list[tuple[Level, RunState, int, float, bool]],
) -> None:
    """A guard that begins anew somewhere on the way (the last member) changes nothing of it."""
    watch = Watch(Rules(silent_after_s=30))
    standing: dict[str, int] = {}
    log: list[Record] = []
    for place, (level, state, lsn, after_s, anew) in enumerate(course):
        if anew:
            now = Moment(T0_US + round(watch.now_s * S), M0_US + round(watch.now_s * S))
            before, watch.state = watch.state, restore(log, now)
            assert watch.state.alerts == before.alerts
        told = watch.see(at(level, state=state, lsn=lsn), after_s)
        log += as_records(place + 1, told)
        for gone in told[1]:
            assert standing.pop(gone.alert.key) == grave(gone.alert.severity)
            assert gone.lasted_us >= 0
        for alert in told[0]:
            assert grave(alert.severity) > standing.get(alert.key, -1)
            standing[alert.key] = grave(alert.severity)
        assert {it.key for it in watch.state.alerts} == set(standing)


def test_restored_alerts_go_on_with_the_time_they_stand() -> None:
    log = [
        record(1, "alert", 0, key="memory", state="raised", severity="warning", text="w"),
        record(2, "alert", 5, key="memory", state="raised", severity="error", text="e"),
        record(3, "alert", 6, key="disk", state="raised", severity="warning", text="d"),
        record(4, "alert", 7, key="disk", state="cleared"),
        record(5, "note", 7, text="another"),
        record(6, "alert", 8, state="raised"),
    ]
    now = Moment(T0_US + 60 * S, 5 * S)  # of another boot
    state = restore(log, now)
    (alert,) = state.alerts
    assert (alert.severity, alert.text, alert.raised_us) == ("error", "e", T0_US)
    stands = record(
        9, "alert", 9, key="old", state="stands", severity="error", text="o", raised_us=T0_US - S
    )
    assert restore([stands], now).alerts[0].raised_us == T0_US - S
    later = Moment(T0_US + 61 * S, 6 * S)
    state, _, _ = judge(state, snapshot(), later, Rules())
    _, _, (gone,) = judge(state, snapshot(), Moment(T0_US + 70 * S, 15 * S), Rules())
    assert gone.lasted_us == 61 * S


SLOW = "recovery 74s is over your 60s"
OVER = RecoveryBudget(recover_s=60, over=(SLOW,), checkpoint="full")
ACTS = EngineInfo(mode="act", allow=("checkpoint",))


@pytest.mark.parametrize(
    ("budget", "engine", "severity", "words"),
    [
        (OVER, ACTS, None, ""),  # it is about to be mended
        (OVER, replace(ACTS, mode="shadow"), "notice", "full checkpoint, which is left to you"),
        (OVER, replace(ACTS, allow=()), "notice", "full checkpoint, which is left to you"),
        (OVER, replace(ACTS, waiting=f"{VAIN} (budget.recover_s)"), "warning", VAIN),
        (replace(OVER, beyond=(SLOW,)), ACTS, "warning", "no checkpoint brings it under"),
        (RecoveryBudget(recover_s=60), replace(ACTS, mode="shadow"), None, ""),
    ],
)
def test_what_a_crash_would_cost_over_its_budget_is_told_unless_it_is_mended(
    budget: RecoveryBudget, engine: EngineInfo, severity: str | None, words: str
) -> None:
    watch = Watch()
    raised, _ = watch.see(snapshot(recovery=Recovery(budget=budget), engine=engine))
    assert [(one.key, one.severity) for one in raised] == (
        [("budget", severity)] if severity else []
    )
    assert all(one.text == f"{SLOW}: {words}" for one in raised)
    watch.see(snapshot())
    _, cleared = watch.see(snapshot(), CLEAR_AFTER_S + 1)
    assert [one.alert.key for one in cleared] == (["budget"] if severity else [])
    assert Watch().keys(snapshot("crashed", recovery=Recovery(budget=budget))) == ["crashed"]
