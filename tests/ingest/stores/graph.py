"""Databases as LangGraph's SQLite saver leaves them: one dialogue, with or without deltas."""

from __future__ import annotations

import json
import sqlite3
import sys
import uuid
from pathlib import Path

import msgspec

T0_US = 1_796_028_672_000_000
STEP_US = 1_000_000
SCHEMA = """
CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '',
    checkpoint_id TEXT NOT NULL, parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB,
    metadata BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '',
    checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL, task_path TEXT NOT NULL DEFAULT '',
    idx INTEGER NOT NULL, channel TEXT NOT NULL, type TEXT, value BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));
"""
MESSAGE = b"m" * 660
STEPS = 52
EVERY = 10
"""Of the delta form: a snapshot after so many updates."""


def uuid6(t_us: int) -> str:
    """Return an id of version 6 for a time."""
    ticks = t_us * 10 + 0x01B21DD213814000
    high, mid, low = ticks >> 28, ticks >> 12 & 0xFFFF, ticks & 0xFFF
    return f"{high:08x}-{mid:04x}-6{low:03x}-8000-0123456789ab"


def write(base: sqlite3.Connection, thread: str, step: int, *, delta: bool) -> None:
    """Add one step of a dialogue: a checkpoint, and what its task wrote."""
    held = delta and step % EVERY
    values = {"n": step} if held else {"n": step, "messages": [MESSAGE] * (step + 1)}
    metadata: dict[str, object] = {"source": "loop" if step else "input", "step": step - 1}
    if held:
        metadata["counters_since_delta_snapshot"] = {"messages": [step % EVERY, step % EVERY]}
    name, parent = uuid6(T0_US + step * STEP_US), uuid6(T0_US + (step - 1) * STEP_US)
    blob = msgspec.msgpack.encode(
        {"v": 4, "channel_values": values, "channel_versions": {"messages": 1}}
    )
    row = (
        thread,
        "",
        name,
        parent if step else None,
        "msgpack",
        blob,
        json.dumps(metadata).encode(),
    )
    base.execute("insert into checkpoints values (?, ?, ?, ?, ?, ?, ?)", row)
    task = (thread, "", name, str(uuid.UUID(int=step)), "", 0, "messages", "msgpack", MESSAGE)
    base.execute("insert into writes values (?, ?, ?, ?, ?, ?, ?, ?, ?)", task)
    base.commit()


def make(path: Path, *threads: str, delta: bool = False, steps: int = STEPS) -> Path:
    """Write a database in WAL mode and close it as its program would."""
    base = connect(path)
    for thread in threads or ("run-a",):
        for step in range(steps):
            write(base, thread, step, delta=delta)
    base.close()
    return path


def connect(path: Path) -> sqlite3.Connection:
    base = sqlite3.connect(path)
    base.execute("pragma journal_mode=wal")
    if not base.execute("select count(*) from sqlite_schema").fetchone()[0]:
        base.executescript(SCHEMA)
    return base


if __name__ == "__main__":
    # A program at work: one step a line of its input, until its input ends; then it just dies.
    connection = connect(Path(sys.argv[1]))
    print("open", flush=True)
    for number, line in enumerate(sys.stdin):
        if line.strip() == "checkpoint":
            print(connection.execute("pragma wal_checkpoint(truncate)").fetchone()[0], flush=True)
        elif line.strip() == "close":
            connection.close()
            print("closed", flush=True)
        else:
            write(connection, "run-w", number, delta=False)
            print("written", flush=True)
