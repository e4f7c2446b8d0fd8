"""Drops what the newest recoverable full checkpoint covers; one older chain always stays (R7)."""

from __future__ import annotations

import shutil
from itertools import pairwise

from memwatch.agent.context import Context
from memwatch.wal.segment import (
    CHECKPOINT_DIR,
    WAL_DIR,
    delta_range,
    full_lsn,
    segment_name,
    segments,
)


class Pruner:
    """Knows the full checkpoints committed in this start; those of earlier ones are kept.

    So after a restart nothing goes until two new full ones stand.
    """

    def __init__(self, context: Context) -> None:
        self._wal = context.path / WAL_DIR
        self._checkpoints = context.path / CHECKPOINT_DIR
        self._record = context.record
        self._files = context.files
        self._fulls: list[int] = []

    def full_committed(self, last_lsn: int) -> None:
        """Note a full checkpoint that recovery may start from."""
        self._fulls = [*self._fulls, last_lsn][-2:]

    def prune(self) -> None:
        """Drop what the older of the last two full checkpoints makes needless.

        Logged as `truncate` first: a reader must not take it for damage. Raises OSError, LogError.
        """
        self._drop_drafts()
        if len(self._fulls) < 2:
            return
        kept_lsn = self._fulls[0]
        self._drop_checkpoints(kept_lsn)
        self._drop_segments(kept_lsn)

    def _drop_drafts(self) -> None:
        """Remove what a checkpoint left that was killed while it was written."""
        for path in self._checkpoints.glob(".*.draft"):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                self._files.unlink(path)

    def _drop_checkpoints(self, kept_lsn: int) -> None:
        for path in sorted(self._checkpoints.iterdir()):
            covered, full = delta_range(path.name), full_lsn(path.name)
            if covered is not None and covered[1] <= kept_lsn:
                self._files.unlink(path)
            if full is not None and full < kept_lsn:
                shutil.rmtree(path)

    def _drop_segments(self, kept_lsn: int) -> None:
        firsts = segments(path.name for path in self._wal.iterdir())
        covered = [first for first, after in pairwise(firsts) if after <= kept_lsn + 1]
        if not covered:
            return
        last_lsn = firsts[len(covered)] - 1
        about = {"first_lsn": covered[0], "last_lsn": last_lsn, "segments": len(covered)}
        self._record("truncate", about | {"cause": "checkpoint"})
        for first in covered:
            self._files.unlink(self._wal / segment_name(first))
        self._files.sync_directory(self._wal)
