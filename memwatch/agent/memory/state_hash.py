r"""The hash that says what a tier held: recovery must arrive at the one that a checkpoint logged.

SHA-256 over the entries sorted by key, each as `key \0 lsn \0 digest \n`; the digest is the
SHA-256, hexadecimal, of the canonical value, or of the source of a rebuildable entry (R7).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from operator import attrgetter

from memwatch.agent.memory.entry import Entry

by_key = attrgetter("key")


def state_hash(entries: Iterable[Entry]) -> str:
    """Return the hash of a tier that holds these entries, in any order."""
    return hash_in_order([sorted(entries, key=by_key)])


def hash_in_order(slices: Iterable[list[Entry]]) -> str:
    """Return the hash of a tier whose entries come sorted by key, some at a time."""
    whole = hashlib.sha256()
    for some in slices:
        whole.update("".join([f"{e.key}\0{e.lsn}\0{e.digest}\n" for e in some]).encode())
    return whole.hexdigest()
