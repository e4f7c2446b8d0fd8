"""Names in a native run directory, format 1.

    <run>/run.json                            manifest, replaced atomically
    <run>/wal/00000000000000000001.wal        segments, named by the first lsn they hold
    <run>/checkpoints/full-<last lsn>/        a full checkpoint: tier files and MANIFEST.json
    <run>/checkpoints/delta-<first>-<last>.wal  an incremental one: net changes of that range
    <run>/blobs/<sha256>                      large and persisted values, by hash
    <run>/control/                            spool: commands in, acknowledgements out
    <run>/run.lock                            locked (flock) by the agent that writes, with its pid

The newest segment is open, the others are sealed and never change. Names that begin with a dot are
drafts: what a writer that died left behind.

A blob is the canonical text of a value (JSON in UTF-8, members sorted, bytes in base64), the
content of a file, or the outcome of a call: as it is, or compressed as one zstd frame or gzip
member, which its first bytes tell. Its name is the hash of what was compressed, not of the file.
Lines are described in `memwatch.wal.codec`, checkpoints in `memwatch.wal.checkpoint_format` and
`memwatch.wal.manifest`, `control/` in `memwatch.wal.spool_format`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

FORMAT = 1
SEGMENT_BYTES = 16_000_000
"""A writer seals a segment at this size."""

WAL_DIR = "wal"
CHECKPOINT_DIR = "checkpoints"
BLOB_DIR = "blobs"
CONTROL_DIR = "control"
RUN_FILE = "run.json"
MANIFEST_FILE = "MANIFEST.json"

_MAX_LSN = (1 << 63) - 1  # a record has a number below this one

_SEGMENT = re.compile(r"(\d{20})\.wal")
_FULL = re.compile(r"full-(\d{20})")
_TIER = re.compile(r"(?!journal$)[0-9A-Za-z_][0-9A-Za-z_.-]{0,79}", re.ASCII)
_TIER_FILE = re.compile(r"(.+)\.jsonl(?:\.gz|\.zst)?", re.DOTALL)
_DELTA = re.compile(r"delta-(\d{20})-(\d{20})\.wal")


def segment_name(first_lsn: int) -> str:
    """Return the file name of the segment that begins with `first_lsn`.

    >>> segment_name(4711)
    '00000000000000004711.wal'
    """
    return f"{first_lsn:020d}.wal"


def segment_lsn(name: str) -> int | None:
    """Return the first lsn that a file name states, or None when it is no segment's name."""
    match = _SEGMENT.fullmatch(name)
    lsn = int(match[1]) if match and name.isascii() else 0
    return lsn if 1 <= lsn < _MAX_LSN else None


def segments(names: Iterable[str]) -> list[int]:
    """Return the first lsn of each segment among `names`, in order."""
    return sorted(lsn for name in names if (lsn := segment_lsn(name)) is not None)


def full_name(last_lsn: int) -> str:
    """Return the directory name of a full checkpoint that includes records up to `last_lsn`."""
    return f"full-{last_lsn:020d}"


def full_lsn(name: str) -> int | None:
    """Return the last lsn that a full checkpoint's name states, or None."""
    match = _FULL.fullmatch(name)
    return int(match[1]) if match and match[1].isascii() else None


def delta_name(first_lsn: int, last_lsn: int) -> str:
    """Return the file name of an incremental checkpoint."""
    return f"delta-{first_lsn:020d}-{last_lsn:020d}.wal"


def delta_range(name: str) -> tuple[int, int] | None:
    """Return first and last lsn that an incremental checkpoint's name states, or None."""
    match = _DELTA.fullmatch(name)
    return (int(match[1]), int(match[2])) if match and name.isascii() else None


def tier_file(tier: str, suffix: str = "") -> str:
    """Return the name of a tier's file; raises ValueError for a tier that no file can be named by.

    >>> tier_file("recent", ".zst")
    'recent.jsonl.zst'
    """
    if not _TIER.fullmatch(tier):
        raise ValueError(
            f"{tier!r} is no name for a tier: letters, digits, - _ . and not 'journal'"
        )
    return f"{tier}.jsonl{suffix}"


def tier_of(name: str) -> tuple[str, str] | None:
    """Return tier and suffix that a file's name states, or None when it is no tier's file.

    >>> tier_of("recent.jsonl.zst"), tier_of("journal.jsonl"), tier_of("../x.jsonl")
    (('recent', '.zst'), None, None)
    """
    match = _TIER_FILE.fullmatch(name)
    if match is None or not _TIER.fullmatch(match[1]):
        return None
    return match[1], name[len(match[1]) + len(".jsonl") :]
