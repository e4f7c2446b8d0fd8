"""What a run changed outside of its memory, as its log tells it: files written, calls made (R7).

A `Journal` is a state that follows from records, live and in recovery alike; a checkpoint holds
what of it the log could no longer tell. A call belongs to the experiment that made it (`x`), or
to none:

- an experiment that ended as done, kept or discarded settles its calls, and those that earlier
  starts left unfinished: they go
- one that failed or was aborted leaves its calls until the next one begins
- a start that ended meanwhile leaves what it had: the next one answers equal requests from it
- a run that ended as done settles all
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from memwatch.agent.receipt import Receipt, until_done
from memwatch.host.forked import new_rlock

Members = dict[str, Any]
Line = tuple[int, str, Members]
"""lsn, kind and members of a record, without those that are the codec's own."""

JOURNAL_KINDS: Final = frozenset(
    ("file", "call", "experiment.begin", "experiment.end", "run.begin", "run.end")
)
"""What `Journal.take` looks at; any other kind it passes by."""

SETTLED: Final = frozenset(("done", "kept", "discarded"))
CALLS_OUTSIDE: Final = 1_000
"""Settled calls outside of any experiment that are remembered: the newest."""

_CODEC_MEMBERS = frozenset(("lsn", "t", "m", "k", "crc"))


