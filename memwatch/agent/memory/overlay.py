"""A table of entries that stands still for whoever reads it, while changes go on top.

This makes a capture free of charge, however much is held: no entry is copied or even touched. What
changed meanwhile is settled into the table afterwards, some at a time. The order is that of a
dict in which a changed entry moves to the end.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, ValuesView
from itertools import islice

from memwatch.agent.memory.entry import Entry


class Overlay(MutableMapping[str, Entry]):
    """What a table holds now: `base`, which does not change, under what was changed since."""

    def __init__(self, base: dict[str, Entry]) -> None:
        self.base = base
        self._own: dict[str, Entry] = {}
        self._hidden: set[str] = set()
        """Keys of the base that have another entry now, or none."""

    def __getitem__(self, key: str) -> Entry:
        """Return an entry; raises KeyError."""
        entry = self._own.get(key)
        if entry is not None:
            return entry
        if key in self._hidden:
            raise KeyError(key)
        return self.base[key]

    def __setitem__(self, key: str, entry: Entry) -> None:
        """Put an entry; one in place of another goes to the end."""
        self._own.pop(key, None)
        self._own[key] = entry
        if key in self.base:
            self._hidden.add(key)

    def __delitem__(self, key: str) -> None:
        """Remove an entry; raises KeyError."""
        if self._own.pop(key, None) is None and (key in self._hidden or key not in self.base):
            raise KeyError(key)
        if key in self.base:
            self._hidden.add(key)

    def __iter__(self) -> Iterator[str]:
        """Iterate the keys in order."""
        hidden = self._hidden
        yield from (key for key in self.base if key not in hidden)
        yield from self._own

    def __len__(self) -> int:
        """Count of entries."""
        return len(self.base) - len(self._hidden) + len(self._own)

    def values(self) -> ValuesView[Entry]:
        """Return the entries in order."""
        return _Values(self)

    def each(self) -> Iterator[Entry]:
        """Iterate the entries in order."""
        hidden = self._hidden
        yield from (entry for key, entry in self.base.items() if key not in hidden)
        yield from self._own.values()

    def settle(self, most: int) -> bool:
        """Move so many changes into the base; returns whether it holds all of them now."""
        for key in list(islice(self._hidden, most)):
            del self.base[key]
            self._hidden.discard(key)
            most -= 1
        if not self._hidden:
            for key in list(islice(self._own, most)):
                self.base[key] = self._own.pop(key)
        return not self._hidden and not self._own


class _Values(ValuesView[Entry]):
    """Iterated at a tenth of the cost of looking up each key."""

    _mapping: Overlay

    def __iter__(self) -> Iterator[Entry]:
        return self._mapping.each()
