"""The entries of a store: one name each, or the parts of one checkpoint beside each other."""

from __future__ import annotations

import os
from typing import NamedTuple

from memwatch.ingest.stores.names import EntryName, entry_name, shard_of
from memwatch.ingest.stores.walk import Found, TooMuchError, Walk

_MOST_LINKS = 64


class Named(NamedTuple):
    """One checkpoint by its name, not yet measured."""

    id: str
    """Its name; bytes that are no UTF-8 stand as `\\udc..`, so that it can be kept and sent."""
    name: EntryName
    folder: bool
    entries: list[os.DirEntry[str]]


class Top(NamedTuple):
    """What a store lists."""

    named: list[Named]
    cut: bool
    """There is more than could be listed."""
    links: tuple[str, ...] = ()
    """Names of links that lie beside them."""


class Entry(NamedTuple):
    """One checkpoint, measured."""

    id: str
    name: EntryName
    folder: bool
    names: tuple[str, ...]
    """As the directory has them."""
    found: Found


def list_top(walk: Walk) -> Top:
    """Return the names that are checkpoints, and links; everything else is left out."""
    named: dict[str, Named] = {}
    links: list[str] = []
    cut = False
    try:
        for entry in walk.top():
            one = named_by(entry)
            if one is None:
                if len(links) < _MOST_LINKS and entry.is_symlink():
                    links.append(entry.name)
            elif one.id in named:
                named[one.id].entries.extend(one.entries)
            else:
                named[one.id] = one
    except TooMuchError:
        cut = True
    return Top(list(named.values()), cut, tuple(links))


class Measured(NamedTuple):
    """What was measured of a store."""

    entries: list[Entry]
    """The newest ones; of the others nothing is kept."""
    others: int
    """So many older ones lie there besides."""
    cut: bool
    """The bound of the look came before the end."""


def measure(walk: Walk, named: list[Named], most: int) -> Measured:
    """Return what is there, the newest first; of more than `most` only how much it is."""
    kept: list[Entry] = []
    others = 0
    named.sort(key=lambda one: max(map(walk.changed_ns, one.entries)))
    while named:
        one = named.pop()  # what was looked at is let go of: there may be very many
        try:
            found = walk.measure(one.entries)
        except TooMuchError:
            return Measured(kept, others, cut=True)
        if found is None:
            continue
        if len(kept) < most:
            names = tuple(entry.name for entry in one.entries)
            kept.append(Entry(one.id, one.name, one.folder, names, found))
        else:
            others += 1
    return Measured(kept, others, cut=False)


def named_by(entry: os.DirEntry[str]) -> Named | None:
    """Return the checkpoint that an entry is, or is a part of; None for links and all else."""
    try:
        folder = entry.is_dir(follow_symlinks=False)
        if not folder and not entry.is_file(follow_symlinks=False):
            return None
    except OSError:
        return None
    shard = None if folder else shard_of(entry.name)
    one = shard.whole if shard else entry.name
    name = entry_name(one, folder=folder)
    return None if name is None else Named(sayable(one), name, folder, [entry])


def sayable(name: str) -> str:
    """Return a name of a file as text that can be encoded."""
    return name.encode("utf-8", "backslashreplace").decode()
