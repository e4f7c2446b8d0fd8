"""Code of the agent that the tiers call, and objects of it that they look at: whatever these do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from memwatch.agent.memory.entry import Entry, Source
from memwatch.agent.memory.sizes import deep_bytes
from memwatch.domain.errors import UnkeepableError
from memwatch.domain.policy import Keep
from tests.agent.memory.holding import Held

Hold = Callable[..., Held]


class Unequal(dict[str, int]):
    """Cannot be compared."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not comparable")

    __hash__ = None


class Closed(Mapping[str, int]):
    """A mapping that lets nobody in, and does not know its size."""

    def __getitem__(self, key: str) -> int:
        raise OSError("closed")

    def __iter__(self) -> Iterator[str]:
        raise OSError("closed")

    def __len__(self) -> int:
        return 1

    @property
    def secret(self) -> int:
        raise RuntimeError("no")


class Slotted:
    """Attributes that fail."""

    __slots__ = ("real",)

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


def test_a_value_that_cannot_be_compared_is_kept_as_what_it_holds_or_refused(hold: Hold) -> None:
    held = hold()
    held.tier.put("a", Unequal(a=1))
    assert held.state() == held.replay()


def test_a_value_that_fails_when_it_is_read_is_refused(hold: Hold) -> None:
    class Failing(dict[str, int]):
        def items(self) -> Any:
            raise OSError("closed")

        __eq__ = Unequal.__eq__
        __hash__ = None

    held = hold()
    with pytest.raises(UnkeepableError, match="closed"):
        held.tier.put("a", Failing(a=1))
    assert held.kinds() == []


@pytest.mark.parametrize("make", [Closed, Slotted, lambda: [Closed(), Slotted()]])
def test_an_object_that_lets_nobody_look_can_be_kept_by_its_source(
    hold: Hold, make: Callable[[], object]
) -> None:
    value = make()
    held = hold(builders={"make": lambda: value})
    held.tier.put("a", value, source=Source("make"))
    assert held.tier.get("a") is value
    assert deep_bytes(value) > 0


def test_a_value_that_holds_itself_is_refused_in_a_sentence_that_can_be_read(hold: Hold) -> None:
    loop: dict[str, Any] = {}
    loop["again"] = loop
    with pytest.raises(UnkeepableError, match="holds itself") as refused:
        hold().tier.put("a", loop)
    assert len(str(refused.value)) < 300


def test_a_summary_that_puts_into_the_tier_that_it_sums_up_is_made_once(hold: Hold) -> None:
    made = 0

    def summarize(entries: list[Entry]) -> dict[str, int]:
        nonlocal made
        made += 1
        held.tiers["recent"].put(f"note/{made}", made, experiment=made + 100)
        return {"entries": len(entries)}

    keep = {"recent": Keep(experiments=2, demote_to="history"), "history": Keep()}
    held = hold(keep, summarize=summarize)
    for number in range(1, 6):
        held.tier.put(f"k{number}", number, experiment=number)
    assert made == len([key for key in held.tiers["history"].entries() if "summary/" in key.key])
    assert made < 10
    assert held.state() == held.replay()


def test_a_summary_that_clears_the_tier_leaves_the_agent_alive(hold: Hold) -> None:
    def summarize(entries: list[Entry]) -> dict[str, int]:
        held.tiers["recent"].clear()
        return {"entries": len(entries)}

    keep = {"recent": Keep(ttl_s=10, demote_to="history"), "history": Keep()}
    held = hold(keep, summarize=summarize)
    for number in range(1, 4):
        held.tier.put(f"k{number}", number, experiment=number)
    held.clock.advance_s(20)
    held.tiers.purge(how="expired", cause="pressure")
    assert len(held.tier) == 0
    assert held.state() == held.replay()
