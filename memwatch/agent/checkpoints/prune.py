"""Drops what the newest recoverable full checkpoint covers; one older chain always stays (R7)."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice, pairwise
from pathlib import Path

from memwatch.agent.checkpoints.mentions import mentioned
from memwatch.agent.checkpoints.output import remove_directory
from memwatch.agent.checkpoints.standing import Standing
from memwatch.agent.checkpoints.torn import cut, torn_tails
from memwatch.agent.context import Context
from memwatch.agent.memory.blobs import BlobStore
from memwatch.domain.errors import DamagedError
from memwatch.wal.segment import (
    CHECKPOINT_DIR,
    WAL_DIR,
    delta_range,
    full_lsn,
    segment_name,
    segments,
)


class Pruner:
    """Goes by what lies on disk and was committed, whichever start did it.

    Nothing goes unless two full checkpoints were read again and found whole: the older of the two
    and all that follows it stays. All methods may raise OSError and LogError.
    """

    def __init__(self, context: Context, standing: Standing, blobs: BlobStore) -> None:
        self._run = context.path
        self._wal = context.path / WAL_DIR
        self._checkpoints = context.path / CHECKPOINT_DIR
        self._record = context.record
        self._files = context.files
        self._standing = standing
        self._blobs = blobs
        self._not_torn: set[int] = set()

    def prune(self) -> None:
        """Drop what is needless.

        A segment goes only after the log said so: a reader must not take it for damage.
        """
        self._drop_drafts()
        self._cut_torn()
        kept_lsn = self._kept_lsn()
        if kept_lsn is not None:
            self._drop_checkpoints(self._covered_checkpoints(kept_lsn))
            self._drop_segments(self._covered_segments(kept_lsn))
            self._blobs.collect(kept_lsn)
            self._drop_inherited()

    def _kept_lsn(self) -> int | None:
        """Return the last lsn of the full checkpoint that the older chain begins with.

        Reading a checkpoint again takes its time: only where something would go.
        """
        fulls = self._standing.fulls()
        if len(fulls) < 2 or not (
            self._covered_checkpoints(fulls[1]) or self._covered_segments(fulls[1])
        ):
            return None
        whole = list(islice((lsn for lsn in fulls if self._standing.is_whole(lsn)), 2))
        return whole[1] if len(whole) == 2 else None

    def _drop_drafts(self) -> None:
        """Remove what a checkpoint left that was killed while it was written."""
        for path in self._checkpoints.glob(".*.draft"):
            self._remove(path)

    def _cut_torn(self) -> None:
        tails = torn_tails(self._wal, self._not_torn)
        if tails:
            about = {"segments": len(tails), "bytes": sum(tail.bytes for tail in tails)}
            self._record("truncate", about | {"cause": "torn"})
        for tail in tails:
            cut(self._files, tail)

    def _covered_checkpoints(self, kept_lsn: int) -> list[Path]:
        covered = []
        for path in sorted(self._checkpoints.iterdir()):
            span, full = delta_range(path.name), full_lsn(path.name)
            if (span is not None and span[1] <= kept_lsn) or (full is not None and full < kept_lsn):
                covered.append(path)
        return covered

    def _drop_checkpoints(self, covered: list[Path]) -> None:
        for path in covered:
            self._remove(path)

    def _covered_segments(self, kept_lsn: int) -> list[tuple[int, int]]:
        """Return first lsn of each segment that is not needed, and that of its successor."""
        firsts = segments(path.name for path in self._wal.iterdir())
        return [(first, after) for first, after in pairwise(firsts) if after <= kept_lsn + 1]

    def _drop_segments(self, covered: list[tuple[int, int]]) -> None:
        if not covered:
            return
        about = {"first_lsn": covered[0][0], "last_lsn": covered[-1][1] - 1}
        self._record("truncate", about | {"segments": len(covered), "cause": "checkpoint"})
        for first, _ in covered:
            self._files.unlink(self._wal / segment_name(first))
        self._files.sync_directory(self._wal)

    def _drop_inherited(self) -> None:
        """Drop blobs that earlier starts left, one after the other, and no file mentions.

        A new put of the same content makes one a blob of this start, also while we look.
        """
        if self._blobs.inherited:
            with suppress(DamagedError):  # what cannot be read may mention any of them
                self._blobs.collect_inherited(mentioned(self._run))

    def _remove(self, path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            remove_directory(self._files, path)
        else:
            self._files.unlink(path)
