"""A directory of checkpoints that any program wrote: HF, Lightning, DeepSpeed, PyTorch, JSON.

One look lists the top, measures each entry, then judges them from the oldest on. Source:
agent-formats 3.5, incidents G3.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import msgspec

from memwatch.domain.checkpoints import Checkpoint, CheckpointState, StoreLook
from memwatch.domain.clock import Clock, SystemClock
from memwatch.host.holders import Holder, holders
from memwatch.host.procfs import PROC
from memwatch.ingest.stores.looking import DEADLINE_S, MOST, look_bounded
from memwatch.ingest.stores.tag import read_tag
from memwatch.ingest.stores.top import Entry, list_top, measure, sayable
from memwatch.ingest.stores.walk import MOST_FILES, Walk, exists, open_directory, read_file
from memwatch.ingest.stores.whole import Judge, Verdict, is_adapter, markless_styles

_FRESH_US = 10_000_000
"""What was touched so recently may still be written, unless it is proven whole."""
_FORMER = 32
"""Beyond those that are told, to hold the oldest of them against."""
_TRAINER_STATE = "trainer_state.json"
_MOST_TRAINER_BYTES = 16 << 20


class _TrainerState(msgspec.Struct):
    best_model_checkpoint: str | None = None


def look_directory(  # noqa: PLR0913 -- a guard gives the first two; the others are the bounds
    path: Path,
    previous: StoreLook | None = None,
    *,
    clock: Clock | None = None,
    most: int = MOST,
    most_files: int = MOST_FILES,
    deadline_s: float = DEADLINE_S,
    proc: Path = PROC,
) -> StoreLook:
    """Look at a directory once; never raises, `why` says what could not be looked at.

    `previous` is the look before, which tells what grows. Of each checkpoint `bytes` are the sizes
    of its files; `total_bytes` counts hard links once.
    """
    t_us = (clock or SystemClock()).wall_us()

    def look(until: float) -> StoreLook:
        place = os.fspath(path.resolve())
        root = open_directory(place)
        try:
            held = [one for one in holders((f"{place.rstrip('/')}/",), proc) if one.writing]
            walk = Walk(root, until, most_files)
            return _Look(root, place, previous, t_us, held).run(walk, most)
        finally:
            os.close(root)

    return look_bounded(path, "directory", look, previous, t_us, deadline_s)


class _Former(NamedTuple):
    """The newest whole checkpoint of a style."""

    entry: Entry
    committed_us: int


class _Look:
    """One look under way."""

    def __init__(
        self,
        root: int,
        place: str,
        previous: StoreLook | None,
        t_us: int,
        held: list[Holder],
    ) -> None:
        self._root = root
        self._place = place.rstrip("/") + "/"
        self._t_us = t_us
        self._previous = previous
        self._before = {one.id: one for one in previous.checkpoints} if previous else {}
        self._writers = tuple(sorted({one.pid for one in held}))
        self._held = {one.path[len(place) + 1 :].split("/", 1)[0] for one in held}

    def run(self, walk: Walk, most: int) -> StoreLook:
        top = list_top(walk)
        there = len(top.named)
        found = measure(walk, top.named, most + _FORMER)
        rows = self._rows(sorted(found.entries, key=_order))
        count = len(rows) + found.others
        why = ""
        if top.cut or found.cut:
            more = "or more " if top.cut else ""
            why = (
                f"too much to be looked at in one go: {count} of {there} {more}"
                "checkpoints were, the newest ones"
            )
        return StoreLook(
            source="directory",
            t_us=self._t_us,
            checkpoints=tuple(rows[-most:]),
            count=there if found.cut else count,
            total_bytes=walk.bytes,
            best=self._best(rows),
            named=self._named(found.entries, top.links),
            writers=self._writers,
            why=why,
        )

    def _rows(self, entries: list[Entry]) -> list[Checkpoint]:
        """Return rows in order of commit, each judged against the former whole one of its style."""
        tag = read_tag(self._root)
        markless = markless_styles(entries)
        formers: dict[str, _Former] = {}
        rows = []
        for entry in entries:
            former = formers.get(entry.name.style)
            row = self._known(entry)
            if row is None:
                tag_us, untagged = tag.of(entry) if tag else (None, False)
                verdict = Judge(self._root, entry, former.entry if former else None).verdict(
                    tag_us, untagged=untagged, markless=entry.name.style in markless
                )
                if self._is_leaving(entry, verdict, is_last=entry is entries[-1]):
                    continue
                row = self._row(entry, verdict, former)
            rows.append(row)
            if row.state == "committed":
                formers[entry.name.style] = _Former(entry, row.committed_us or 0)
        return rows

    def _known(self, entry: Entry) -> Checkpoint | None:
        """Return what the last look said of a whole one, when nothing of it changed since."""
        before = self._before.get(entry.id)
        if before is None or before.state != "committed" or self._previous is None:
            return None
        same = (before.bytes, before.files) == (entry.found.bytes, entry.found.count)
        settled = entry.found.touched_us < self._previous.t_us - _FRESH_US
        return before if same and settled else None

    def _is_leaving(self, entry: Entry, verdict: Verdict, *, is_last: bool) -> bool:
        """Whether it is being deleted: it is gone, or an older one that loses its files."""
        if verdict.whole:
            return False
        if not exists(self._root, entry.names[0]):
            return True
        before = self._before.get(entry.id)
        return (
            not is_last
            and before is not None
            and before.state == "committed"
            and self._is_fresh(entry)
            and entry.found.count < (before.files or 0)
        )

    def _row(self, entry: Entry, verdict: Verdict, former: _Former | None) -> Checkpoint:
        found, before = entry.found, self._before.get(entry.id)
        state = self._state(entry, verdict, before)
        committed_us = (verdict.mark_us or found.last_us) if state == "committed" else None
        began_us = _began_us(entry, verdict, former)
        if before is not None and before.began_us and _goes_on(before, committed_us):
            began_us = min(began_us or before.began_us, before.began_us)
        took_us = committed_us - began_us if committed_us and began_us else 0
        return Checkpoint(
            id=entry.id,
            kind="full",
            state=state,
            base=entry.name.parent,
            bytes=found.bytes,
            began_us=began_us,
            committed_us=committed_us,
            duration_s=took_us / 1e6 if took_us > 0 else None,
            reason="" if state == "committed" else verdict.why,
            step=entry.name.step,
            files=found.count,
            partial=is_adapter(found.files),
        )

    def _state(self, entry: Entry, verdict: Verdict, before: Checkpoint | None) -> CheckpointState:
        held = any(name in self._held for name in entry.names)
        was_whole = before is not None and before.state in {"committed", "damaged"}
        grew = before is not None and not was_whole and before.bytes != entry.found.bytes
        moving = held or grew or self._is_fresh(entry)
        if verdict.whole:
            unsure = held if verdict.proven else moving
            return "begun" if unsure and verdict.mark_us is None else "committed"
        if moving:
            return "begun"
        return "damaged" if was_whole else "incomplete"

    def _is_fresh(self, entry: Entry) -> bool:
        return abs(self._t_us - entry.found.touched_us) < _FRESH_US

    def _named(self, entries: list[Entry], links: tuple[str, ...]) -> tuple[str, ...]:
        """Return the ids that links beside them, or the store's own tag, point to."""
        pointed = {sayable(self._target(link)) for link in links}
        tag = read_tag(self._root)
        tagged = {one.id for one in entries if tag and tag.of(one)[0] is not None}
        return tuple(sorted({one.id for one in entries} & (pointed | tagged)))

    def _target(self, link: str) -> str:
        """Return which name of the store a link leads to; empty where it leads elsewhere."""
        try:
            target = os.readlink(link, dir_fd=self._root)
        except OSError:
            return ""
        inside = os.path.normpath(target if target.startswith("/") else self._place + target)
        return inside.removeprefix(self._place).split("/", 1)[0]

    def _best(self, rows: list[Checkpoint]) -> str:
        """Return the id of the best one by the trainer's own account in its newest state."""
        told = [row for row in rows if row.state == "committed" and row.step is not None]
        if not told:
            return ""
        if self._previous and told[-1] in self._previous.checkpoints[-2:]:
            return self._previous.best
        text = read_file(self._root, f"{told[-1].id}/{_TRAINER_STATE}", _MOST_TRAINER_BYTES)
        try:
            best = msgspec.json.decode(text or b"{}", type=_TrainerState).best_model_checkpoint
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return ""
        name = (best or "").rstrip("/").rpartition("/")[2]
        return name if any(row.id == name for row in rows) else ""


def _began_us(entry: Entry, verdict: Verdict, former: _Former | None) -> int:
    """Return when its first file was there, 0 where nobody knows.

    A file that is older than the checkpoint before was copied, with its time; one file alone tells
    when it was ended, not when it was begun. A folder without any was made a moment ago.
    """
    if not entry.found.count:
        return entry.found.touched_us
    after_us = former.committed_us if former else 0
    times = [one.changed_us for one in entry.found.files.values() if one.changed_us > after_us]
    if entry.found.count == 1 and verdict.whole:
        return 0
    return min(times, default=0)


def _goes_on(before: Checkpoint, committed_us: int | None) -> bool:
    """Whether it is the same writing that the last look saw: files alone forget when it began."""
    return before.state == "begun" or before.committed_us == committed_us


def _order(entry: Entry) -> tuple[int, int, int, str]:
    """Order by time, and by step within what one copy of the whole store would have done."""
    step = entry.name.step if entry.name.step is not None else -1
    return entry.found.last_us // _FRESH_US, step, entry.found.last_us, entry.id
