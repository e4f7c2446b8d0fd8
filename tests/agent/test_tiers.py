"""Tiers: log before apply, absolute bytes, retention by groups and by bytes, net changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from memwatch.agent.memory.sizes import deep_bytes
from memwatch.agent.memory.tiers import ENTRY_BYTES, Entry, Keep, Tier, Tiers
from memwatch.domain.errors import LogError


class Recorded:
    """A log in memory, which refuses when told to."""

    def __init__(self) -> None:
        self.records: list[tuple[str, dict[str, Any]]] = []
        self.full = False

    def __call__(self, kind: str, members: dict[str, Any]) -> int:
        """Append."""
        if self.full:
            raise LogError("no space left")
        self.records.append((kind, members))
        return len(self.records)

    def kinds(self) -> list[str]:
        """Return the kinds so far."""
        return [kind for kind, _ in self.records]


def a_tier(keep: Keep | None = None) -> tuple[Tier, Recorded]:
    log = Recorded()
    return Tiers({"recent": keep or Keep()}, log)["recent"], log


def test_put_logs_what_the_entry_holds_afterwards() -> None:
    tier, log = a_tier()
    entry = tier.put("a", b"x" * 10_000, tokens=12, rebuildable=True, importance=0.9)
    kind, members = log.records[0]
    assert kind == "put"
    assert members == {
        "tier": "recent",
        "key": "a",
        "bytes": tier.bytes,
        "tokens": 12,
        "rebuildable": True,
        "importance": 0.9,
    }
    assert tier.bytes == entry.bytes == deep_bytes("a") + deep_bytes(b"x" * 10_000) + ENTRY_BYTES
    assert (tier.get("a"), entry.lsn, tier.tokens) == (b"x" * 10_000, 1, 12)


def test_a_small_value_stands_in_its_record() -> None:
    tier, log = a_tier()
    tier.put("a", {"ratio": 2.5})
    assert log.records[0][1]["value"] == {"ratio": 2.5}


def test_a_second_put_is_an_update_with_absolute_bytes() -> None:
    tier, log = a_tier()
    tier.put("a", b"x" * 10_000, tokens=5)
    tier.put("a", b"x" * 50_000, tokens=7)
    assert log.kinds() == ["put", "update"]
    assert log.records[1][1]["bytes"] == tier.bytes
    assert (len(tier), tier.tokens) == (1, 7)


def test_delete_and_clear() -> None:
    tier, log = a_tier()
    for key in ("call/1", "call/2", "other"):
        tier.put(key, b"x" * 5000)
    assert tier.clear("call/") > 10_000
    tier.delete("other")
    assert (len(tier), tier.bytes) == (0, 0)
    assert log.records[-1] == ("delete", {"tier": "recent", "key": "other", "bytes": 0})
    with pytest.raises(KeyError):
        tier.delete("other")


def test_what_cannot_be_logged_is_not_applied() -> None:
    tier, log = a_tier()
    tier.put("a", b"old")
    log.full = True
    with pytest.raises(LogError):
        tier.put("a", b"new")
    with pytest.raises(LogError):
        tier.put("b", b"new")
    with pytest.raises(LogError):
        tier.delete("a")
    assert [(e.key, e.value) for e in tier.entries()] == [("a", b"old")]


def test_retention_keeps_the_newest_groups_and_says_so() -> None:
    tier, log = a_tier(Keep(groups=2))
    for number in range(3):
        tier.put(f"result/{number}", b"x" * 5000, group=f"{number}")
        tier.put(f"input/{number}", b"x" * 100, group=f"{number}")
    assert [e.key for e in tier.entries()] == ["result/1", "input/1", "result/2", "input/2"]
    assert log.kinds()[5:9] == ["purge.begin", "delete", "delete", "purge.end"]
    end = log.records[8][1]
    assert (end["cause"], end["entries"], end["dropped"]) == ("retention", 2, 2)
    assert end["freed_bytes"] > 5100


def test_entries_without_a_group_do_not_count() -> None:
    tier, _ = a_tier(Keep(groups=1))
    for number in range(5):
        tier.put(f"{number}", b"x")
    assert len(tier) == 5


def test_the_cap_takes_the_oldest_first_and_never_the_one_just_put() -> None:
    tier, log = a_tier(Keep(bytes=100_000))
    for number in range(20):
        tier.put(f"{number}", b"x" * 20_000)
        assert tier.bytes <= 100_000
        assert f"{number}" in tier
    assert log.records[-1][1]["cause"] == "share_cap"
    tier.put("huge", b"x" * 200_000)
    assert [e.key for e in tier.entries()] == ["huge"]


def test_an_entry_is_demoted_before_it_goes() -> None:
    log = Recorded()
    tiers = Tiers({"recent": Keep(groups=1), "history": Keep(groups=3)}, log)

    def demote(entry: Entry) -> None:
        tiers["history"].put(entry.key, {"key": entry.key}, group=entry.key)

    tiers["recent"].demote = demote
    for number in range(3):
        tiers["recent"].put(f"{number}", b"x" * 9000, group=f"{number}")
    assert [e.key for e in tiers["history"].entries()] == ["0", "1"]
    history = [i for i, (_, m) in enumerate(log.records) if m["tier"] == "history"]
    deletes = [i for i, (kind, _) in enumerate(log.records) if kind == "delete"]
    assert history[0] < deletes[0]


def test_accesses_are_counted_since_the_last_record() -> None:
    tier, log = a_tier()
    tier.put("a", 1)
    tier.get("a")
    tier.get("a")
    tier.log_accesses()
    tier.log_accesses()
    assert log.records[1:] == [("access", {"tier": "recent", "counts": {"a": 2}})]


def test_totals_leave_out_what_is_not_known() -> None:
    tiers = Tiers({"workspace": Keep(bytes=1000), "recent": Keep()}, Recorded())
    assert tiers.totals() == {
        "workspace": {"entries": 0, "bytes": 0, "limit": 1000},
        "recent": {"entries": 0, "bytes": 0},
    }


class NetChanges(RuleBasedStateMachine):
    """Whatever happens: base state + net changes = state, and sums are the sums."""

    def __init__(self) -> None:
        super().__init__()
        self.log = Recorded()
        self.tiers = Tiers({"recent": Keep(groups=3)}, self.log)
        self.tier = self.tiers["recent"]
        self.base: dict[str, int] = {}

    @rule(key=st.sampled_from("abcdef"), size=st.integers(0, 5000), grouped=st.booleans())
    def put(self, key: str, size: int, grouped: bool) -> None:
        """Put or update."""
        self.tier.put(key, b"x" * size, group=key if grouped else None)

    @rule(key=st.sampled_from("abcdef"))
    def delete(self, key: str) -> None:
        """Delete what is there."""
        if key in self.tier:
            self.tier.delete(key)

    @rule()
    def checkpoint(self) -> None:
        """A checkpoint holds everything."""
        self.base = {entry.key: entry.lsn for entry in self.tier.entries()}
        self.tier.forget_changes(len(self.log.records))

    @invariant()
    def sums_hold(self) -> None:
        """Bytes are those of the entries."""
        assert self.tier.bytes == sum(entry.bytes for entry in self.tier.entries())

    @invariant()
    def changes_lead_from_base_to_now(self) -> None:
        """Apply the net changes to the base."""
        state = dict(self.base)
        for key, change in self.tier.changes().items():
            entry = self.tier.entry(key)
            if entry is None:
                assert key in self.base, "a key that the base never had needs no change"
                del state[key]
            else:
                state[key] = change.lsn
        assert state == {entry.key: entry.lsn for entry in self.tier.entries()}


TestNetChanges = NetChanges.TestCase
