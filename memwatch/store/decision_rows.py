"""Records of the threshold engine -> rows of the table `decision`. Pure.

Texts are inert and short, figures finite: no record can make a transaction fail.
"""

from __future__ import annotations

from typing import Final

from memwatch.domain.record import Record, figure
from memwatch.domain.text import inert

DecisionValue = int | str | float | None
KINDS: Final = frozenset({"level", "plan", "engine.decision"})
_WHY_WIDTH = 300


def decision_row(record: Record) -> tuple[DecisionValue, ...]:
    """Return the columns behind the place of a record, which is one of `KINDS`."""
    plan = record.kind == "plan"
    what = record.text("what") if record.kind == "engine.decision" else record.kind
    return (
        inert(what, 20),
        inert(record.text("level"), 20),
        inert(record.text("resource"), 60) or "memory",
        inert(record.text("rule"), 80),
        _number(record, "share" if record.kind == "level" else "value"),
        _number(record, "limit"),
        record.members.get("dry") is True,
        inert(record.text("id"), 100) if plan else None,
        inert(record.text("state"), 20) if plan else None,
        inert(record.text("effect"), 20) if plan else None,
        _number(record, "before_bytes"),
        _number(record, "after_bytes"),
        inert(record.text("why"), _WHY_WIDTH),
    )


def _number(record: Record, name: str) -> float | None:
    value = figure(record.members.get(name))
    return None if value is None else float(value)
