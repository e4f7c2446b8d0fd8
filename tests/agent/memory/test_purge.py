"""Whom a purge takes (R3), and that nothing irreplaceable is ever lost by one (R4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from memwatch.agent.memory.entry import Source
from memwatch.agent.memory.purge import Now, plan
from memwatch.agent.memory.tiers import Purged
from memwatch.domain.errors import ReadOnlyError, UsageError
from memwatch.domain.policy import Keep
from tests.agent.memory.holding import Held

Hold = Callable[..., Held]
LARGE = 3_000
VOID = Source("void")


class Put(NamedTuple):
    """One entry of a table of cases; all are of the same size unless said otherwise."""

    key: str
    tier: str = "t"
    gets: int = 0
    source: Source | None = None
    importance: float = 0.5
    ttl_s: float | None = None
    phase: str = "verification"
    before_s: float = 1.0
    """Time that passes before it is put."""
    size: int = LARGE


def fill(held: Held, puts: list[Put]) -> None:
    for put in puts:
        held.clock.advance_s(put.before_s)
        held.context.phase = put.phase
        value = f"{put.key}:" + "x" * put.size
        tier = held.tiers[put.tier]
        tier.put(put.key, value, source=put.source, importance=put.importance, ttl_s=put.ttl_s)
        for _ in range(put.gets):
            tier.get(put.key)
    held.context.phase = "verification"


def order_of(held: Held, **asked: Any) -> list[str]:
    """Return the keys in the order in which ever larger purges take them."""
    order: list[str] = []
    every = [e.key for tier in held.tiers.values() for e in tier.entries()]
    for _ in every:
        held.tiers.purge(target_bytes=1, cause="pressure", **asked)
        left = {e.key for tier in held.tiers.values() for e in tier.entries() if e.resident}
        order += [key for key in every if key not in left and key not in order]
    return order


CASES = {
    "the fewest accesses go first": (
        {"t": Keep()},
        [Put("twice", gets=2), Put("never"), Put("once", gets=1)],
        ["never", "once", "twice"],
    ),
    "ties go by longest idle": (
        {"t": Keep()},
        [Put("older", gets=1), Put("newer", gets=1), Put("newest", gets=1)],
        ["older", "newer", "newest"],
    ),
    "an access of more than a day ago counts no more": (
        {"t": Keep()},
        [Put("hot long ago", gets=9), Put("hot", gets=2, before_s=90_000), Put("never")],
        ["hot long ago", "never", "hot"],
    ),
    "rebuildable goes before irreplaceable": (
        {"t": Keep()},
        [Put("kept"), Put("made again", source=VOID, gets=5)],
        ["made again", "kept"],
    ),
    "importance of an entry weighs": (
        {"t": Keep()},
        [Put("dear", importance=0.9), Put("cheap", importance=0.1, gets=2)],
        ["cheap", "dear"],
    ),
    "importance of a tier weighs": (
        {"dear": Keep(importance=1.0), "cheap": Keep(importance=0.2)},
        [Put("a", "dear"), Put("b", "cheap", gets=2)],
        ["b", "a"],
    ),
    "expired before all else": (
        {"t": Keep(intermediate=True)},
        [
            Put("stale", phase="exploration", source=VOID),
            Put("expired", ttl_s=3, gets=5, importance=1.0),
            Put("fresh"),
            Put("last"),
        ],
        ["expired", "stale", "fresh", "last"],
    ),
    "a new phase makes the former one's intermediates the first": (
        {"i": Keep(intermediate=True, importance=1.0), "t": Keep(importance=0.1)},
        [
            Put("result", "t", phase="exploration"),
            Put("made again", "t", source=VOID),
            Put("stale", "i", phase="exploration", gets=9),
            Put("of this phase", "i", gets=9),
        ],
        ["stale", "made again", "result", "of this phase"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_order_of_a_purge(hold: Hold, case: str) -> None:
    keep, puts, order = CASES[case]
    held = hold(keep, builders={"void": str})
    fill(held, puts)
    held.clock.advance_s(10)
    assert order_of(held) == order


def test_what_was_asked_for_last_goes_last(hold: Hold) -> None:
    held = hold({"t": Keep()})
    fill(held, [Put("a"), Put("b"), Put("c")])
    for key in "cab":
        held.clock.advance_s(1)
        held.tier.get(key)
    assert order_of(held) == ["c", "a", "b"]


def test_the_oldest_of_a_tier_over_its_cap_go_before_the_least_accessed(hold: Hold) -> None:
    held = hold({"over": Keep(importance=1.0), "t": Keep(importance=0.0)})
    fill(held, [Put("a", "over", gets=3), Put("idle", "t")])
    # A value that grew in place lets a tier go over its cap without a put.
    held.tiers["over"].put("small", ["x"])
    held.tiers["over"].cap_bytes = 3_000
    assert order_of(held) == ["a", "idle"]


@pytest.mark.parametrize(
    ("how", "order"),
    [
        ("oldest", ["a", "b", "c"]),
        ("least_accessed", ["c", "b", "a"]),
        ("reclaim", ["c", "b", "a"]),
        ("expired", []),
    ],
)
def test_a_purge_goes_about_it_as_it_is_told(hold: Hold, how: Any, order: list[str]) -> None:
    held = hold({"t": Keep()})
    fill(held, [Put("a", gets=3), Put("b", gets=2), Put("c", gets=1)])
    assert order_of(held, how=how) == order


# R4: what leaves, and how it comes back.


def test_irreplaceable_values_survive_any_purge(hold: Hold) -> None:
    values: dict[str, Any] = {
        "text": "x" * 9000,
        "json": {"a": [1, 2.5, None, {"deep": "y" * 500}]},
        "bytes": bytes(range(256)) * 40,
        "small": [1],
    }
    held = hold({"t": Keep(), "u": Keep(delete=False)})
    for tier in held.tiers.values():
        for key, value in values.items():
            tier.put(key, value)
    for how in ("compress", "oldest", "least_accessed", "reclaim", None, "expired"):
        held.tiers.purge(how=how, cause="operator")
        for tier in held.tiers.values():
            assert {key: tier.peek(key) for key in values} == values
    for tier in held.tiers.values():
        assert {key: tier.get(key) for key in values} == values
    assert not held.records("delete")


def test_verified_is_never_deleted(hold: Hold) -> None:
    held = hold({"verified": Keep(delete=False, count=2, ttl_s=1, bytes=8_000)})
    for number in range(6):
        held.tier.put(f"{number}", f"{number}" * 5_000, ttl_s=1)
        held.clock.advance_s(2)
    for how in ("expired", "oldest", "least_accessed", "reclaim", None):
        held.tiers.purge(how=how, cause="operator")
    assert [held.tier.get(f"{n}") for n in range(6)] == [f"{n}" * 5_000 for n in range(6)]
    assert not held.records("delete")


def test_a_purge_says_what_it_did(hold: Hold) -> None:
    held = hold({"t": Keep(), "u": Keep()}, builders={"void": str})
    fill(held, [Put("keep"), Put("made", source=VOID), Put("void", ttl_s=1), Put("u", "u")])
    held.clock.advance_s(5)
    before = held.tier.bytes
    rehearsed = held.tiers.purge(tier="t", cause="operator", dry_run=True)
    assert (held.tier.bytes, held.kinds()) == (before, ["put"] * 4)
    done = held.tiers.purge(tier="t", cause="operator")
    assert (done.entries, done.persisted, done.dropped, done.deleted) == (3, 1, 1, 1)
    assert done.freed_bytes == before - held.tier.bytes
    assert rehearsed.freed_bytes == pytest.approx(done.freed_bytes, abs=500)
    assert (rehearsed.persisted, rehearsed.dropped, rehearsed.deleted) == (1, 1, 1)
    assert held.last("purge.begin") == {"tier": "t", "cause": "operator"}
    assert held.last("purge.end") == {
        "tier": "t",
        "cause": "operator",
        "entries": 3,
        "freed_bytes": done.freed_bytes,
        "persisted": 1,
        "dropped": 1,
        "deleted": 1,
        "duration_us": done.duration_us,
    }
    assert held.tiers["u"].entry("u").resident  # type: ignore[union-attr]  # it was put


def test_a_purge_of_several_tiers_is_logged_for_each(hold: Hold) -> None:
    held = hold({"t": Keep(), "u": Keep(), "v": Keep()})
    fill(held, [Put("a", "t"), Put("b", "u")])
    held.tiers.purge(how="reclaim", cause="engine")
    assert [r.text("tier") for r in held.records("purge.end")] == ["t", "u"]
    assert {r.text("how") for r in held.records("purge.end")} == {"reclaim"}


def test_a_target_is_reached_and_not_passed_by_much(hold: Hold) -> None:
    held = hold({"t": Keep(), "u": Keep()})
    fill(held, [Put(f"{n}", "tu"[n % 2]) for n in range(10)])
    done = held.tiers.purge(target_bytes=3 * LARGE + 100, cause="pressure")
    assert 3 * LARGE + 100 <= done.freed_bytes <= 5 * LARGE
    assert held.tiers.purge(target_bytes=0, cause="pressure") == Purged()


def test_only_the_keys_that_are_named_go(hold: Hold) -> None:
    held = hold({"t": Keep()})
    fill(held, [Put("a"), Put("b"), Put("c")])
    assert held.tiers.purge(keys=["a", "c", "unknown"], cause="operator").entries == 2
    assert [e.key for e in held.tier.entries() if e.resident] == ["b"]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"tier": "x"}, "there is no tier 'x': there are t"),
        ({"tier": ["t"]}, "there is no tier"),
        ({"how": "typo"}, "how is one of expired, oldest, .*, not 'typo'"),
        ({"how": {}}, "how is one of"),
        ({"keys": "abc"}, "keys is a list of keys, not 'abc'"),
        ({"keys": ["a", 1]}, "keys is a list of keys"),
        ({"keys": [[]]}, "keys is a list of keys"),
        ({"keys": 7}, "keys is a list of keys"),
        ({"target_bytes": -1}, "target_bytes is a whole number from 0, not -1"),
        ({"target_bytes": 1.5}, "target_bytes is a whole number"),
        ({"target_bytes": "1 MB"}, "target_bytes is a whole number"),
        ({"cause": "because"}, "cause is one of retention, .*, not 'because'"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_goes(
    hold: Hold, asked: dict[str, Any], why: str
) -> None:
    held = hold({"t": Keep()})
    fill(held, [Put("a"), Put("b")])
    before = held.kinds()
    with pytest.raises(UsageError, match=why):
        held.tiers.purge(**{"cause": "operator", **asked})
    assert held.kinds() == before
    assert all(entry.resident for entry in held.tier.entries())


def test_compressed_values_stay_in_memory_and_come_back(hold: Hold) -> None:
    held = hold({"t": Keep()}, builders={"void": str})
    fill(held, [Put("a", size=20_000), Put("made", source=VOID)])
    before = held.tier.bytes
    rehearsed = held.tiers.purge(how="compress", cause="engine", dry_run=True)
    done = held.tiers.purge(how="compress", cause="engine")
    assert (done.entries, done.persisted, done.dropped) == (1, 0, 0)
    assert 15_000 < done.freed_bytes == rehearsed.freed_bytes == before - held.tier.bytes
    assert held.tiers.purge(how="compress", cause="engine").entries == 0
    assert held.tier.get("a") == "a:" + "x" * 20_000
    assert held.tier.bytes == before


def test_a_value_too_small_for_a_file_stays(hold: Hold) -> None:
    held = hold({"t": Keep()})
    held.tier.put("tiny", 1.5)
    assert held.tiers.purge(how="reclaim", cause="operator") == Purged()


# What is in the way.


def test_what_changed_since_it_was_chosen_is_left_alone(hold: Hold) -> None:
    held = hold({"t": Keep()})
    fill(held, [Put("a"), Put("b"), Put("c")])
    now = Now(held.clock.boot_us(), "", may_delete=True)
    victims = plan([held.tier.look(None)], "reclaim", None, now)
    held.tier.put("a", "new" * LARGE)
    held.tier.delete("b")
    assert held.tier.carry_out(victims, "reclaim", "operator").entries == 1
    assert [e.key for e in held.tier.entries() if e.resident] == ["a"]


def test_while_read_only_what_expired_only_leaves_memory(hold: Hold) -> None:
    held = hold({"t": Keep()})
    fill(held, [Put("other"), Put("expired", ttl_s=1)])
    held.clock.advance_s(5)

    def refuse() -> None:
        raise ReadOnlyError("the run is read-only")

    held.context.check_writable = refuse
    done = held.tiers.purge(cause="engine")
    assert (done.entries, done.deleted, done.persisted, done.refused) == (2, 0, 2, "")
    assert len(held.tier) == 2


@pytest.mark.parametrize("full", ["log", "blobs", "both"])
def test_a_full_disk_does_not_keep_what_can_be_made_again(hold: Hold, full: str) -> None:
    held = hold({"t": Keep()}, builders={"void": str})
    fill(held, [Put("kept"), Put("made", source=VOID), Put("expired", ttl_s=1)])
    held.clock.advance_s(5)
    before = held.state()
    if full != "blobs":
        held.log_files.fail_all("write")
    if full != "log":
        held.blob_files.fail_all("write")
    done = held.tiers.purge(cause="pressure")
    assert "No space left" in done.refused
    assert done.dropped == 1
    assert done.deleted == (full == "blobs")
    assert "kept" in held.tier
    assert held.tier.peek("kept") == "kept:" + "x" * LARGE
    if full == "blobs":
        assert held.last("purge.end")["refused"] == done.refused
        del before["t"]["expired"]
    held.log_files.heal()
    held.blob_files.heal()
    assert held.state() == before == held.replay()
