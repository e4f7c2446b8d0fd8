r"""What stands inside a checkpoint, format 1: the line of a tier file, the names of files.

A full checkpoint is a directory. Each tier has a file `<tier>.jsonl`, `.jsonl.gz` or `.jsonl.zst`
with one JSON object a line, an entry each, in the tier's order (oldest first):

    {"key":"call/7","lsn":42,"bytes":310,"importance":0.5,"x":3,"value":{"ratio":2.5}}\n

`key`, `lsn`  the entry, and the number of the record that changed it last
`bytes`       what it holds in memory with its value there as an object
`importance`  for recovery, from 0 to 1
`tokens`, `type`, `x`, `phase`, `ttl_us`  as in `put` records (`x`: the entry's experiment); left
              out where they say nothing
`rebuildable` true for an entry that has a source
`value`       the canonical value, where it is short
`blob`, `blob_bytes`  in place of `value`: SHA-256 and length of the canonical text in `blobs/`
`source`      `{"args":{…},"by":"…"}`, canonical; a rebuildable entry has it in place of `value`. It
              has a `blob` as well where its value was persisted (a checkpoint of kind `experiment`)
`heat`        accesses of the last 24 hours, the hour in progress first; at most 24 counts

`journal.jsonl` holds log lines (`memwatch.wal.codec`): files and calls that recovery must know of.
`MANIFEST.json` (`memwatch.wal.manifest`) names the files, their sizes and hashes.

An incremental checkpoint is one file of log lines, by lsn: `put`, `update`, `delete` with the
members of the log's own records (`x` is the entry's experiment, `phase` stands where it is known),
and journal records of its range as they were logged. The lsn is that of the key's last change. An
`update` has `value`, `blob`, `source`, or `diff` with `from`: the lsn of the version that it
applies to, which is the one that the checkpoint before holds. In one of kind `experiment` a `put`
may repeat the lsn of an entry that the chain holds already, to add the blob of its value.

Source: requirements R5, R6, R7. Pure.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Raw, Struct

from memwatch.domain.record import LARGEST

JOURNAL_FILE: Final = "journal.jsonl"

NOTHING: Final = Raw()
"""In place of a member that a line has not; compare with `is`."""


Count = Annotated[int, Meta(ge=0, le=LARGEST)]
"""A figure of believable size."""


class TierLine(Struct, kw_only=True, frozen=True, omit_defaults=True, gc=False):
    """One entry. Raw members point into the text they were read from: copy what stays."""

    key: str
    lsn: int
    bytes: Count
    importance: float
    tokens: Count | None = None
    type: str = ""
    x: Count | None = None
    phase: str = ""
    ttl_us: Count | None = None
    rebuildable: bool = False
    value: Raw = NOTHING
    blob: str = ""
    blob_bytes: Count = 0
    source: Raw = NOTHING
    heat: list[Count] | None = None


encode_lines = msgspec.json.Encoder().encode_lines
"""List of TierLine -> bytes, a line feed behind each."""


def decode_lines(text: bytes | memoryview) -> list[TierLine]:
    """Return the entries of whole lines; unknown members are ignored.

    Raises msgspec.DecodeError (a ValueError), or UnicodeDecodeError.
    """
    return _decoder().decode_lines(text)


@cache
def _decoder() -> msgspec.json.Decoder[TierLine]:
    return msgspec.json.Decoder(TierLine)  # a millisecond that only a recovery spends
