"""LangGraph's SQLite saver: each checkpoint a row, in chains by thread and namespace.

Only lengths and the small JSON of the metadata are read; of blobs nothing but the names of the
channels that a checkpoint with counters holds. Source: agent-formats 3.4.
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from memwatch.domain.checkpoints import Checkpoint, StoreLook
from memwatch.domain.clock import Clock, SystemClock
from memwatch.host.holders import holders
from memwatch.ingest.stores.database import log_bytes, open_untouched
from memwatch.ingest.stores.looking import DEADLINE_S, MOST, UnseenError, look_bounded
from memwatch.ingest.stores.uuid6 import time_us

_COLUMNS = {
    "checkpoints": {
        "thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "checkpoint",
        "metadata",
    },
    "writes": {"thread_id", "checkpoint_ns", "checkpoint_id", "channel", "value"},
}  # fmt: skip
_METADATA_BYTES = 1 << 16
_BLOB_BYTES = 1 << 20
"""Of a blob that is looked into for the names of its channels; a larger one is believed."""
_PEEKING_SHARE = 0.5
"""Of the time of a look, for blobs."""
_ROWS = """
select rowid, substr(thread_id, 1, 200), substr(checkpoint_ns, 1, 200),
       substr(checkpoint_id, 1, 100), substr(parent_checkpoint_id, 1, 100), length(checkpoint),
       iif(length(metadata) <= ?, cast(metadata as blob), null)
