r"""The hash that says what a tier held: recovery must arrive at the same.

SHA-256 over the entries sorted by key, each as `key \0 lsn \0 digest \n`; the digest is the
SHA-256, hexadecimal, of the canonical value, or of the source of a rebuildable entry (R7).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from operator import attrgetter

from memwatch.agent.checkpoints.slices import in_order
from memwatch.agent.memory.entry import Entry

_by_key = attrgetter("key")


def state_hash(entries: Collection[Entry]) -> str:
    """Return the hash of a tier that holds these entries, in any order."""
    whole = hashlib.sha256()
    for some in in_order(entries, _by_key):
        whole.update("".join([f"{e.key}\0{e.lsn}\0{e.digest}\n" for e in some]).encode())
    return whole.hexdigest()
