"""What was done to the agent, as marks on the time axis, with those that had no effect."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from memwatch.domain.errors import SessionError
from memwatch.domain.intervention import IN_VAIN, Intervention

if TYPE_CHECKING:
    from memwatch.runtime.session import Session

_ROWS = 500

GLYPHS = {
    "pause": "z",
    "reclaim": "g",
    "compact": "k",
    "abort_experiment": "x",
    "restart": "R",
}
"""Beside those that events mark anyway: purges and checkpoints."""
NO_EFFECT = "×"
"""Stands behind the mark of a deed that freed nothing, or made it worse."""


class DeedMark(Struct, frozen=True):
    """A deed on the time axis; an empty glyph is marked by its event already."""

    t_us: int
    glyph: str
    in_vain: bool


def deed_marks(interventions: Iterable[Intervention]) -> tuple[DeedMark, ...]:
    """Return the marks of interventions; those that events mark only where they were in vain."""
    marks = []
    for one in interventions:
        in_vain = one.verdict in IN_VAIN and not one.is_checkpoint
        glyph = GLYPHS.get(one.op, "")
        if glyph or in_vain:
            marks.append(DeedMark(one.asked_at_us, glyph, in_vain))
    return tuple(marks)


def all_deeds(session: Session) -> tuple[DeedMark, ...]:
    """Ask for the marks of all interventions that are known; a guard of old does not tell them."""
    try:
        return deed_marks(session.rows("interventions", _ROWS))
    except SessionError:
        return ()
