"""Which checkpoints of a store could go, in words and figures. Nothing is ever deleted by us."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from memwatch.domain.checkpoints import Checkpoint, Prune

KEPT = 2
"""Newest complete full ones that stay, of each chain: one may turn out to be unreadable."""

NAMED = 16
_NUMBER = re.compile(r"[0-9a-f]{8,}|\d+")
"""Names are made of numbers and of random ones."""

BY_THE_AGENT: Final = Prune(why="the agent drops by itself what two whole full ones make needless")


def prune_of(
    known: Sequence[Checkpoint],
    best: str = "",
    named: Collection[str] = (),
    *,
    by_name: bool = False,
) -> Prune:
    """Return which of a store's checkpoints, oldest first, no recovery and no result needs.

    What stays: of each thread the newest complete full ones and all behind the older of them, the
    `best`, those that a link or tag of the store has `named`, and what these build on. With
    `by_name` those whose names differ in more than numbers are apart: `best.pt` is no older one of
    `model-7.pt`, nor `D_7.pth` of `G_7.pth`. Nothing may go while the newest of a thread is not
    complete.
    """
    threads: dict[str, list[Checkpoint]] = defaultdict(list)
    kinds: dict[tuple[str, str], list[Checkpoint]] = defaultdict(list)
    for one in known:
        threads[one.thread].append(one)
        kinds[one.thread, _NUMBER.sub("#", one.id) if by_name else ""].append(one)
    for some in threads.values():
        if some[-1].state != "committed":
            return Prune(why=_not_now(some[-1]))
    kept = {one.id for some in kinds.values() for one in _needed(some)}
    also = {one.id for one in known if one.id in named} - kept
    kept |= also | {one.id for one in known if one.id == best}
    kept = _with_bases(kept, known)
    gone = [one for one in known if one.state == "committed" and one.id not in kept]
    if not gone:
        return Prune(why="all that lie there are needed" if known else "")
    why = f"the newest {KEPT}" + (" of each kind" if len(kinds) > len(threads) else "")
    why += (", the best" if best in kept else "") + (", what a link or tag names" if also else "")
    why += " and what they build on stay" if _any_base(known) else " stay"
    return Prune(
        ids=tuple(one.id for one in gone[:NAMED]),
        count=len(gone),
        bytes=sum(one.bytes or 0 for one in gone),
        why=why,
    )


def _not_now(newest: Checkpoint) -> str:
    if newest.state == "begun":
        return "none while the newest is being written"
    return f"none while the newest is {newest.state}"


def _needed(thread: Sequence[Checkpoint]) -> Sequence[Checkpoint]:
    """Return what of a thread stays: all from the second newest full one on."""
    complete = [one for one in thread if one.state == "committed"]
    full = [place for place, one in enumerate(complete) if one.kind == "full"]
    return complete[full[-KEPT] :] if len(full) >= KEPT else complete


def _with_bases(kept: set[str], known: Iterable[Checkpoint]) -> set[str]:
    """Add what an incremental one builds on, to the full one; a loop of names ends as well."""
    by_id = {one.id: one for one in known}
    found = set(kept)
    waiting = list(kept)
    while waiting:
        one = by_id.get(waiting.pop())
        if one is None or one.kind == "full" or one.base is None or one.base in found:
            continue
        found.add(one.base)
        waiting.append(one.base)
    return found


def _any_base(known: Iterable[Checkpoint]) -> bool:
    return any(one.base is not None and one.kind != "full" for one in known)