from checkpoints order by rowid desc limit ?"""
_WRITES = """
select sum(length(value)) from writes
where thread_id = ? and checkpoint_ns = ? and checkpoint_id >= ?"""
_PAGES = """
select page_count, freelist_count, page_size
from pragma_page_count, pragma_freelist_count, pragma_page_size"""


class _Metadata(msgspec.Struct):
    source: Any = ""
    step: Any = None
    counters_since_delta_snapshot: Any = None


class _Blob(msgspec.Struct):
    channel_values: dict[str, msgspec.Raw] = {}


class _Row(NamedTuple):
    number: int
    thread: str
    namespace: str
    id: str
    parent: str | None
    bytes: int
    metadata: _Metadata

    @property
    def chain(self) -> tuple[str, str]:
        return self.thread, self.namespace


def look_langgraph(
    path: Path,
    previous: StoreLook | None = None,
    *,
    clock: Clock | None = None,
    most: int = MOST,
    deadline_s: float = DEADLINE_S,
) -> StoreLook:
    """Look at a database once; never raises, `why` says what could not be looked at.

    `bytes` of a checkpoint is the length of its blob; what was written beside it for single tasks
    is in `written_bytes` of the look. A chain is a thread, or `thread/namespace` for a sub-graph.
    """
    t_us = (clock or SystemClock()).wall_us()

    def look(until: float) -> StoreLook:
        place = path.resolve()
        with open_untouched(place, until) as base:
            _check(base)
            return _look(base, place, t_us, most, until)

    return look_bounded(path, "langgraph", look, previous, t_us, deadline_s)


def _check(base: sqlite3.Connection) -> None:
    """Refuse what is not LangGraph's; a view or virtual table would run a stranger's code."""
    for table, needed in _COLUMNS.items():
        plain = base.execute(
            "select 1 from sqlite_schema where type = 'table' and name = ?"
            " and sql not like 'create virtual%'",
            (table,),
        ).fetchone()
        if plain is None:
            raise UnseenError(f"it holds no checkpoints of LangGraph: there is no table {table}")
        columns = base.execute("select name, hidden from pragma_table_xinfo(?)", (table,))
        lacking = needed - {name for name, hidden in columns if hidden == 0}
        if lacking:
            raise UnseenError(
                f"its checkpoints are of a version that is not known: {table} has no "
                + ", ".join(sorted(lacking))
            )


def _look(base: sqlite3.Connection, place: Path, t_us: int, most: int, until: float) -> StoreLook:
    rows = [_row(raw) for raw in base.execute(_ROWS, (_METADATA_BYTES, most)).fetchall()]
    rows.reverse()
    now = time.monotonic()
    incremental = _incremental(base, rows, now + (until - now) * _PEEKING_SHARE)
    checkpoints = _checkpoints(rows, incremental)
    count, blob_bytes = base.execute(
        "select count(*), sum(length(checkpoint)) from checkpoints"
    ).fetchone()
    (write_bytes,) = base.execute("select sum(length(value)) from writes").fetchone()
    newest_full = next((one for one in reversed(checkpoints) if one.kind == "full"), None)
    pages, dead, page_bytes = base.execute(_PAGES).fetchone()
    log = log_bytes(place)
    return StoreLook(
        source="langgraph",
        t_us=t_us,
        checkpoints=checkpoints,
        count=count,
        total_bytes=pages * page_bytes + log,
        log_bytes=log,
        dead_bytes=dead * page_bytes,
        load_bytes=_load_bytes(base, rows, checkpoints),
        state_bytes=newest_full.bytes if newest_full else None,
        written_bytes=(blob_bytes or 0) + (write_bytes or 0),
        writers=_writers(place),
    )


def _writers(place: Path) -> tuple[int, ...]:
    name = os.fspath(place)
    return tuple(sorted({one.pid for one in holders((name,)) if one.writing and one.path == name}))


def _load_bytes(
    base: sqlite3.Connection, rows: list[_Row], checkpoints: tuple[Checkpoint, ...]
) -> int | None:
    """Return what loading the newest checkpoint reads: it, the full one below, writes since."""
    if not rows:
        return None
    newest, full_id = rows[-1], checkpoints[-1].base
    if checkpoints[-1].kind == "full":
        return newest.bytes
    full = next((row for row in rows if row.id == full_id and row.chain == newest.chain), None)
    (written,) = base.execute(_WRITES, (*newest.chain, full_id or "")).fetchone()
    return newest.bytes + (full.bytes if full else 0) + (written or 0)


def _row(raw: tuple[Any, ...]) -> _Row:
    """Return a row of a table in which any column may hold anything."""
    number, *names, parent, size, metadata = raw
    thread, namespace, name = (one if isinstance(one, str) else "" for one in names)
    return _Row(
        number,
        thread,
        namespace,
        name,
        parent if isinstance(parent, str) else None,
        size if isinstance(size, int) else 0,
        _metadata(metadata),
    )


def _metadata(value: object) -> _Metadata:
    try:
        return msgspec.json.decode(value if isinstance(value, bytes) else b"", type=_Metadata)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return _Metadata()


def _incremental(base: sqlite3.Connection, rows: list[_Row], until: float) -> set[int]:
    """Return the numbers of rows that hold only a part, the newest looked into first.

    Those for which no time was left are believed by their counters.
    """
    return {
        row.number for row in reversed(rows) if _is_incremental(base, row, time.monotonic() > until)
    }


def _checkpoints(rows: list[_Row], parts: set[int]) -> tuple[Checkpoint, ...]:
    """Return the rows as checkpoints; an incremental one stands on the full one up its parents."""
    found: list[Checkpoint] = []
    full_of: dict[tuple[str, str, str | None], str | None] = {}
    for row in rows:
        incremental = row.number in parts
        stands_on = full_of.get((*row.chain, row.parent)) if incremental else row.id
        full_of[*row.chain, row.id] = stands_on
        found.append(_checkpoint(row, stands_on if incremental else None, incremental))
    return tuple(found)


def _checkpoint(row: _Row, base: str | None, incremental: bool) -> Checkpoint:
    metadata = row.metadata
    source = metadata.source if isinstance(metadata.source, str) else ""
    step = metadata.step
    # Between two turns a graph waits for a person: its input began when it was given.
    began = time_us(row.id if source == "input" or row.parent is None else row.parent)
    return Checkpoint(
        id=row.id,
        kind="incremental" if incremental else "full",
        state="committed",
        base=base,
        bytes=row.bytes,
        began_us=began or 0,
        committed_us=time_us(row.id),
        reason=source[:40],
        step=step if isinstance(step, int) and abs(step) < 1 << 53 else None,
        thread=f"{row.thread}/{row.namespace}" if row.namespace else row.thread,
    )


def _is_incremental(base: sqlite3.Connection, row: _Row, late: bool) -> bool:
    """Whether a channel that is counted is not in the blob: its content is in the writes."""
    counted = row.metadata.counters_since_delta_snapshot
    if not isinstance(counted, dict) or not counted:
        return False
    if late or row.bytes > _BLOB_BYTES:
        return True
    try:
        with base.blobopen("checkpoints", "checkpoint", row.number, readonly=True) as blob:
            held = msgspec.msgpack.decode(blob.read(_BLOB_BYTES), type=_Blob).channel_values
    except (sqlite3.Error, msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return True
    return not counted.keys() <= held.keys()
