"""Checkpoints as other programs leave them, with the times that a test wants."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path

from memwatch.domain.checkpoints import Checkpoint, StoreLook
from memwatch.domain.clock import ManualClock
from memwatch.ingest.stores.directory import look_directory

NOW_US = ManualClock().wall_us()
MINUTE_US = 60_000_000
TRAINER = "trainer_state.json"


def age(path: Path, t_us: int) -> None:
    """Let everything at and below a path be of one time."""
    for place in [*path.rglob("*"), path] if path.is_dir() else [path]:
        if not place.is_symlink():
            os.utime(place, ns=(t_us * 1000, t_us * 1000))


def put(store: Path, name: str, content: bytes | dict[str, bytes], minutes_ago: float = 60) -> Path:
    """Write a file, or a folder of files, that nobody touched for a while."""
    place = store / name
    if isinstance(content, bytes):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    else:
        place.mkdir(parents=True, exist_ok=True)
        for inner, text in content.items():
            (place / inner).parent.mkdir(parents=True, exist_ok=True)
            (place / inner).write_bytes(text)
    age(place, NOW_US - round(minutes_ago * MINUTE_US))
    return place


def hf(step: int, weights: int = 20_000, best: str | None = None) -> dict[str, bytes]:
    """Return the files of a checkpoint of HF's trainer."""
    state: dict[str, object] = {
        "global_step": step,
        "best_model_checkpoint": best,
        "log_history": [],
    }
    return {
        "model.safetensors": safetensors(weights),
        "optimizer.pt": archive(weights),
        "scheduler.pt": archive(100),
        TRAINER: json.dumps(state).encode(),
    }


def archive(size: int) -> bytes:
    """Return what `torch.save` writes: an archive without compression."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as torch:
        torch.writestr("archive/data.pkl", b"\x80\x02.")
        torch.writestr("archive/data/0", b"\0" * size)
    return file.getvalue()


def safetensors(size: int) -> bytes:
    """Return one tensor of so many bytes."""
    one = {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}
    header = json.dumps({"__metadata__": {"format": "pt"}, "weight": one}).encode()
    return len(header).to_bytes(8, "little") + header + b"\0" * size


def look(store: Path, previous: StoreLook | None = None, *, after_s: float = 0) -> StoreLook:
    """Look at a store at a time of the test's own."""
    return look_directory(store, previous, clock=ManualClock(NOW_US + round(after_s * 1e6)))


def row(seen: StoreLook, name: str) -> Checkpoint:
    """Return the one checkpoint of a name."""
    (one,) = (one for one in seen.checkpoints if one.id == name)
    return one


def states(seen: StoreLook) -> dict[str, str]:
    return {one.id: one.state for one in seen.checkpoints}
