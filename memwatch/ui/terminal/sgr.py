"""Styles of terminal cells as numbers, and the shortest way from one to another. Pure.

A style is what stands between `ESC [` and `m` after a reset: attributes, foreground, background.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

_OFF = {"1": "22", "2": "22", "3": "23", "4": "24", "5": "25", "7": "27", "8": "28", "9": "29"}
_SHOWS_ON_BLANK = frozenset({"4", "5", "7", "9", "21", "53"})
"""Attributes that are seen where there is no ink: underlined, blinking, reversed, struck."""


class Style(NamedTuple):
    """Attributes in order, and the two colours as parameters of SGR; "" = the terminal's own."""

    attributes: tuple[str, ...] = ()
    foreground: str = ""
    background: str = ""

    @property
    def shows_on_blank(self) -> bool:
        """A blank cell in this style is more than its background."""
        return any(attribute in _SHOWS_ON_BLANK for attribute in self.attributes)


PLAIN = Style()

_LEVELS = (0, 95, 135, 175, 215, 255)
_NUMBERS = {
    f"{red};{green};{blue}": 16 + 36 * r + 6 * g + b
    for r, red in enumerate(_LEVELS)
    for g, green in enumerate(_LEVELS)
    for b, blue in enumerate(_LEVELS)
} | {f"{grey};{grey};{grey}": 232 + step for step, grey in enumerate(range(8, 239, 10))}
"""The fixed part of the 256 colours: the same colour as its red, green, blue, in half the bytes."""


@lru_cache(1024)
def parsed(parameters: str) -> Style:
    """Read the parameters of an SGR sequence that starts from a reset.

    >>> parsed("1;38;2;10;20;30;48;5;4")
    Style(attributes=('1',), foreground='38;2;10;20;30', background='48;5;4')
    >>> parsed("38;2;135;175;215").foreground
    '38;5;110'
    >>> parsed("0"), parsed("91;40").foreground
    (Style(attributes=(), foreground='', background=''), '91')
    """
    attributes: list[str] = []
    foreground = background = ""
    codes = iter(parameters.split(";"))
    for code in codes:
        if code in ("38", "48"):
            kind = next(codes, "")
            rest = [next(codes, "") for _ in range(3 if kind == "2" else 1)]
            color = f"{code};5;{number}" if (number := _NUMBERS.get(";".join(rest))) else ""
            color = color or ";".join((code, kind, *rest))
            foreground, background = (color, background) if code == "38" else (foreground, color)
        elif len(code) in (2, 3) and code[:-1] in ("3", "9"):
            foreground = "" if code == "39" else code
        elif len(code) in (2, 3) and code[:-1] in ("4", "10"):
            background = "" if code == "49" else code
        elif code not in ("", "0"):
            attributes.append(code)
    return Style(tuple(sorted(attributes)), foreground, background)


@lru_cache(4096)
def change(before: Style | None, after: Style) -> str:
    """Return the shortest sequence that leads from one style to another; None = not known.

    >>> change(parsed("31"), parsed("1;31"))
    '\\x1b[1m'
    >>> change(parsed("1;31"), parsed("32")), change(parsed("1;31"), PLAIN)
    ('\\x1b[0;32m', '\\x1b[m')
    """
    if before == after:
        return ""
    whole = _sequence("0", after) if after != PLAIN else "\x1b[m"
    if before is None:
        return whole
    gone = [a for a in before.attributes if a not in after.attributes]
    if any(attribute not in _OFF for attribute in gone):
        return whole
    off = {_OFF[attribute] for attribute in gone}
    codes = sorted(off)
    codes += [a for a in after.attributes if a not in before.attributes or _OFF.get(a) in off]
    if before.foreground != after.foreground:
        codes.append(after.foreground or "39")
    if before.background != after.background:
        codes.append(after.background or "49")
    steps = f"\x1b[{';'.join(codes)}m"
    return min(steps, whole, key=len)


def _sequence(start: str, style: Style) -> str:
    codes = [start, *style.attributes, style.foreground, style.background]
    return f"\x1b[{';'.join(code for code in codes if code)}m"
