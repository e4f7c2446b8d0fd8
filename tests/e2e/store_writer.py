"""A program that writes checkpoints and does what it is told: a trainer's, or LangGraph's.

Started as `store_writer.py trainer DIRECTORY` or `store_writer.py langgraph FILE`; each line on
stdin is a JSON list of an order and its arguments, answered by a line when it is done.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import struct
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO

_GREGORIAN = 0x01B21DD213814000
"""From the epoch of UUIDs to that of Unix, in 100 ns."""


class Trainer:
    """Writes as Hugging Face's Trainer does: weights first, `trainer_state.json` last."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)
        self._open: dict[int, BinaryIO] = {}
        self._ballast = bytearray()

    def save(self, step: int, size: int) -> None:
        """Write a whole checkpoint."""
        self.begin(step, size)
        self.finish(step)

    def begin(self, step: int, size: int) -> None:
        """Write the first half of a checkpoint's weights, and keep the file open."""
        place = self._folder / f"checkpoint-{step}"
        place.mkdir()
        tensor = {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}
        header = json.dumps({"weight": tensor}).encode()
        file = (place / "model.safetensors").open("wb")
        file.write(struct.pack("<Q", len(header)) + header + bytes(size // 2))
        file.flush()
        self._open[step] = file

    def finish(self, step: int) -> None:
        """Write the rest, and the state that says that it is whole."""
        file = self._open.pop(step)
        size = file.tell()
        head = struct.unpack("<Q", (self._place(step) / "model.safetensors").read_bytes()[:8])[0]
        file.write(bytes(size - 8 - head))
        file.close()
        state = {"global_step": step, "epoch": step / 100, "log_history": []}
        (self._place(step) / "trainer_state.json").write_text(json.dumps(state))

    def delete(self, step: int) -> None:
        """Delete a checkpoint, as `save_total_limit` does."""
        shutil.rmtree(self._place(step))

    def hold(self, size: int) -> None:
        """Hold so many bytes of memory."""
        self._ballast = bytearray(b"x") * size

    def _place(self, step: int) -> Path:
        return self._folder / f"checkpoint-{step}"


class Saver:
    """Writes as LangGraph's `SqliteSaver` does: a row for each superstep, in WAL mode."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.executescript(
            """
            PRAGMA journal_mode=WAL;
            CREATE TABLE IF NOT EXISTS checkpoints (
                thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '',
                checkpoint_id TEXT NOT NULL, parent_checkpoint_id TEXT, type TEXT,
                checkpoint BLOB, metadata BLOB,
                PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
            CREATE TABLE IF NOT EXISTS writes (
                thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '',
                checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL, idx INTEGER NOT NULL,
                channel TEXT NOT NULL, type TEXT, value BLOB,
                PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));
            """
        )
        self._parent: dict[str, str] = {}

    def put(self, thread: str, step: int, size: int) -> str:
        """Write a checkpoint of a thread; returns its id."""
        name = _uuid6(time.time_ns())
        metadata = json.dumps({"source": "loop", "step": step, "parents": {}}).encode()
        self._database.execute(
            "INSERT INTO checkpoints VALUES (?, '', ?, ?, 'msgpack', ?, ?)",
            (thread, name, self._parent.get(thread), bytes(size), metadata),
        )
        self._parent[thread] = name
        return name


def _uuid6(now_ns: int) -> str:
    ticks = now_ns // 100 + _GREGORIAN
    high, low = f"{ticks >> 12:012x}", ticks & 0xFFF
    return f"{high[:8]}-{high[8:]}-6{low:03x}-8000-0123456789ab"


def main() -> None:
    """Do what is asked until stdin ends."""
    kind, place = sys.argv[1], Path(sys.argv[2])
    writer: Any = Trainer(place) if kind == "trainer" else Saver(place)
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        order, *arguments = json.loads(line)
        print(json.dumps(getattr(writer, order)(*arguments)), flush=True)


if __name__ == "__main__":
    main()
