"""What tiers keep follows phases, and what somebody asks for (R1, R8, R10)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memwatch.agent import Keep, Run, RunOptions
from memwatch.domain.errors import LogError, ReadOnlyError, UsageError
from tests.agent.memory.holding import Held
from tests.agent.reading import read_log

Hold = Callable[..., Held]

TIERS = {
    "workspace": Keep(count=4),
    "history": Keep(experiments=3),
    "verified": Keep(delete=False),
}
PHASES = {"verification": {"history": Keep(), "workspace": Keep(count=2)}}


def fill(held: Held, tier: str, count: int) -> None:
    for number in range(1, count + 1):
        held.context.experiment = number
        held.tiers[tier].put(f"{number}", "x" * 3_000)


def count_of(held: Held, tier: str) -> int:
    return len(held.tiers[tier])


def test_less_is_kept_at_once_and_the_log_says_who_asked(hold: Hold) -> None:
    held = hold(TIERS)
    fill(held, "workspace", 4)
    done = held.tiers.keep("workspace", {"count": 1}, "asked by engine")
    assert done == {"old": {"count": 4}, "new": {"count": 1}, "entries": 3}
    assert count_of(held, "workspace") == 1
    assert held.last("retention") == {
        "x": 4,
        "tier": "workspace",
        "what": "asked",
        **{"old": {"count": 4}, "new": {"count": 1}, "why": "asked by engine"},
    }


def test_what_was_asked_for_is_taken_back(hold: Hold) -> None:
    held = hold(TIERS)
    held.tiers.keep("workspace", {"count": None}, "asked")
    fill(held, "workspace", 9)
    assert count_of(held, "workspace") == 9
    assert held.tiers.keep("workspace", None, "asked")["new"] == {"count": 4}
    assert count_of(held, "workspace") == 4
    logged = len(held.records("retention"))
    assert held.tiers.keep("workspace", None, "asked") == {"old": {}, "new": {}, "entries": 0}
    assert len(held.records("retention")) == logged, "nothing changed: nothing to tell"


def test_a_shorter_life_is_heeded_by_what_is_there(hold: Hold) -> None:
    held = hold({"workspace": Keep()})
    held.tier.put("old", 1)
    held.clock.advance_s(100)
    held.tier.put("young", 1)
    held.tiers.keep("workspace", {"ttl_s": 60}, "asked")
    assert [entry.key for entry in held.tier.entries()] == ["young"]
    held.tiers.keep("workspace", None, "asked")
    held.clock.advance_s(1_000)
    held.tiers.experiment_ended()
    assert len(held.tier) == 1


def test_a_smaller_cap_lets_values_leave_memory_and_loses_none(hold: Hold) -> None:
    held = hold({"verified": Keep(delete=False)})
    fill(held, "verified", 10)
    held.tiers.keep("verified", {"bytes": 20_000}, "asked")
    assert held.tier.bytes <= 20_000
    assert held.tier.get("1") == "x" * 3_000


def test_a_dry_run_tells_and_changes_nothing(hold: Hold) -> None:
    held = hold(TIERS)
    fill(held, "workspace", 4)
    done = held.tiers.keep("workspace", {"count": 1}, "asked", dry_run=True)
    assert done["entries"] == 3
    assert count_of(held, "workspace") == 4
    assert held.tiers["workspace"].keep == TIERS["workspace"]
    assert "retention" not in held.kinds()


def test_while_read_only_nothing_is_deleted_and_later_it_is(hold: Hold) -> None:
    held = hold(TIERS)
    fill(held, "workspace", 4)

    def refuse() -> None:
        raise ReadOnlyError("held")

    writable, held.context.check_writable = held.context.check_writable, refuse
    held.tiers.keep("workspace", {"count": 1}, "asked")
    assert count_of(held, "workspace") == 4
    held.context.check_writable = writable
    held.tiers.experiment_ended()
    assert count_of(held, "workspace") == 1


def test_what_cannot_be_logged_is_not_changed(hold: Hold) -> None:
    held = hold(TIERS)
    held.log_files.fail_all("write")
    with pytest.raises(LogError):
        held.tiers.keep("workspace", {"count": 1}, "asked")
    held.log_files.heal()
    assert held.tiers["workspace"].keep == TIERS["workspace"]
    held.tiers.experiment_ended()
    assert held.tiers["workspace"].keep == TIERS["workspace"]


def test_a_phase_brings_its_own_and_the_next_one_takes_it_back(hold: Hold) -> None:
    held = hold(TIERS, phases=PHASES)
    fill(held, "workspace", 4)
    held.context.phase = "verification"
    held.tiers.phase_changed()
    assert count_of(held, "workspace") == 2
    told = {r.text("tier"): r.members for r in held.records("retention")}
    assert (told["history"]["old"], told["history"]["new"]) == (
        {"experiments": 3},
        {"experiments": None},
    )
    assert told["history"]["why"] == "phase verification"
    fill(held, "history", 8)
    assert count_of(held, "history") == 8, "all of it is needed"
    held.context.phase = "exploration"
    held.tiers.phase_changed()
    assert count_of(held, "history") == 3
    assert held.tiers["workspace"].keep == TIERS["workspace"]


def test_what_was_asked_for_outlasts_a_phase_that_says_otherwise(hold: Hold) -> None:
    held = hold(TIERS, phases=PHASES)
    held.tiers.keep("workspace", {"count": 7}, "asked")
    held.context.phase = "verification"
    held.tiers.phase_changed()
    assert held.tiers["workspace"].keep.count == 7
    held.tiers.keep("workspace", None, "asked")
    assert held.tiers["workspace"].keep.count == 2


@pytest.mark.parametrize(
    ("phases", "words"),
    [
        ({"late": {"attic": Keep()}}, "names a tier attic"),
        ({"late": {"workspace": Keep(count=0)}}, "count is a whole number"),
        ({"late": {"verified": Keep(count=3)}}, "deletes nothing"),
        ({"late": {"workspace": Keep(demote_to="workspace")}}, "no other tier"),
    ],
)
def test_a_phase_that_cannot_be_meant_is_refused(hold: Hold, phases: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        hold(TIERS, phases=phases)


def test_a_start_goes_on_in_its_phase_and_forgets_what_was_asked(tmp_path: Path) -> None:
    options = RunOptions(agent="a", keep=TIERS, phases=PHASES)
    with Run.open(tmp_path / "run", options) as run:
        with run.experiment("one", phase="verification"):
            pass
        run.tiers.keep("verified", {"count": 9}, "asked")
    with Run.open(tmp_path / "run", options) as run:
        assert run.tiers["history"].keep == Keep()
        assert run.tiers["workspace"].keep == Keep(count=2)
        assert run.tiers["verified"].keep == TIERS["verified"]
        with run.experiment("two", phase="exploration"):
            assert run.tiers["history"].keep == TIERS["history"]
    whys = [r.text("why") for r in read_log(tmp_path / "run" / "wal")[0] if r.kind == "retention"]
    assert whys == ["phase verification"] * 2 + ["asked", "phase exploration", "phase exploration"]


wishes = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {},
        optional={
            "count": st.none() | st.integers(-1, 5),
            "experiments": st.none() | st.integers(1, 4),
            "delete": st.booleans(),
            "bytes": st.none() | st.integers(0, 9_000),
            "ttl_s": st.none() | st.floats(-1, 100),
        },
    ),
)
acts = st.one_of(
    st.tuples(st.just("keep"), st.sampled_from(sorted(TIERS)), wishes),
    st.tuples(st.just("phase"), st.sampled_from(["verification", "exploration"]), st.none()),
    st.tuples(st.just("put"), st.sampled_from(sorted(TIERS)), st.none()),
)


@settings(max_examples=60)
@given(st.lists(acts, max_size=25))
def test_whatever_is_asked_for_verified_stays_and_all_can_be_taken_back(
    asked: list[tuple[str, str, Any]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        held = Held(Path(folder), TIERS, phases=PHASES)
        put = 0
        for place, (act, name, wish) in enumerate(asked, 1):
            held.context.experiment = place
            held.clock.advance_s(1)
            if act == "put":
                held.tiers[name].put(f"{place}", "x" * 500)
                put += name == "verified"
            elif act == "phase":
                held.context.phase = name
                held.tiers.phase_changed()
            else:
                before = held.tiers[name].keep
                try:
                    held.tiers.keep(name, wish, "asked")
                except UsageError:
                    assert held.tiers[name].keep == before
            assert count_of(held, "verified") == put
            for tier in held.tiers.values():
                assert (
                    tier.keep.count is None or not tier.keep.delete or len(tier) <= tier.keep.count
                )
        assert held.replay() == held.state()
        held.context.phase = "exploration"
        held.tiers.phase_changed()
        for name in TIERS:
            held.tiers.keep(name, None, "asked")
        assert {name: tier.keep for name, tier in held.tiers.items()} == TIERS
        held.log.close()
