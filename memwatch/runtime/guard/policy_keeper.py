"""The policy in force, followed as its files change: a broken one changes nothing and is said.

Source: R8 to R10 ("a running guard takes a changed policy over").
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec

from memwatch.config.policy import Policy
from memwatch.config.policy_load import PolicyBook, load_policy, usable_policy
from memwatch.config.schema import Profile
from memwatch.domain.errors import ConfigError
from memwatch.domain.text import inert

LOOK_US = 2_000_000
_ERROR_WIDTH = 300


class PolicyKeeper:
    """Holds the book; `look` is called from a thread that may wait for a disk."""

    def __init__(
        self,
        profile: Profile,
        run_dir: Path,
        run_home: Path,
        extra: Path | None,
        ops: Collection[str],
    ) -> None:
        self._profile = profile
        self._run_dir, self._run_home, self._extra = run_dir, run_home, extra
        self._ops = ops
        self._due_us = 0
        self._others = False
        """Another agent is there: what it lacks may be another thing."""
        self.book, error = usable_policy(
            profile, run_dir=run_dir, run_home=run_home, extra=extra, ops=ops
        )
        self.error = inert(error, _ERROR_WIDTH)
        """Why the files are not what is in force; empty when they are."""
        self._files = self.book.watch()

    def of(self, phase: str | None) -> Policy:
        """Return the policy for a phase as the agent declares it."""
        return self.book.of(phase)

    def follow_agent(self, ops: Collection[str]) -> None:
        """Follow an agent that began again and may take other operations."""
        if frozenset(ops) != frozenset(self._ops):
            self._ops = ops
            self._due_us, self._others = 0, True

    def look(self, m_us: int) -> dict[str, Any] | None:
        """Take over what changed; returns the members of a `policy` record, or None."""
        if m_us < self._due_us:
            return None
        self._due_us = m_us + LOOK_US
        changed, self._others = self._files.changed() or self._others, False
        return self.reload() if changed else None

    def reload(self) -> dict[str, Any] | None:
        """Read all files again; returns the members of a `policy` record, or None."""
        self._files.changed()  # what comes after this is seen at the next look
        try:
            book = load_policy(
                self._profile,
                run_dir=self._run_dir,
                run_home=self._run_home,
                extra=self._extra,
                ops=self._ops,
            )
        except ConfigError as error:
            return self._refused(inert(str(error), _ERROR_WIDTH))
        before, self.book, self._files = self.book, book, book.watch()
        healed, self.error = bool(self.error), ""
        changed = _changes(before, book)
        if not changed and not healed:
            return None
        return {"source": book.origin, "changed": changed, "error": ""}

    def _refused(self, error: str) -> dict[str, Any] | None:
        if error == self.error:
            return None
        self.error = error
        return {"source": self.book.origin, "changed": [], "error": error}


def _changes(before: PolicyBook, after: PolicyBook) -> list[str]:
    """Return the dotted keys that differ, those of the base first."""
    old, new = dict(_leaves(_values(before))), dict(_leaves(_values(after)))
    return [key for key in {**new, **old} if old.get(key) != new.get(key)]


def _values(book: PolicyBook) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.to_builtins(book.base)
    return values | {"phases": msgspec.to_builtins(dict(book.phases))}


def _leaves(values: dict[str, Any], below: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in values.items():
        if isinstance(value, dict) and value:
            found += _leaves(value, f"{below}{name}.")
        else:
            found.append((f"{below}{name}", value))
    return found
