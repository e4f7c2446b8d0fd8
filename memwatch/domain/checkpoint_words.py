"""Checkpoints in words, the same on the command line and in a report. Standard library only.

`status` says them, and loads nothing else.
"""

from __future__ import annotations

from memwatch.domain.text import inert

_STATES = {"begun": "being written", "committed": "complete"}


def state_text(state: str) -> str:
    """Return the state of a checkpoint as people call it.

    >>> state_text("begun"), state_text("committed"), state_text("damaged")
    ('being written', 'complete', 'damaged')
    """
    return _STATES.get(state, inert(state, 12))


def kind_text(kind: str, *, partial: bool) -> str:
    """Return the kind of a checkpoint; one that needs its base model beside it is no full one.

    >>> kind_text("full", partial=False), kind_text("full", partial=True)
    ('full', 'partial')
    """
    return "partial" if partial else inert(kind, 11)
