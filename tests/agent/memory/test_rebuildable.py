"""Values that are dropped and made again from their source (R4)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memwatch.agent.memory.entry import Source
from memwatch.domain.errors import UnkeepableError
from memwatch.domain.policy import Keep
from tests.agent.memory.holding import Held

Hold = Callable[..., Held]
VOID = Source("void")


def test_a_rebuildable_value_may_be_anything_and_is_made_again(hold: Hold) -> None:
    made: list[int] = []

    def primes(below: int) -> frozenset[int]:
        made.append(below)
        return frozenset(n for n in range(2, below) if all(n % d for d in range(2, n)))

    held = hold({"t": Keep()}, builders={"primes": primes})
    value = held.tier.build("p", "primes", below=100)
    assert held.tier.build("p", "primes", below=100) is value
    assert held.last("put")["source"] == {"args": {"below": 100}, "by": "primes"}
    assert held.last("put")["rebuildable"] is True
    held.tiers.purge(how="reclaim", cause="operator")
    assert not held.tier.entry("p").resident  # type: ignore[union-attr]  # it was put
    assert held.tier.get("p") == value
    assert made == [100, 100]
    assert held.tier.build("p", "primes", below=10) == {2, 3, 5, 7}
    assert held.replay() == held.state()


def test_a_builder_that_fails_raises_its_own_error_with_the_key(hold: Hold) -> None:
    def broken(n: int) -> None:
        raise ZeroDivisionError("by nothing")

    held = hold({"t": Keep()}, builders={"broken": broken})
    held.tier.put("a", "x" * 900, source=Source("broken", {"n": 1}))
    held.tiers.purge(how="reclaim", cause="operator")
    with pytest.raises(ZeroDivisionError, match="by nothing") as caught:
        held.tier.get("a")
    assert caught.value.__notes__ == ["while the builder 'broken' made 'a'"]
    assert "a" in held.tier


def test_a_builder_that_is_not_there_is_named(hold: Hold) -> None:
    held = hold({"t": Keep()})
    held.tier.put("a", "x" * 900, source=Source("gone"))
    held.tiers.purge(how="reclaim", cause="operator")
    with pytest.raises(LookupError, match=r"'a' is made by the builder 'gone'.*builders="):
        held.tier.get("a")


def test_a_rebuildable_value_that_was_persisted_is_read_and_made_where_that_fails(
    hold: Hold,
) -> None:
    held = hold({"t": Keep()}, builders={"void": lambda: "made"})
    entry = held.tier.put("a", "x" * 900, source=VOID)
    entry.blob = held.blobs.save(b'"read"')
    held.tiers.purge(how="reclaim", cause="operator")
    assert held.tier.peek("a") == "read"
    (held.context.path / "blobs" / entry.blob.sha256).write_bytes(b"damaged")
    assert held.tier.get("a") == "made"


def test_a_source_that_a_log_cannot_hold_is_refused(hold: Hold) -> None:
    held = hold()
    with pytest.raises(UnkeepableError, match="source of 'a'"):
        held.tier.put("a", 1, source=Source("make", {"n": float("inf")}))
    with pytest.raises(TypeError, match="a key is text"):
        held.tier.put(3, 1)  # type: ignore[arg-type]  # what a program without types may do
