"""What may go: never what a recovery could start from, and nothing while anything is amiss."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.analytics.checkpoints.prune import prune_of
from memwatch.domain.checkpoints import Checkpoint
from tests.analytics.checkpoints.courses import a_checkpoint


def test_all_but_the_newest_two_and_the_best_may_go() -> None:
    known = [a_checkpoint(number, 100) for number in range(5)]
    found = prune_of(known, best="c1")
    assert found.ids == ("c0", "c2")
    assert found.bytes == 200
    assert found.why == "the newest 2, the best stay"


def test_what_a_link_or_a_tag_names_stays() -> None:
    """To delete what `best.ckpt` links to breaks the link, and what `latest` names is loaded."""
    known = [a_checkpoint(number, 100) for number in range(5)]
    found = prune_of(known, named=("c1", "c4", "gone"))
    assert found.ids == ("c0", "c2")
    assert found.why == "the newest 2, what a link or tag names stay"


def test_names_that_differ_in_more_than_numbers_are_apart() -> None:
    names = ("best.pt", "G_1.pth", "D_1.pth", "G_2.pth", "D_2.pth", "G_3.pth", "D_3.pth")
    known = [a_checkpoint(at, id=name) for at, name in enumerate(names)]
    found = prune_of(known, by_name=True)
    assert found.ids == ("G_1.pth", "D_1.pth")
    assert found.why == "the newest 2 of each kind stay"
    random = [f"2026112{at}T101500_{'abcdef01'[at:]}{'9a' * at}_p-none.json" for at in range(5)]
    known = [a_checkpoint(at, id=name) for at, name in enumerate(random)]
    assert prune_of(known, by_name=True).count == 3


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("begun", "none while the newest is being written"),
        ("incomplete", "none while the newest is incomplete"),
        ("damaged", "none while the newest is damaged"),
    ],
)
def test_none_may_go_while_the_newest_is_not_complete(state: str, why: str) -> None:
    known = [*(a_checkpoint(number) for number in range(5)), a_checkpoint(5, state=state)]
    found = prune_of(known)
    assert (found.ids, found.bytes, found.why) == ((), 0, why)


def test_of_very_many_the_oldest_are_named() -> None:
    found = prune_of([a_checkpoint(number, 10) for number in range(500)])
    assert (len(found.ids), found.count, found.bytes) == (16, 498, 4980)
    assert found.ids[0] == "c0"


def test_few_are_all_needed() -> None:
    assert prune_of([]).why == "", "none is there"
    assert prune_of([a_checkpoint(1)]).why == "all that lie there are needed"
    assert prune_of([a_checkpoint(1), a_checkpoint(2)]).ids == ()


def test_increments_keep_what_they_build_on() -> None:
    def delta(number: int, base: int, thread: str = "") -> Checkpoint:
        return a_checkpoint(number, kind="incremental", base=f"c{base}", thread=thread)

    chain = [a_checkpoint(0), a_checkpoint(1), delta(2, 1), delta(3, 2)]
    assert prune_of([*chain, a_checkpoint(4), delta(5, 4)]).ids == ("c0",)
    more = [a_checkpoint(6), delta(7, 6)]
    assert prune_of([*chain, a_checkpoint(4), delta(5, 4), *more]).ids == ("c0", "c1", "c2", "c3")
    kept = prune_of([*chain, a_checkpoint(4), delta(5, 4), *more], best="c3")
    assert kept.ids == ("c0",), "the best builds on 2 and 1"
    assert kept.why == "the newest 2, the best and what they build on stay"


def test_a_loop_of_bases_ends() -> None:
    loop = [a_checkpoint(n, kind="incremental", base=f"c{1 - n}") for n in range(2)]
    assert prune_of([*loop, *(a_checkpoint(n) for n in range(2, 6))], best="c0").ids == ("c2", "c3")


stores = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from(["full", "incremental"]),
        st.sampled_from(["committed", "committed", "committed", "incomplete", "begun"]),
    ),
    max_size=14,
)


@given(stores, st.integers(0, 13))
def test_what_stays_can_be_recovered_from(told: list[tuple[str, str, str]], best: int) -> None:
    known: list[Checkpoint] = []
    for number, (thread, kind, state) in enumerate(told):
        before = [one for one in known if one.thread == thread and one.state == "committed"]
        base = before[-1].id if before and kind == "incremental" else None
        known.append(a_checkpoint(number, thread=thread, kind=kind, state=state, base=base))
    found = prune_of(known, best=f"c{best}")
    stays = {one.id for one in known} - set(found.ids)
    for thread in {one.thread for one in known}:
        own = [one for one in known if one.thread == thread]
        complete = [one for one in own if one.state == "committed"]
        assert {one.id for one in complete[-2:]} <= stays
        if own[-1].state != "committed":
            assert found.ids == ()
    for one in known:
        if one.id in found.ids:
            assert one.state == "committed"
        elif one.kind == "incremental" and one.state == "committed" and one.base:
            assert one.base in stays
    assert f"c{best}" not in found.ids
    assert bool(found.why) == bool(known)
