"""Sources that other programs write: what each is called, and how it is looked at.

One more kind of source is one more entry here, a module that looks at it, a word in its detector,
and a profile of its name. Nothing is ever written where such a source lies.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from memwatch.domain.checkpoints import StoreLook

NATIVE: Final = "native"
"""A run directory of our own format."""


class Foreign(NamedTuple):
    """One kind of source that is not ours."""

    name: str
    """Of its profile as well, and the first part of each run's id."""
    look: Callable[[Path, StoreLook | None], StoreLook]
    """Looks at it once; given the look before."""
    folder: Callable[[Path], Path]
    """The directory in which something changes when it does."""
    no_commands: str
    """Why nothing can be asked for, said wherever somebody tries."""


def _look_at_directory(path: Path, before: StoreLook | None) -> StoreLook:
    from memwatch.ingest.stores.directory import look_directory  # only where one is looked at

    return look_directory(path, before)


def _look_at_langgraph(path: Path, before: StoreLook | None) -> StoreLook:
    from memwatch.ingest.stores.langgraph import look_langgraph  # brings sqlite3

    return look_langgraph(path, before)


_NO_COMMANDS: Final = "a checkpoint store takes no commands"
_KINDS: Final = (
    Foreign("directory", _look_at_directory, lambda path: path, _NO_COMMANDS),
    Foreign("langgraph", _look_at_langgraph, lambda path: path.parent, _NO_COMMANDS),
)
FOREIGN: Final = {kind.name: kind for kind in _KINDS}
"""All kinds, by name."""


def foreign_at(path: Path) -> Foreign | None:
    """Return the kind of source that lies at a path; None for one that we do not know.

    Raises OSError for what cannot be read.
    """
    from memwatch.ingest.stores.detect import detect

    return FOREIGN.get(detect(path) or "")
