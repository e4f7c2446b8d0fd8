"""What would survive a power loss: file contents and names as of their last fsync, and no more.

The strictest disk that POSIX allows. Content is safe once its file was synced, a name once its
directory was; what came later survives whole, in part or not at all, each directory and file for
itself. It watches the calls of one process, and hands on what it knows to the next one.
"""

from __future__ import annotations

import json
import os
import random
import stat
from pathlib import Path
from typing import Any

_Id = str


class ForgetfulDisk:
    """Follows the calls on a tree; `memory` is what the process before left, none: all is safe."""

    def __init__(self, root: Path, memory: Path | None) -> None:
        self._root = root
        self._contents: dict[_Id, str] = {}
        """Safe content, by file; bytes as Latin-1."""
        self._names: dict[_Id, dict[str, _Id]] = {}
        """Safe names, by directory."""
        self._held: dict[_Id, int] = {}
        """Descriptors that keep an inode's number from being used again."""
        if memory is not None and memory.exists():
            self._contents, self._names = json.loads(memory.read_text())
        else:
            self._names[_id(root.lstat())] = _listed(root)
        for path in root.rglob("*"):
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            self._hold(fd)
            if memory is None or not memory.exists():
                self._synced(fd)
            os.close(fd)

    def done(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        """Take note of a call that was made."""
        if name == "open":
            self._hold(result)
        elif name in ("fsync", "sync_data"):
            self._synced(args[0])

    def remember(self, memory: Path) -> None:
        """Write what is known to a file, for the next process."""
        there = {_id(self._root.lstat()), *self._places()}
        gone = {known: f"gone {known}" for known in {*self._contents, *self._names} - there}
        contents = {gone.get(known, known): text for known, text in self._contents.items()}
        names = {
            gone.get(known, known): {name: gone.get(inner, inner) for name, inner in inside.items()}
            for known, inside in self._names.items()
        }
        memory.write_text(json.dumps([contents, names]))

    def save(self, image: Path, chance: random.Random | None = None) -> None:
        """Write what is safe to a new directory; with `chance`, a part of the rest as well."""
        self._save(_id(self._root.lstat()), self._root, image, self._places(), chance)

    def _hold(self, fd: int) -> None:
        known = _id(os.fstat(fd))
        if known not in self._held:
            self._held[known] = os.dup(fd)

    def _synced(self, fd: int) -> None:
        status = os.fstat(fd)
        if stat.S_ISDIR(status.st_mode):
            self._names[_id(status)] = _listed(Path(f"/proc/self/fd/{fd}"))
        else:
            text = Path(f"/proc/self/fd/{fd}").read_bytes()
            self._contents[_id(status)] = text.decode("latin-1")

    def _save(
        self, known: _Id, path: Path | None, image: Path, places: dict[_Id, Path], chance: Any
    ) -> None:
        image.mkdir(parents=True)
        safe = self._names.get(known, {})
        now = {} if path is None else _listed(path)
        names = now if chance is not None and chance.random() < 0.5 else safe
        for name, inner in names.items():
            there = places.get(inner)
            if inner in self._names or (there is not None and there.is_dir()):
                self._save(inner, there, image / name, places, chance)
            else:
                (image / name).write_bytes(self._content(inner, there, chance))

    def _content(self, known: _Id, path: Path | None, chance: Any) -> bytes:
        safe = self._contents.get(known, "").encode("latin-1")
        if chance is None or path is None or (kind := chance.randrange(3)) == 0:
            return safe
        now = path.read_bytes()
        if kind == 1 or not now.startswith(safe):
            return now
        return now[: chance.randint(len(safe), len(now))]

    def _places(self) -> dict[_Id, Path]:
        return {_id(path.lstat()): path for path in self._root.rglob("*")}


def _listed(folder: Path) -> dict[str, _Id]:
    return {path.name: _id(path.lstat()) for path in folder.iterdir()}


def _id(status: os.stat_result) -> _Id:
    return f"{status.st_dev}:{status.st_ino}"
