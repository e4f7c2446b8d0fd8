"""Real text to compress: the source files of this machine's own Python standard library."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from memwatch.domain.errors import UsageError

SLICES = 4
SLICE_BYTES = 2_400_000
_LEFT_OUT = frozenset({"site-packages", "dist-packages", "test", "tests", "__pycache__"})


class Corpus(Struct, frozen=True):
    """Text in slices of equal length; the search goes from slice to slice."""

    slices: tuple[bytes, ...]
    files: int
    source: str

    @property
    def bytes(self) -> int:
        """Length of all slices."""
        return sum(map(len, self.slices))


def read_corpus(
    folder: Path | None = None, *, slices: int = SLICES, slice_bytes: int = SLICE_BYTES
) -> Corpus:
    """Read as many files as fill the slices, once, in the order of their names.

    Raises UsageError when the folder holds too little for one slice.
    """
    root = folder or Path(sysconfig.get_paths()["stdlib"])
    wanted, parts, length = slices * slice_bytes, [], 0
    for path in _sources(root):
        try:
            text = path.read_bytes()
        except OSError:
            continue
        parts.append(text)
        length += len(text)
        if length >= wanted:
            break
    whole = b"".join(parts)
    count = min(len(whole) // slice_bytes, slices)
    if count == 0:
        raise UsageError(f"{root} holds {length} bytes of Python source, {slice_bytes} are needed")
    cut = tuple(whole[at * slice_bytes : (at + 1) * slice_bytes] for at in range(count))
    return Corpus(cut, len(parts), str(root))


def _sources(root: Path) -> Iterator[Path]:
    for path in sorted(root.iterdir()):
        if path.is_symlink() or path.name in _LEFT_OUT:
            continue
        if path.is_dir():
            yield from _sources(path)
        elif path.suffix == ".py":
            yield path
