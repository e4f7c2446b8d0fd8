"""What tiers keep: numbers, times and shares (R1, R2)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import memwatch.agent.memory.tier
from memwatch.domain.errors import LogError, ReadOnlyError
from memwatch.domain.policy import KEEP, Keep
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
    assert len(held.tier.table._deadlines) < 100


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


def test_a_tier_of_small_things_does_not_look_in_vain_at_each_put(
    hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[object] = []

    def oldest(*about: object) -> list[str]:
        looks.append(about)
        return []

    monkeypatch.setattr(memwatch.agent.memory.tier, "oldest", oldest)
    held = hold({"recent": Keep(bytes=500_000)})
    for number in range(1_000):
        held.tier.put(f"{number}", number)
    assert held.tier.bytes > 750_000
    assert 0 < len(looks) < 150
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
