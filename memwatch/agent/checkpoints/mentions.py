"""Which blobs the files of a run still mention: what no file does, no recovery can ask for.

Only for blobs that an earlier start left: since when nobody needs them, that start did not say.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from memwatch.agent.memory.compression import Decompressor
from memwatch.wal.segment import CHECKPOINT_DIR, MANIFEST_FILE, WAL_DIR, tier_of

_MENTION: Final = re.compile(rb'"blob":"([0-9a-f]{64})"')
_OVERLAP: Final = len('"blob":""') + 64 - 1
_PIECE_BYTES: Final = 1 << 20
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def mentioned(run_dir: Path) -> set[str]:
    """Return the blobs named anywhere in log and checkpoints; raises OSError, DamagedError."""
    found: set[str] = set()
    for path in [*(run_dir / WAL_DIR).iterdir(), *(run_dir / CHECKPOINT_DIR).rglob("*")]:
        if path.name != MANIFEST_FILE and not path.is_dir():
            found |= _mentioned_in(path)
    return found


def _mentioned_in(path: Path) -> set[str]:
    found: set[str] = set()
    rest = b""
    for text in _texts(path):
        rest += text
        found.update(sha.decode() for sha in _MENTION.findall(rest))
        rest = rest[-_OVERLAP:]
    return found


def _texts(path: Path) -> Iterator[bytes]:
    tier = tier_of(path.name)
    stream = Decompressor(tier[1] if tier else "")
    with os.fdopen(os.open(path, _READ), "rb", buffering=0) as file:
        while piece := file.read(_PIECE_BYTES):
            yield from stream.feed(piece)