class Journal:
    """Newest record of each file, and the calls that a crash would leave unfinished.

    Safe to use from several threads.
    """

    def __init__(self) -> None:
        self.lock = new_rlock()
        """A run sets it to that of its tiers: a checkpoint sees both at the same lsn."""
        self.freed: Callable[[str, int], None] = lambda _sha, _lsn: None
        """Called by `log` for a reference to a blob that a record ended."""
        self.last_lsn = 0
        """Newest record that was taken."""
        self.experiments = 0
        """Number of the newest experiment."""
        self.open: int | None = None
        """Number of the experiment that began and has not ended."""
        self.phase = ""
        """Phase of the newest experiment."""
        self._files: dict[str, Line] = {}
        self._calls: dict[str, Line] = {}
        self._marks: list[Line] = []
        """Begins and ends since the newest checkpoint: they decide which calls go."""
        self._given_up: int | None = None
        """Experiment of this start that failed or was aborted, until the next one begins."""

    def log(
        self, record: Callable[[str, Members, Receipt], int], kind: str, members: Members
    ) -> int:
        """Append a record with `record`, then take it; returns its lsn."""
        receipt = Receipt()
        with self.lock:
            try:
                lsn = record(kind, members, receipt)
                for sha in self.take(lsn, kind, members):
                    self.freed(sha, lsn)
            except BaseException:
                if receipt.lsn:  # it is in force; a blob may stay until the next start
                    until_done(partial(self._take_again, receipt.lsn, kind, members))
                raise
            return lsn

    def _take_again(self, lsn: int, kind: str, members: Members) -> None:
        self.last_lsn = min(self.last_lsn, lsn - 1)
        self._marks = [mark for mark in self._marks if mark[0] < lsn]
        self.take(lsn, kind, members)

    def take(self, lsn: int, kind: str, members: Members) -> list[str]:
        """Take a record, in order; one that was taken already changes nothing.

        Returns the hashes of the blobs that it ceases to refer to, each as often as it did.
        """
        if kind not in JOURNAL_KINDS:
            return []
        with self.lock:
            if lsn <= self.last_lsn:
                return []
            self.last_lsn = lsn
            line = (lsn, kind, {k: v for k, v in members.items() if k not in _CODEC_MEMBERS})
            if kind == "file":
                return self._take_file(line)
            if kind == "call":
                return self._take_call(line)
            self._marks.append(line)
            return self._take_mark(kind, line[2])

    def lines(self, after_lsn: int = 0) -> list[Line]:
        """Return what a checkpoint that follows one of `after_lsn` must hold, in order.

        Taken again in this order, after what that checkpoint held, it gives this state. What only
        an older checkpoint could ask for is forgotten here.
        """
        with self.lock:
            newest = self._newest_marks()
            self._marks = [m for m in self._marks if m[0] > after_lsn or m in newest]
            self._files = {
                path: line
                for path, line in self._files.items()
                if line[0] > after_lsn or not _is_delete(line)
            }
            kept = [*self._files.values(), *self._calls.values()]
            if after_lsn == 0:
                kept = [line for line in kept if not _is_delete(line)] + newest
            else:
                kept += self._marks
            return sorted((line for line in kept if line[0] > after_lsn), key=lambda line: line[0])

    def files(self) -> dict[str, Members]:
        """Return the newest record of each file that exists as far as the log says, by path."""
        with self.lock:
            return {p: line[2] for p, line in self._files.items() if not _is_delete(line)}

    def file(self, path: str) -> Members | None:
        """Return the newest record of a file, None for one that the log does not know."""
        with self.lock:
            line = self._files.get(path)
            return None if line is None or _is_delete(line) else line[2]

    def newest_file(self) -> Members | None:
        """Return the newest record of any file, a deletion too: it may not have been done yet."""
        with self.lock:
            newest = max(self._files.values(), key=lambda line: line[0], default=None)
            return None if newest is None else newest[2]

    def calls(self) -> list[Members]:
        """Return the newest record of each call that is not settled, oldest first.

        A call that a later start repeated (`again` names it) is left out.
        """
        with self.lock:
            repeated = {line[2].get("again") for line in self._calls.values()}
            known = sorted(self._calls.items(), key=lambda item: item[1][0])
            return [line[2] for name, line in known if name not in repeated]

    def blobs(self) -> list[str]:
        """Return the hashes of all blobs that are referred to, each as often as it is."""
        with self.lock:
            lines = [*self._files.values(), *self._calls.values()]
            return [sha for line in lines for sha in _blob(line)]

    # Below: called with the lock held.

    def _newest_marks(self) -> list[Line]:
        """Return begin and end of the newest experiment, and the newest begin of a start."""
        starts = [mark for mark in self._marks if mark[1] == "run.begin"]
        own = [mark for mark in self._marks if mark[2].get("x") == self.experiments]
        return starts[-1:] + own

    def _take_file(self, line: Line) -> list[str]:
        path = line[2].get("path")
        if not isinstance(path, str):
            return []
        before = self._files.get(path)
        self._files[path] = line
        return [] if before is None else _blob(before)

    def _take_call(self, line: Line) -> list[str]:
        name, outside = line[2].get("id"), line[2].get("x") is None
        if not isinstance(name, str):
            return []
        freed = self._drop(name)
        self._calls[name] = line
        if outside:
            freed += self._drop(line[2].get("again"))
            freed += self._bound_outside()
        return freed

    def _bound_outside(self) -> list[str]:
        if len(self._calls) <= CALLS_OUTSIDE:
            return []
        settled = [
            name
            for name, (_, _, members) in self._calls.items()
            if members.get("x") is None and members.get("state") != "begun"
        ]
        return [sha for name in settled[:-CALLS_OUTSIDE] for sha in self._drop(name)]

    def _take_mark(self, kind: str, members: Members) -> list[str]:
        number, status = members.get("x"), members.get("status")
        if kind == "experiment.begin" and type(number) is int:
            self.open, self.experiments = number, max(number, self.experiments)
            self.phase = str(members.get("phase", ""))
            given_up, self._given_up = self._given_up, None
            return [] if given_up is None else self._drop_where(lambda x: x == given_up)
        if kind == "experiment.end":
            ended, self.open = self.open, None
            if status in SETTLED:
                return self._drop_where(lambda x: x is not None)
            self._given_up = ended if status != "crashed" else None
        elif kind == "run.begin":
            self._given_up = None
        elif kind == "run.end" and status == "done":
            return self._drop_where(lambda _: True)
        return []

    def _drop_where(self, goes: Callable[[object], bool]) -> list[str]:
        names = [name for name, line in self._calls.items() if goes(line[2].get("x"))]
        return [sha for name in names for sha in self._drop(name)]

    def _drop(self, name: object) -> list[str]:
        line = self._calls.pop(name, None) if isinstance(name, str) else None
        return [] if line is None else _blob(line)


def _is_delete(line: Line) -> bool:
    return line[1] == "file" and line[2].get("op") == "delete"


def _blob(line: Line) -> list[str]:
    sha = line[2].get("blob")
    return [sha] if isinstance(sha, str) else []
