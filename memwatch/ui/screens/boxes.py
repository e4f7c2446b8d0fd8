"""Boxes of text by the name of their action; what draws one is loaded when it is opened."""

from __future__ import annotations

from memwatch.ui.screens.overlay import DrawText


def box(name: str, panel: str) -> tuple[str, DrawText]:
    """Return title and text of a box; `panel` is the one whose evidence is asked for."""
    if name == "evidence":
        from memwatch.ui.panels.evidence import evidence_lines

        title = f"where the figures come from: {panel}"
        return title, lambda frame, width: evidence_lines(panel, frame, width)
    if name == "policy":
        from memwatch.ui.panels.policy import policy_lines

        return "policy: what the guard goes by", policy_lines
    from memwatch.ui.panels.help import help_lines

    return "keys", help_lines
