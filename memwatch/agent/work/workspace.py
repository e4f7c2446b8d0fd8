"""Files that the agent writes, in one folder: logged with their content before they change (R7).

The content goes to a blob, then the `file` record, then the file is put in place, atomically. So
a recovery puts back what is missing, and what was about to be replaced when the agent died; a
file that somebody else changed is only reported.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Literal

from memwatch.agent.context import Context
from memwatch.agent.journal import Journal, Members
from memwatch.agent.memory.blobs import BlobStore
from memwatch.agent.memory.entry import Blob
from memwatch.domain.errors import DamagedError, UsageError
from memwatch.domain.text import sayable

Name = str | PathLike[str]
Found = Literal["put back", "missing", "changed"]
"""What became of a file between two starts."""


_MOST_NAME_BYTES = 230
"""Of a file's name: that of its draft is longer, and 255 is the most that systems take."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def check_apart(root: Name | None, run_dir: Path) -> None:
    """Raise UsageError for a workspace where the agent's files could replace those of the run."""
    if root is not None and Path(root).resolve().is_relative_to(run_dir.resolve()):
        raise UsageError(
            f"the workspace {root!s} lies in the run directory {run_dir}: name a folder beside it"
        )


class Workspace:
    """The folder that a run's files lie in."""

    def __init__(
        self, root: Name | None, context: Context, journal: Journal, blobs: BlobStore
    ) -> None:
        self._root = None if root is None else Path(root).absolute()
        self._context, self._journal, self._blobs = context, journal, blobs

    def write(self, name: Name, data: bytes | str) -> Path:
        """Write a file whole; returns where it lies.

        `name` is relative to the workspace, or lies in it. Raises UsageError for any other,
        ReadOnlyError, LogError, and OSError when only the last step failed: the log has it then.
        """
        self._context.check_writable()
        path, key = self._place(name)
        if path.is_dir() and not path.is_symlink():
            raise UsageError(f"{key} in the workspace {self._root} is a folder")
        content = _content(data)
        blob = self._blobs.save(content)
        members = {"hash": blob.sha256, "bytes": blob.bytes}
        members |= {"blob": blob.sha256, "blob_bytes": blob.bytes}
        try:
            self._log(key, "write", members)
        except BaseException:
            self._blobs.release(blob.sha256, self._context.log.last_lsn)
            raise
        self._put(path, content)
        return path

    def wrote(self, name: Name) -> None:
        """Record a file that a tool wrote: its hash, not its content.

        Raises UsageError for what is no regular file, OSError.
        """
        self._context.check_writable()
        path, key = self._place(name)
        if not stat.S_ISREG(path.lstat().st_mode):
            raise UsageError(f"{key} in the workspace {self._root} is no regular file")
        digest, size = _hash(path)
        self._log(key, "seen", {"hash": digest, "bytes": size})

    def delete(self, name: Name) -> None:
        """Delete a file; raises FileNotFoundError when there is none."""
        self._context.check_writable()
        path, key = self._place(name)
        path.lstat()
        self._log(key, "delete", {"bytes": 0})
        self._context.files.unlink(path)

    def restore(self) -> dict[str, Found]:
        """Make the folder what the log says, as far as it can be told; returns what differed."""
        if self._root is None:
            return {}
        last = self._journal.newest_file() or {}
        if last.get("op") == "delete" and self._is_undone(last):
            self._context.files.discard(self._place(last["path"])[0])
        found = {key: self._restored(key, m) for key, m in self._journal.files().items()}
        return {key: state for key, state in found.items() if state is not None}

    def _is_undone(self, last: Members) -> bool:
        """Say whether the last change that was logged was not done: the agent died before it."""
        try:
            return _is(self._place(last["path"])[0], last.get("was"))
        except UsageError:
            return False

    def _restored(self, key: str, members: Members) -> Found | None:
        try:
            path = self._place(key)[0]
        except UsageError:  # a link or a file stands in its way since
            return "changed"
        if _is(path, members.get("hash")):
            return None
        there = os.path.lexists(path)
        if there and not (members is self._journal.newest_file() and self._is_undone(members)):
            return "changed"
        sha, size = members.get("blob"), members.get("blob_bytes")
        if not isinstance(sha, str) or type(size) is not int:
            return "changed" if there else "missing"
        try:
            self._put(path, self._blobs.load(Blob(sha, size)))
        except (DamagedError, OSError):
            return "missing"
        return "put back"

    def _place(self, name: Name) -> tuple[Path, str]:
        """Return where a file lies and its name in the log; raises UsageError for outside."""
        root = self._root
        if root is None:
            raise UsageError("this run has no workspace: name a folder in RunOptions(workspace=…)")
        path = Path(name)
        if path.is_absolute() and path.is_relative_to(root):
            path = path.relative_to(root)
        key = PurePosixPath(path)
        if path.is_absolute() or ".." in key.parts or not key.parts or "\0" in str(key):
            raise UsageError(f"{name!s} does not lie in the workspace {root}")
        place = root / path
        real = _reached(place)
        if not real.is_relative_to(root.resolve()):
            raise UsageError(f"{name!s} leads out of the workspace {root} by a link")
        if real.is_relative_to(self._context.path.resolve()):
            raise UsageError(f"{name!s} lies in the run directory {self._context.path}")
        return place, str(key)

    def _put(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._context.files.replace(path, content)

    def _log(self, key: str, op: str, members: Members) -> None:
        before = self._journal.file(key)
        was = {} if before is None else {"was": before.get("hash")}
        record = {"x": self._context.experiment, "path": key, "op": op, **members, **was}
        self._journal.log(self._context.record, "file", record)


def _content(data: object) -> bytes:
    if isinstance(data, str):
        return data.encode()
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    raise TypeError(f"a file is bytes or text, not {type(data).__name__}")


def _reached(place: Path) -> Path:
    """Return where a file really lies; raises UsageError for a name that no file can have."""
    try:
        if len(place.name.encode()) > _MOST_NAME_BYTES:
            raise UsageError(
                f"{place.name:.40}… is over {_MOST_NAME_BYTES} bytes: use a shorter one"
            )
        real = place.parent.resolve() / place.name
        with suppress(FileNotFoundError):
            place.lstat()
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: a loop of links
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{sayable(place, 200)} cannot be a file: {why}") from None
    return real


def _hash(path: Path) -> tuple[str, int]:
    with os.fdopen(os.open(path, _READ), "rb") as file:
        import hashlib  # only who records a tool's file needs it so early

        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return digest, file.tell()


def _is(path: Path, digest: object) -> bool:
    """Say whether a regular file, no link to one, holds the content of that hash."""
    try:
        regular = isinstance(digest, str) and stat.S_ISREG(path.lstat().st_mode)
        return regular and _hash(path)[0] == digest
    except OSError:
        return False
