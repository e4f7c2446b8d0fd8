"""Text from logs, processes and files, made safe for a terminal; from agents, for a log."""

from __future__ import annotations

import unicodedata

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_REFUSED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def inert(text: str, width: int = 200) -> str:
    """Return `text` without anything that a terminal acts on, cut to `width` characters.

    Control, format (bidirectional overrides, zero width), surrogate, private and unassigned
    characters become U+FFFD; tabs, line ends and every other kind of space become plain spaces,
    so that what comes out is printable. Console markup is not interpreted anywhere, so brackets
    stay.

    >>> inert("a\\x1b[31mb\\tc")
    'a\\ufffd[31mb c'
    """
    cut = text[: width + 1]
    if not (cut.isascii() and cut.isprintable()):
        cut = "".join(map(_inert_character, cut))
    return cut if len(cut) <= width else cut[: max(width - 1, 0)] + "…"


def _inert_character(character: str) -> str:
    category = unicodedata.category(character)
    if character in "\t\n\r" or category == "Zs":
        return " "
    return _REPLACEMENT if category in _REFUSED else character


def sayable(what: object, most: int = 10_000) -> str:
    r"""Return what an agent said for people as text that a log can hold: it must never fail there.

    Halves of surrogate pairs, as in names of files that are not UTF-8, become question marks.

    >>> sayable("ls caf\udce9"), sayable(KeyError("a")), sayable("x" * 5, 4)
    ('ls caf?', "'a'", 'xxx…')
    """
    try:
        text = what if type(what) is str else str(what)
    except Exception:  # noqa: BLE001 - a class of the agent's
        text = "(it cannot be told)"
    if len(text) > most:
        text = text[: most - 1] + "…"
    return text if text.isascii() else text.encode(errors="replace").decode()
