"""A terminal of cells, just good enough to check what arrives on it."""

from __future__ import annotations

import re

from rich.cells import cell_len
from rich.color import Color

from memwatch.ui.terminal.sgr import PLAIN, Style

_TOKENS = re.compile(
    r"\x1b\[(?P<row>\d+);(?P<column>\d+)H|\x1b\[(?P<style>[\d;]*)m"
    r"|\x1b\[(?P<count>\d*)(?P<way>[A-D])|(?P<backspace>\x08)|(?P<newline>\r?\n)|(?P<other>\x1b\[\?[\d;]+[a-z])|(?P<character>.)",
    re.DOTALL,
)

_WAYS = {"A": (0, -1), "B": (0, 1), "C": (1, 1), "D": (1, -1)}


class Terminal:
    """Understands moves, SGR and text; line wrap is off, as Textual sets it."""

    def __init__(self, width: int, height: int) -> None:
        self.cells = [[(" ", PLAIN)] * width for _ in range(height)]
        self._width = width
        self._at = [0, 0]
        self._style = PLAIN

    def feed(self, data: str) -> None:
        """Take output."""
        for token in _TOKENS.finditer(data):
            if token["row"]:
                self._at = [int(token["row"]) - 1, int(token["column"]) - 1]
            elif token["style"] is not None:
                self._style = styled(self._style, token["style"])
            elif token["way"]:
                axis, sign = _WAYS[token["way"]]
                self._at[axis] += sign * int(token["count"] or 1)
            elif token["backspace"]:
                self._at[1] -= 1
            elif token["newline"]:
                self._at = [self._at[0] + 1, 0]
            elif token["character"]:
                self._put(token["character"])

    def _put(self, character: str) -> None:
        row, column = self._at
        width = cell_len(character)
        line = self.cells[row]
        if line[column][0] == "":
            line[column - 1] = (" ", line[column - 1][1])
        behind = column + width
        if behind < self._width and line[behind][0] == "":
            line[behind] = (" ", line[behind][1])
        line[column] = (character, self._style)
        if width == 2:
            line[column + 1] = ("", self._style)
        self._at[1] = behind

    def seen(self) -> list[list[tuple[str, Style]]]:
        """Return the cells; a blank has no ink, so its foreground does not count."""
        return [[_inkless(*cell) for cell in line] for line in self.cells]

    def text(self) -> str:
        """Return the text."""
        return "\n".join("".join(character for character, _ in line) for line in self.cells)


def _inkless(character: str, style: Style) -> tuple[str, Style]:
    style = Style(style.attributes, mixed(style.foreground), mixed(style.background))
    if character == " " and not style.shows_on_blank:
        return character, Style((), "", style.background)
    return character, style


def mixed(color: str) -> str:
    """Return a color of the fixed part of the 256 as its red, green and blue."""
    kind, _, rest = color.partition(";5;")
    if not rest or int(rest) < 16:
        return color
    return f"{kind};2;" + ";".join(map(str, Color.from_ansi(int(rest)).get_truecolor()))


def styled(style: Style, parameters: str) -> Style:
    """Return the style after an SGR sequence, applied to what was there."""
    attributes = set(style.attributes)
    colors = {"3": style.foreground, "4": style.background}
    codes = iter(parameters.split(";"))
    for code in codes:
        if code in ("", "0"):
            attributes, colors = set(), {"3": "", "4": ""}
        elif code in ("38", "48"):
            kind = next(codes)
            rest = [next(codes) for _ in range(3 if kind == "2" else 1)]
            colors[code[0]] = ";".join((code, kind, *rest))
        elif code in ("39", "49"):
            colors[code[0]] = ""
        elif code == "22":
            attributes -= {"1", "2"}
        elif len(code) == 2 and code[0] == "2":
            attributes.discard(code[1])
        elif len(code) == 1:
            attributes.add(code)
        else:
            colors["3" if code[:-1] in ("3", "9") else "4"] = code
    return Style(tuple(sorted(attributes)), colors["3"], colors["4"])
