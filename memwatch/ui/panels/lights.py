"""The five lights: is it fine? Each is a word, a figure, and what it means in time."""

from __future__ import annotations

from memwatch.domain.snapshot import Light
from memwatch.domain.text import inert
from memwatch.ui.format import WORD_STYLES
from memwatch.ui.frame import Frame
from memwatch.ui.line import Line, cut, cut_line, fit, joined, width_of

WIDE = 110
"""From this width on the five stand side by side in columns of equal width."""
NARROW = 60
"""Below this width each takes a line of its own."""


def lights(frame: Frame, width: int) -> list[Line]:
    """Return the strip of lights: two lines, or five where the terminal is very narrow."""
    found = frame.snapshot.lights if frame.snapshot else ()
    if not found:
        return [[(" no figures yet", "dim")], []]
    if width >= WIDE:
        return _columns(found, width)
    return _two_lines(found, width) if width >= NARROW else _one_each(found, width)


def _columns(found: tuple[Light, ...], width: int) -> list[Line]:
    top: Line = []
    below: Line = []
    for index, light in enumerate(found):
        start, end = width * index // len(found), width * (index + 1) // len(found)
        room = end - start - 2
        bar = ("│" if index else " ", "dim")
        head = cut_line(_head(light), room)
        top += [bar, *head, (" " * (room - width_of(head) + 1), "")]
        below += [bar, (fit(inert(light.meaning), room) + " ", "dim")]
    return [top, below]


def _two_lines(found: tuple[Light, ...], width: int) -> list[Line]:
    first: Line = [(" ", ""), *_head(found[0])]
    if found[0].meaning:
        first.append((f"  {inert(found[0].meaning)}", ""))
    rest = [_head(light) for light in found[1:]]
    second: Line = [(" ", ""), *joined(rest)]
    loud = next((light for light in found[1:] if light.word not in ("ok", "no data")), None)
    if loud is not None and loud.meaning:
        second.append((f"  {inert(loud.meaning)}", WORD_STYLES[loud.word]))
    return [cut_line(first, width), cut_line(second, width)]


def _one_each(found: tuple[Light, ...], width: int) -> list[Line]:
    lines: list[Line] = []
    for light in found:
        line: Line = [(fit(light.name, 7), "dim"), (fit(light.word, 8), WORD_STYLES[light.word])]
        text = inert(light.figure)
        if light.meaning:
            text += f"  {inert(light.meaning)}"
        lines.append(cut_line([*line, (cut(text, width - 15), "")], width))
    return lines


def _head(light: Light) -> Line:
    word = (light.word, WORD_STYLES[light.word])
    return [(f"{light.name} ", "dim"), word, (f" {inert(light.figure)}", "")]
