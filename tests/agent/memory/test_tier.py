"""A tier: logged before applied, absolute bytes, and nothing kept that the log does not know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Struct

from memwatch.agent.memory.entry import Blob
from memwatch.agent.memory.sizes import deep_bytes
from memwatch.agent.memory.values import Types
from memwatch.agent.receipt import Receipt
from memwatch.domain.errors import DamagedError, LogError, ReadOnlyError, UnkeepableError
from tests.agent.memory.holding import Held

Hold = Callable[..., Held]
LARGE = "x" * 10_000


class Point(Struct):
    """A class of the agent's own."""

    x: int
    y: int


def test_put_logs_what_the_entry_holds_afterwards(hold: Hold) -> None:
    held = hold()
    held.context.experiment, held.context.phase = 3, "exploration"
    entry = held.tier.put("a", {"n": 1}, tokens=12, importance=0.9, ttl_s=1.5)
    assert held.last("put") == {
        "x": 3,
        "tier": "recent",
        "key": "a",
        "bytes": held.tier.bytes,
        "tokens": 12,
        "importance": 0.9,
        "ttl_us": 1_500_000,
        "value": {"n": 1},
    }
    assert (held.tier.get("a"), entry.lsn, held.tier.tokens) == ({"n": 1}, 1, 12)
    assert (entry.experiment, entry.phase) == (3, "exploration")


def test_what_goes_without_saying_is_not_said(hold: Hold) -> None:
    held = hold()
    held.tier.put("a", None)
    about = {"tier": "recent", "key": "a", "bytes": held.tier.bytes, "value": None}
    assert held.last("put") == about


def test_an_entry_may_count_under_another_experiment(hold: Hold) -> None:
    held = hold()
    held.context.experiment = 3
    held.tier.put("a", 1, experiment=2)
    assert (held.last("put")["x"], held.last("put")["of"]) == (3, 2)


def test_bytes_are_those_of_the_value_and_of_what_the_tier_adds(hold: Hold) -> None:
    tier = hold().tier
    small = tier.put("a", "x").bytes
    large = tier.put("b", LARGE).bytes
    assert large - small == pytest.approx(deep_bytes(LARGE) - deep_bytes("x"), abs=300)
    assert tier.bytes == small + large


@pytest.mark.parametrize(
    ("value", "type_name"), [(b"\x00\xff" * 10, "bytes"), (Point(1, 2), "Point")]
)
def test_a_value_that_is_no_plain_json_names_its_type(
    hold: Hold, value: Any, type_name: str
) -> None:
    held = hold(types=Types([Point]))
    held.tier.put("a", value)
    assert held.last("put")["type"] == type_name
    held.tiers.purge(how="reclaim", cause="operator")
    assert held.tier.get("a") == value


