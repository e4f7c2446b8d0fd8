"""What tiers keep: numbers, times and shares (R1, R2), and what stays of what left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memwatch.agent.memory.entry import ABSENT, Entry, Keep
from memwatch.agent.options import KEEP
from memwatch.domain.errors import LogError, ReadOnlyError
from tests.agent.memory.holding import Held

Hold = Callable[..., Held]


def keys(held: Held, tier: str | None = None) -> list[str]:
    return [entry.key for entry in held.tiers[tier or held.tier.name].entries()]


def resident(held: Held) -> list[str]:
    return [entry.key for entry in held.tier.entries() if entry.resident]


# R1: the four tiers and their numbers.


@pytest.mark.parametrize(
    ("tier", "made", "kept"),
    [
        ("workspace", 205, 200),  # the last 200 tool calls
        ("recent", 8, 5),  # the last 5 experiments
        ("verified", 30, 30),  # kept
        ("history", 30, 20),  # the last 20 experiments
    ],
)
def test_each_tier_keeps_its_number(hold: Hold, tier: str, made: int, kept: int) -> None:
    held = hold(KEEP)
    for number in range(1, made + 1):
        held.context.experiment = number
        held.tiers[tier].put(f"{number}", {"n": number})
    assert keys(held, tier) == [f"{number}" for number in range(made - kept + 1, made + 1)]


def test_experiments_stay_complete(hold: Hold) -> None:
    held = hold({"recent": Keep(experiments=2)})
    for number in (1, 2, 3):
        held.context.experiment = number
        held.tier.put(f"result/{number}", "x" * 5000)
        held.tier.put(f"input/{number}", "x" * 100)
    assert keys(held) == ["result/2", "input/2", "result/3", "input/3"]
    assert held.kinds()[5:9] == ["purge.begin", "delete", "delete", "purge.end"]
    end = held.last("purge.end")
    assert (end["tier"], end["how"], end["cause"]) == ("recent", "oldest", "retention")
    assert (end["entries"], end["deleted"], end["persisted"], end["dropped"]) == (2, 2, 0, 0)
    assert end["freed_bytes"] > 5100
    assert "refused" not in end


def test_entries_of_no_experiment_do_not_count_as_one(hold: Hold) -> None:
    held = hold({"recent": Keep(experiments=1)})
    for number in range(5):
        held.tier.put(f"{number}", 1)
    assert len(held.tier) == 5


def test_a_count_takes_the_oldest_and_an_update_makes_young(hold: Hold) -> None:
    held = hold({"recent": Keep(count=3)})
    for key in ("a", "b", "c", "a", "d"):
        held.tier.put(key, "x")
    assert keys(held) == ["c", "a", "d"]


@pytest.mark.parametrize("keep", [Keep(delete=False, count=2), Keep(delete=False, experiments=2)])
def test_a_tier_that_deletes_nothing_keeps_its_number_in_memory(hold: Hold, keep: Keep) -> None:
    held = hold({"verified": keep})
    for number in range(1, 5):
        held.context.experiment = number
        held.tier.put(f"{number}", f"{number}" * 3000)
        held.tiers.experiment_ended()
    assert (len(held.tier), resident(held)) == (4, ["3", "4"])
    assert held.tier.get("1") == "1" * 3000
    assert not held.records("delete")


# TTL: by the boot clock.


@pytest.mark.parametrize(
    ("keep_ttl_s", "own_ttl_s", "lives_s"), [(60, None, 60), (None, 10, 10), (60, 300, 300)]
)
def test_an_entry_lives_as_long_as_it_or_its_tier_says(
    hold: Hold, keep_ttl_s: float | None, own_ttl_s: float | None, lives_s: float
) -> None:
    held = hold({"recent": Keep(ttl_s=keep_ttl_s)})
    held.tier.put("a", 1, ttl_s=own_ttl_s)
    held.clock.step_wall_s(1e6)  # the wall clock does not matter
    held.clock.advance_s(lives_s - 1)
    held.tier.put("b", 1, ttl_s=1e6)
    held.clock.step_wall_s(-1e6)
    assert keys(held) == ["a", "b"]
    held.clock.advance_s(1)
    held.tier.put("b", 1, ttl_s=1e6)
    assert keys(held) == ["b"]
    assert held.last("purge.end")["how"] == "expired"


def test_an_update_begins_a_new_life(hold: Hold) -> None:
    held = hold({"recent": Keep(ttl_s=60)})
    for _ in range(5):
        held.tier.put("a", 1)
        held.clock.advance_s(59)
    held.tiers.phase_changed()
    assert keys(held) == ["a"]
    held.clock.advance_s(1)
    held.tiers.experiment_ended()
    assert keys(held) == []


def test_what_expired_goes_also_after_the_log_refused_it_once(hold: Hold) -> None:
    held = hold({"recent": Keep(ttl_s=60)})
    held.tier.put("a", 1)
    held.clock.advance_s(61)
    held.log_files.fail_all("write")
    with pytest.raises(LogError, match="retention of tier recent was refused"):
        held.tiers.experiment_ended()
    assert keys(held) == ["a"]
    held.log_files.heal()
    held.tiers.experiment_ended()
    assert keys(held) == []


def test_many_updates_of_entries_with_a_ttl_leave_nothing_behind(hold: Hold) -> None:
    held = hold({"recent": Keep(ttl_s=60)})
    for turn in range(500):
        held.tier.put("a", turn)
    assert len(held.tier._table._deadlines) < 100


def test_a_read_only_run_lets_nothing_go(hold: Hold) -> None:
    held = hold({"recent": Keep(ttl_s=60)})
    held.tier.put("a", 1)
    held.clock.advance_s(61)

    def refuse() -> None:
        raise ReadOnlyError("the run is read-only")

    held.context.check_writable = refuse
    held.tiers.experiment_ended()
    held.tiers.phase_changed()
    assert keys(held) == ["a"]


# R2: no tier above its share.


@pytest.mark.parametrize(
    ("keep", "limit"),
    [(Keep(bytes=90_000), None), (Keep(), 300_000), (Keep(delete=False), 300_000)],
)
def test_over_its_cap_a_tiers_oldest_leave_memory(
    hold: Hold, keep: Keep, limit: int | None
) -> None:
    held = hold({"recent": keep}, limit_bytes=limit)
    for number in range(20):
        held.tier.put(f"{number}", f"{number:05}" * 3_000)
        assert held.tier.bytes <= 90_000
        assert f"{number}" in resident(held)
    assert resident(held) == keys(held)[-len(resident(held)) :]
    assert held.last("purge.end")["cause"] == "share_cap"
    assert not held.records("delete")
    assert [held.tier.get(f"{number}") for number in range(20)] == [
        f"{number:05}" * 3_000 for number in range(20)
    ]
    assert held.tier.bytes <= 90_000


def test_what_was_just_put_stays_however_large(hold: Hold) -> None:
    held = hold({"recent": Keep(bytes=100_000)})
    held.tier.put("a", "x" * 50_000)
    held.tier.put("huge", "y" * 200_000)
    assert resident(held) == ["huge"]
    held.tier.put("b", "x" * 500)
    assert resident(held) == ["b"]


def test_a_tier_of_small_things_does_not_look_in_vain_at_each_put(hold: Hold) -> None:
    held = hold({"recent": Keep(bytes=100_000)})
    for number in range(400):
        held.tier.put(f"{number}", number)
    assert held.tier.bytes > 100_000
    assert not held.records("purge.begin")


def test_a_disk_that_is_full_is_told_and_what_was_put_stays(hold: Hold) -> None:
    held = hold({"recent": Keep(bytes=10_000)})
    held.tier.put("a", "x" * 3900)
    held.tier.put("b", "y" * 3900)
    held.blob_files.fail_all("write")
    with pytest.raises(LogError, match="retention of tier recent was refused"):
        held.tier.put("c", "z" * 3900)
    assert (keys(held), resident(held)) == (["a", "b", "c"], ["a", "b", "c"])
    held.blob_files.heal()
    assert held.replay() == held.state()


# Demotion: a summary stays.


TWO = {"recent": Keep(experiments=1, demote_to="history"), "history": Keep(experiments=3)}


def demoted(held: Held, experiments: int = 2) -> Any:
    for number in range(1, experiments + 1):
        held.context.experiment = number
        held.tier.put(f"result/{number}", {"n": number}, importance=0.8)
        held.tier.put(f"input/{number}", "x" * 9000)
        held.tiers.experiment_ended(outcome={"title": f"try {number}", "status": "kept"})
    return held.tiers["history"].peek("summary/1")


def test_an_experiment_leaves_a_summary_before_it_goes(hold: Hold) -> None:
    held = hold(TWO)
    assert demoted(held) == {"experiment": 1, "title": "try 1", "status": "kept"}
    entry = held.tiers["history"].entry("summary/1")
    assert entry is not None
    assert (entry.experiment, entry.importance) == (1, 0.8)
    summaries = [r.lsn for r in held.records("put") if r.text("tier") == "history"]
    assert summaries[0] < min(r.lsn for r in held.records("delete"))


def test_the_tier_below_has_numbers_of_its_own(hold: Hold) -> None:
    held = hold(TWO)
    demoted(held, experiments=4)
    held.context.experiment = 9
    held.tier.put("more", 1)
    assert keys(held, "history") == ["summary/2", "summary/3", "summary/4"]


def test_an_outcome_that_nobody_knows_is_summed_up_by_what_was_held(hold: Hold) -> None:
    held = hold(TWO)
    for number in (1, 2):
        held.context.experiment = number
        held.tier.put(f"result/{number}", "x" * 5000)
    summary = held.tiers["history"].get("summary/1")
    assert (summary["experiment"], summary["entries"]) == (1, 1)
    assert summary["keys"]["result/1"] == summary["bytes"] > 5000


def test_a_run_may_sum_up_in_its_own_way_wherever_the_values_are(hold: Hold) -> None:
    def summarize(entries: list[Entry]) -> Any:
        assert all(entry.value is not ABSENT for entry in entries)
        return {entry.key: len(entry.value) for entry in entries}

    held = hold(TWO, summarize=summarize)
    held.context.experiment = 1
    held.tier.put("input/1", "x" * 9000)
    held.tiers.purge(how="reclaim", cause="operator")
    held.context.experiment = 2
    held.tier.put("input/2", "x")
    assert held.tiers["history"].get("summary/1") == {"input/1": 9000}


def failing(entries: list[Entry]) -> Any:
    raise RuntimeError("no idea")


@pytest.mark.parametrize("summarize", [lambda _: None, lambda _: float("nan"), failing])
def test_a_summary_that_cannot_be_had_is_replaced_by_the_plain_one(
    hold: Hold, summarize: Any
) -> None:
    held = hold(TWO, summarize=summarize)
    assert demoted(held) == {"experiment": 1, "title": "try 1", "status": "kept"}


def test_nothing_goes_whose_summary_cannot_be_written(
    hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = hold(TWO)
    held.context.experiment = 1
    held.tier.put("result/1", 1)
    append = held.log.append

    def full(kind: str, members: dict[str, Any]) -> int:
        if members.get("tier") == "history":
            raise LogError("no space left")
        return append(kind, members)

    monkeypatch.setattr(held.log, "append", full)
    held.context.experiment = 2
    with pytest.raises(LogError, match="no space left"):
        held.tier.put("result/2", 1)
    assert keys(held) == ["result/1", "result/2"]
    monkeypatch.setattr(held.log, "append", append)
    held.tiers.experiment_ended()
    assert (keys(held), keys(held, "history")) == (["result/2"], ["summary/1"])


# R1: the numbers adapt.


def experiments(held: Held, sizes: list[int]) -> list[int | None]:
    numbers = []
    for size in sizes:
        held.context.experiment = (held.context.experiment or 0) + 1
        held.tier.put(f"result/{held.context.experiment}", "x" * size)
        held.tiers.experiment_ended()
        numbers.append(held.tier.in_force.experiments)
    return numbers


def test_numbers_follow_what_experiments_measure_and_the_reason_is_logged(hold: Hold) -> None:
    held = hold({"recent": Keep(experiments=5, bytes=100_000)})
    assert experiments(held, [30_000] * 3) == [5, 2, 2]
    assert held.last("retention") == {
        "x": 2,
        "tier": "recent",
        "what": "experiments",
        "old": 5,
        "new": 2,
        "why": held.last("retention")["why"],
    }
    assert (
        "5 at a mean of 0.031 MB each are over the cap of 0.100 MB" in held.last("retention")["why"]
    )
    assert len(held.tier) == 2
    assert held.tier.keep.experiments == 5
    assert experiments(held, [2_000] * 6)[-1] == 5
    assert len(held.records("retention")) <= 4


def test_numbers_do_not_flap_where_they_just_fit(hold: Hold) -> None:
    held = hold({"recent": Keep(experiments=5, bytes=100_000)})
    experiments(held, [30_000] * 3)
    assert set(experiments(held, [28_000, 32_000] * 10)) == {2}
    assert len(held.records("retention")) == 1


def test_one_always_stays(hold: Hold) -> None:
    held = hold({"recent": Keep(experiments=5, bytes=10_000)})
    assert experiments(held, [50_000] * 3) == [5, 1, 1]


def test_counts_adapt_as_well_and_without_a_cap_nothing_does(hold: Hold) -> None:
    capped, free = hold({"w": Keep(count=200)}, limit_bytes=1_000_000), hold({"w": Keep(count=200)})
    for held in (capped, free):
        for number in range(10):
            held.tier.put(f"{number}", f"{number}" * 5_000)
        held.tiers.experiment_ended()
    assert capped.tier.in_force.count == int(0.9 * 300_000 / (capped.tier.bytes / 10)) < 50
    assert "an entry" in capped.last("retention")["why"]
    assert free.tier.in_force.count == 200
