"""The two listings: what each shows, and how its rows are kept."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, TypeVar

from memwatch.domain.checkpoints import Checkpoint
from memwatch.domain.intervention import Intervention
from memwatch.domain.snapshot import Snapshot
from memwatch.domain.text import inert
from memwatch.runtime.session import RowKind
from memwatch.ui.frame import Frame
from memwatch.ui.line import Line
from memwatch.ui.panels.checkpoints import (
    checkpoint_facts,
    checkpoint_sheet,
    checkpoints_title,
)
from memwatch.ui.panels.facts import Fact, fact_lines
from memwatch.ui.panels.interventions import (
    SORTS,
    intervention_facts,
    intervention_sheet,
    interventions_title,
)

if TYPE_CHECKING:
    from memwatch.ui.panels.sheet import Sheet
    from memwatch.ui.screens.overlay import DrawText

_GONE: Line = [("it is no longer known", "dim")]
_Row = TypeVar("_Row", Checkpoint, Intervention)


class CheckpointListing:
    """All checkpoints, newest first."""

    name: RowKind = "checkpoints"
    hint = ""

    def __init__(self) -> None:
        self._rows: Sequence[Checkpoint] = ()

    def known(self, frame: Frame) -> Hashable:
        """Return which there are and how they stand."""
        if frame.snapshot is None:
            return None
        found = frame.snapshot.checkpoints
        states = tuple((one.id, one.state, one.bytes) for one in found.newest)
        return frame.snapshot.guard.start_id, found.count, states, found.missing

    def take(self, rows: Sequence[object]) -> None:
        """Take the session's rows."""
        self._rows = [row for row in rows if isinstance(row, Checkpoint)]

    def _all(self, frame: Frame) -> list[Checkpoint]:
        newest = frame.snapshot.checkpoints.newest if frame.snapshot else ()
        known = {one.id for one in newest}
        return [*newest, *(one for one in self._rows if one.id not in known)]

    def sheet(self, frame: Frame, width: int) -> Sheet:
        """Return the table."""
        return checkpoint_sheet(frame, self._all(frame), width)

    def title(self, frame: Frame) -> str:
        """Return how many there are."""
        return checkpoints_title(frame, len(self._all(frame)))

    def sort(self) -> None:
        """Stay in the order of time."""

    def evidence(self, row_id: str) -> tuple[str, DrawText]:
        """Return all that is known of one checkpoint."""
        return f"checkpoint {inert(row_id, 60)}", _told(row_id, self._all, checkpoint_facts)


class InterventionListing:
    """All interventions, by the bytes that they really freed at first."""

    name: RowKind = "interventions"

    def __init__(self) -> None:
        self._rows: Sequence[Intervention] = ()
        self._sort = next(iter(SORTS))

    @property
    def hint(self) -> str:
        """Say what the key for sorting does next."""
        return f"s sort by {self._next}"

    @property
    def _next(self) -> str:
        names = list(SORTS)
        return names[(names.index(self._sort) + 1) % len(names)]

    def known(self, frame: Frame) -> Hashable:
        """Return which there are and what came of them."""
        if frame.snapshot is None:
            return None
        shown = frame.snapshot.interventions
        return frame.snapshot.guard.start_id, tuple(map(_news, shown))

    def take(self, rows: Sequence[object]) -> None:
        """Take the session's rows."""
        self._rows = [row for row in rows if isinstance(row, Intervention)]

    def _all(self, frame: Frame) -> list[Intervention]:
        """Return all rows; those of a snapshot, newer but short, only until the session tells."""
        whole = {one.id: one for one in self._rows}
        newest = frame.snapshot.interventions if frame.snapshot else ()
        shown = [_better(one, whole.get(one.id)) for one in newest]
        known = {one.id for one in newest}
        return [*shown, *(one for one in self._rows if one.id not in known)]

    def sheet(self, frame: Frame, width: int) -> Sheet:
        """Return the table."""
        return intervention_sheet(frame, self._all(frame), self._sort, width)

    def title(self, frame: Frame) -> str:
        """Return how many there are, and in which order."""
        return interventions_title(self._sort, len(self._all(frame)))

    def sort(self) -> None:
        """Sort by the next figure."""
        self._sort = self._next

    def evidence(self, row_id: str) -> tuple[str, DrawText]:
        """Return all that was measured around one intervention."""
        return "what it did", _told(row_id, self._all, intervention_facts)


def _news(one: Intervention) -> Hashable:
    """Return what makes it worth asking for a row again."""
    return one.id, one.state, one.verdict, one.after_10min, one.rebound_s, one.count


def _better(short: Intervention, whole: Intervention | None) -> Intervention:
    return short if whole is None or _news(short) != _news(whole) else whole


def _told(
    row_id: str,
    rows: Callable[[Frame], Sequence[_Row]],
    facts: Callable[[_Row, Snapshot], list[Fact]],
) -> DrawText:
    """Return what draws the facts of a row, whatever becomes of it while they are shown."""

    def text(frame: Frame, width: int) -> list[Line]:
        one = next((one for one in rows(frame) if one.id == row_id), None)
        if one is None or frame.snapshot is None:
            return [_GONE]
        return fact_lines(facts(one, frame.snapshot), width)

    return text