def test_a_large_value_is_on_disk_before_its_record(
    hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = hold()
    seen: list[int] = []
    append = held.log.append

    def watched(kind: str, members: dict[str, Any], receipt: Receipt) -> int:
        seen.append(held.blobs.stored_bytes(members["blob"]))
        return append(kind, members, receipt)

    monkeypatch.setattr(held.log, "append", watched)
    entry = held.tier.put("a", LARGE)
    assert seen
    assert seen[0] > 0
    assert entry.blob is not None
    assert held.last("put")["blob_bytes"] == entry.blob.bytes == len(LARGE) + 2


def test_a_second_put_is_an_update_with_absolute_bytes(hold: Hold) -> None:
    held = hold()
    held.tier.put("a", "x" * 1000, tokens=5)
    held.tier.put("a", "y" * 3000, tokens=7)
    assert held.kinds() == ["put", "update"]
    assert held.last("update")["bytes"] == held.tier.bytes
    assert (len(held.tier), held.tier.tokens) == (1, 7)


def test_delete_and_clear(hold: Hold) -> None:
    held = hold()
    for key in ("call/1", "call/2", "other"):
        held.tier.put(key, "x" * 5000)
    assert held.tier.clear("call/") > 10_000
    held.tier.delete("other")
    assert (len(held.tier), held.tier.bytes) == (0, 0)
    assert held.last("delete") == {"tier": "recent", "key": "other", "bytes": 0}
    with pytest.raises(KeyError):
        held.tier.delete("other")
    with pytest.raises(KeyError):
        held.tier.get("other")


def test_memory_is_as_it_was_while_a_change_is_logged(
    hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = hold()
    seen: list[list[tuple[str, Any]]] = []
    append = held.log.append

    def watched(kind: str, members: dict[str, Any], receipt: Receipt) -> int:
        seen.append([(entry.key, entry.value) for entry in held.tier.entries()])
        return append(kind, members, receipt)

    monkeypatch.setattr(held.log, "append", watched)
    held.tier.put("a", 1)
    held.tier.put("a", 2)
    held.tier.delete("a")
    assert seen == [[], [("a", 1)], [("a", 2)]]


@pytest.mark.parametrize("broken", ["log", "blob"])
def test_what_cannot_be_written_is_not_applied(hold: Hold, broken: str) -> None:
    held = hold()
    held.tier.put("a", LARGE)
    held.tier.put("d", "small")
    before, bytes_before = held.state(), held.tier.bytes
    files = held.log_files if broken == "log" else held.blob_files
    files.fail_all("write")
    acts: list[Callable[[], object]] = [
        lambda: held.tier.put("a", "w" * 20_000),
        lambda: held.tier.put("b", "y" * 20_000),
    ]
    if broken == "log":
        acts += [lambda: held.tier.delete("d"), lambda: held.tier.put("c", 1)]
    for act in acts:
        with pytest.raises(LogError):
            act()
    files.heal()
    assert (held.state(), held.tier.bytes) == (before, bytes_before)
    assert held.replay() == before
    assert held.tiers.take_changes()["recent"].keys() == {"a", "d"}
    held.tier.put("b", "y" * 20_000)
    assert held.replay() == held.state()


def test_a_blob_whose_record_was_refused_is_not_kept(hold: Hold) -> None:
    held = hold()
    held.tier.put("a", 1)
    held.log_files.fail_all("write")
    with pytest.raises(LogError):
        held.tier.put("b", LARGE)
    assert held.blobs.collect(held.log.last_lsn)[0] == 1


def test_a_blob_lives_as_long_as_an_entry_refers_to_it(hold: Hold) -> None:
    held = hold()
    held.tier.put("a", LARGE)
    held.tier.put("b", LARGE)
    held.tier.delete("a")
    assert held.blobs.collect(held.log.last_lsn)[0] == 0
    held.tier.put("b", "small")
    replaced = held.log.last_lsn
    assert held.blobs.collect(replaced - 1)[0] == 0
    assert held.blobs.collect(replaced)[0] == 1


@pytest.mark.parametrize("value", [float("nan"), {"a": [object()]}, {1: 2}, "\ud800", 1 << 70])
def test_what_a_log_cannot_hold_is_refused_at_the_call(hold: Hold, value: Any) -> None:
    held = hold()
    with pytest.raises(UnkeepableError, match="'a' of tier recent"):
        held.tier.put("a", value)
    assert (len(held.tier), held.kinds()) == (0, [])


def test_a_read_only_run_refuses_every_change(hold: Hold) -> None:
    held = hold(builders={"make": lambda: 1})
    held.tier.put("a", 1)

    def refuse() -> None:
        raise ReadOnlyError("the run is read-only")

    held.context.check_writable = refuse
    acts: list[Callable[[], object]] = [
        lambda: held.tier.put("a", 2),
        lambda: held.tier.delete("a"),
        held.tier.clear,
        lambda: held.tier.build("b", "make"),
    ]
    for act in acts:
        with pytest.raises(ReadOnlyError):
            act()
    assert (held.tier.get("a"), held.kinds()) == (1, ["put"])


def test_accesses_are_counted_since_the_last_record(hold: Hold) -> None:
    held = hold()
    held.tier.put("a", 1)
    held.tier.put("gone", 1)
    for key in ("a", "gone", "a"):
        held.tier.get(key)
    assert held.tier.peek("a") == 1
    held.tier.delete("gone")
    held.tier.log_accesses()
    held.tier.log_accesses()
    assert [r.members["counts"] for r in held.records("access")] == [{"a": 2}]


def test_a_value_that_no_file_holds_any_more_is_named(hold: Hold) -> None:
    held = hold()
    entry = held.tier.put("a", LARGE)
    held.tiers.purge(how="reclaim", cause="operator")
    assert entry.blob is not None
    (held.context.path / "blobs" / entry.blob.sha256).write_bytes(b"\x00")
    with pytest.raises(DamagedError, match=entry.blob.sha256):
        held.tier.get("a")
    entry.blob = None
    with pytest.raises(DamagedError, match="'a' is lost"):
        held.tier.get("a")


def test_a_value_that_is_replaced_while_it_is_read_comes_back_new(
    hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = hold()
    held.tier.put("a", LARGE)
    held.tiers.purge(how="reclaim", cause="operator")
    load = held.blobs.load

    def replaced_meanwhile(blob: Blob) -> bytes:
        held.tier.put("a", "new")
        monkeypatch.setattr(held.blobs, "load", load)
        raise DamagedError("collected meanwhile")

    monkeypatch.setattr(held.blobs, "load", replaced_meanwhile)
    assert held.tier.get("a") == "new"
