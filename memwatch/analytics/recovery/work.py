"""What a recovery has to do: amounts to read and to replay, whatever time that takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from memwatch.domain.recovery import MeasuredTerm

_ENTRY_BYTES = 1_500
"""Of an entry in a checkpoint, where nobody counted them."""
_KEPT_SHARE = 0.5
"""Of the log a checkpoint keeps so much: later changes hide earlier ones."""


class Work(Struct, frozen=True, kw_only=True):
    """What one recovery reads and replays. Amounts are 0 where there is nothing of the kind."""

    full_bytes: int = 0
    """Files of the newest recoverable full checkpoint."""
    full_entries: int = 0
    """0 where nobody counted them."""
    blob_bytes: int = 0
    """Persisted values that the state needs, as they lie on disk."""
    blob_count: int = 0
    delta_bytes: int = 0
    delta_entries: int = 0
    """Lines of the increments behind the full one."""
    delta_count: int = 0
    log_bytes: int = 0
    """Of the segments of the log that hold what is replayed: read and checked whole."""
    chain_log_bytes: int = 0
    """Of the segments since the full one: looked through for what was committed."""
    segment_bytes: int = 0
    """Of the newest segment: read even when nothing of it is replayed, so what a checkpoint taken
    now leaves to read."""
    tail_bytes: int = 0
    """Of the log behind the newest checkpoint: replayed."""
    tail_records: int = 0

    @property
    def read_bytes(self) -> int:
        """Bytes of increments and log."""
        return self.delta_bytes + max(self.log_bytes, self.tail_bytes)

    @property
    def searched_bytes(self) -> int:
        """Bytes of the log that are looked through; at least those that are read."""
        return max(self.chain_log_bytes, self.log_bytes)

    @property
    def replayed(self) -> int:
        """Lines and records that are applied."""
        return self.delta_entries + self.tail_records

    @property
    def entries(self) -> int:
        """Entries of the state, counted or by its size."""
        return self.full_entries or self.full_bytes // _ENTRY_BYTES

    def after(self, kind: Literal["incremental", "full"]) -> Work:
        """Return what it would be right after a checkpoint of this kind.

        A full one takes the size of the last; the first one that of the log that it replaces.
        """
        if kind == "full":
            return Work(
                full_bytes=self.full_bytes or round(self.log_bytes * _KEPT_SHARE),
                full_entries=self.full_entries,
                blob_bytes=self.blob_bytes,
                blob_count=self.blob_count,
                log_bytes=self.segment_bytes,
                chain_log_bytes=self.segment_bytes,
                segment_bytes=self.segment_bytes,
            )
        return replace(
            self,
            delta_bytes=self.delta_bytes + round(self.tail_bytes * _KEPT_SHARE),
            delta_entries=self.delta_entries + round(self.tail_records * _KEPT_SHARE),
            delta_count=self.delta_count + 1,
            log_bytes=self.segment_bytes,
            tail_bytes=0,
            tail_records=0,
        )


def work_of(measured: Iterable[MeasuredTerm]) -> Work:
    """Return the work of the terms of a recovery; increments and log are not told apart there."""
    terms = {term.name: term for term in measured}
    load, blobs = terms.get("load"), terms.get("blobs")
    read, replay = terms.get("read"), terms.get("replay")
    return Work(
        full_bytes=load.bytes if load else 0,
        full_entries=load.records if load else 0,
        blob_bytes=blobs.bytes if blobs else 0,
        blob_count=blobs.records if blobs else 0,
        log_bytes=read.bytes if read else 0,
        tail_bytes=replay.bytes if replay else 0,
        tail_records=replay.records if replay else 0,
    )
