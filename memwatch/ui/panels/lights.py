"""The five lights: is it fine? Each is a word, a figure, and what it means in time."""

from __future__ import annotations

from memwatch.domain.snapshot import Light
from memwatch.domain.text import inert
from memwatch.ui.format import WORD_STYLES, rate_text
from memwatch.ui.frame import Frame
from memwatch.ui.line import Line, cut, cut_line, fit, joined, width_of

WIDE = 110
"""From this width on the five stand side by side in columns of equal width."""
NARROW = 60
"""Below this width each takes a line of its own."""
_EXTRA = 1 / 3
TALL = 12
"""From this height on their meaning takes a line of its own as well, in a narrow terminal."""


def lights(frame: Frame, width: int, height: int) -> list[Line]:
    """Return the strip of lights: two lines, or five (ten) where the terminal is very narrow."""
    found = frame.snapshot.lights if frame.snapshot else ()
    if not found:
        return [cut_line([(" no figures yet", "dim")], width), []]
    if width >= WIDE:
        return _columns(found, width)
    if width >= NARROW:
        return _two_lines(found, frame, width)
    return _one_each(found, width, with_meaning=height >= TALL)


def _columns(found: tuple[Light, ...], width: int) -> list[Line]:
    """Put the lights side by side; the first, which says most, is a third wider."""
    top: Line = []
    below: Line = []
    unit = width / (len(found) + _EXTRA)
    for index, light in enumerate(found):
        start = round(unit * (index + _EXTRA)) if index else 0
        room = round(unit * (index + 1 + _EXTRA)) - start - 2
        bar = ("│" if index else " ", "dim")
        head = cut_line(_head(light), room)
        top += [bar, *head, (" " * (room - width_of(head) + 1), "")]
        below += [bar, (fit(inert(light.meaning), room) + " ", "dim")]
    return [top, below]


def _two_lines(found: tuple[Light, ...], frame: Frame, width: int) -> list[Line]:
    first: Line = [(" ", ""), *_head(found[0]), *_growth(frame)]
    if found[0].meaning:
        first.append((f"  {inert(found[0].meaning)}", ""))
    rest = [_head(light) for light in found[1:]]
    second: Line = [(" ", ""), *joined(rest)]
    loud = next((light for light in found[1:] if light.word not in ("ok", "no data")), None)
    if loud is not None and loud.meaning:
        whose = "" if loud is found[-1] else f"{loud.name}: "
        second.append((f"  {whose}{inert(loud.meaning)}", WORD_STYLES[loud.word]))
    return [cut_line(first, width), cut_line(second, width)]


def _growth(frame: Frame) -> Line:
    """Return how fast the tree grows over the middle window, where it does."""
    snapshot = frame.snapshot
    memory = snapshot.resource("memory") if snapshot and not frame.past else None
    if snapshot is None or memory is None or len(snapshot.windows) < 2:
        return []
    rate = memory.growth_per_min.get(snapshot.windows[1])
    return [] if rate is None else [(f"  {rate_text(rate)}/min", "")]


def _one_each(found: tuple[Light, ...], width: int, *, with_meaning: bool) -> list[Line]:
    lines: list[Line] = []
    for light in found:
        line: Line = [(fit(light.name, 7), "dim"), (fit(light.word, 8), WORD_STYLES[light.word])]
        meaning = inert(light.meaning)
        figure = inert(light.figure)
        if not with_meaning and meaning:
            figure += f"  {meaning}"
        lines.append(cut_line([*line, (figure, "")], width))
        if with_meaning:
            lines.append([(cut(f"{'':15}{meaning}", width), "dim")] if meaning else [])
    return lines


def _head(light: Light) -> Line:
    word = (light.word, WORD_STYLES[light.word])
    return [(f"{light.name} ", "dim"), word, (f" {inert(light.figure)}", "")]
