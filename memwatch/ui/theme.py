"""Themes: a YAML file -> colours of Textual, and a style for each name that panels use.

No colour is named anywhere else. A file says everything: an unknown key, or a missing one, is a
ConfigError with file and line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from rich.color import Color, ColorParseError
from rich.errors import StyleSyntaxError
from rich.style import Style
from textual.theme import BUILTIN_THEMES, Theme

from memwatch.config.load import load_settings
from memwatch.domain.errors import ConfigError
from memwatch.domain.text import inert
from memwatch.ui.frame import Glyphs

DEFAULT = "memwatch"
PLAIN = "plain16"
AUTO = "auto"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class BaseColors(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Colours of frames and of Textual's own parts."""

    foreground: str
    background: str
    border: str
    focus: str
    muted: str
    """Remarks in the frame of a panel."""
    accent: str
    warning: str
    error: str
    success: str


class Styles(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A style for each name that panels use, as `bold red`, `color(110)` or `#rrggbb`."""

    text: str
    dim: str
    strong: str
    title: str
    key: str
    greyed: str
    ok: str
    watch: str
    warn: str
    act: str
    crit: str
    nodata: str
    alarm: str
    notice: str
    mark: str
    note: str
    soft: str
    stale: str


class Layer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one layer of the chart is drawn: a glyph, one for ASCII terminals, and a style."""

    glyph: str
    ascii: str
    style: str


class ThemeFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of `themes/`."""

    name: str
    about: str
    dark: bool = True
    ansi: bool = False
    """Colours are the 16 of the terminal itself, named as `red` or `bright_red`."""
    base: BaseColors
    styles: Styles
    tiers: tuple[Layer, Layer, Layer, Layer, Layer]
    unaccounted: Layer


class Look(Struct, frozen=True, kw_only=True):
    """A theme, ready to paint with."""

    textual: Theme
    styles: Mapping[str, Style]
    glyphs: Glyphs
    ascii_glyphs: Glyphs


def load_look(name: str, dirs: Sequence[Path]) -> Look:
    """Return a theme by name, looked for in `dirs` in that order. Raises ConfigError."""
    if _NAME.fullmatch(name):
        for folder in dirs:
            path = folder / f"{name}.yaml"
            if path.is_file():
                return look_of(load_settings(path, ThemeFile), str(path))
    known = sorted({path.stem for folder in dirs for path in folder.glob("*.yaml")})
    raise ConfigError(f"there is no theme {inert(name, 60)!r}; there are {', '.join(known)}")


def chosen_name(name: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return the theme that fits the terminal: the plain one where colours are few or unwanted.

    NO_COLOR wins over any choice: the plain theme says everything in words and glyphs.
    """
    if environ.get("NO_COLOR"):
        return PLAIN
    if name != AUTO:
        return name
    term = environ.get("TERM", "")
    rich_colors = environ.get("COLORTERM", "") in ("truecolor", "24bit") or "256" in term
    return DEFAULT if rich_colors or "kitty" in term or "alacritty" in term else PLAIN


def look_of(file: ThemeFile, where: str) -> Look:
    """Turn a theme file into a look; raises ConfigError for a colour that is none."""
    layers = [*file.tiers, file.unaccounted]
    names = {field: getattr(file.styles, field) for field in Styles.__struct_fields__}
    names |= {f"tier{index}": layer.style for index, layer in enumerate(file.tiers)}
    names["unaccounted"] = file.unaccounted.style
    for attribute in ("glyph", "ascii"):
        _check_glyphs([getattr(layer, attribute) for layer in layers], attribute, where)
    glyphs = Glyphs(
        tiers=tuple(layer.glyph for layer in file.tiers), unaccounted=file.unaccounted.glyph
    )
    plain = Glyphs(
        tiers=tuple(layer.ascii for layer in file.tiers),
        unaccounted=file.unaccounted.ascii,
        line="-",
    )
    return Look(
        textual=_textual_theme(file, where),
        styles={name: _style(text, name, where) for name, text in names.items()},
        glyphs=glyphs,
        ascii_glyphs=plain,
    )


def _check_glyphs(glyphs: list[str], attribute: str, where: str) -> None:
    """Refuse layers that look alike: without colour the glyph alone tells them apart."""
    if any(len(glyph) != 1 or glyph in " -┄'" for glyph in glyphs) or len(set(glyphs)) < len(
        glyphs
    ):
        raise ConfigError(f"{where}: each layer needs a {attribute} of its own, one character")
    if attribute == "ascii" and not "".join(glyphs).isascii():
        raise ConfigError(f"{where}: an ascii glyph is a plain character")


def _style(text: str, name: str, where: str) -> Style:
    try:
        return Style.parse(text)
    except StyleSyntaxError:
        raise ConfigError(f"{where}: styles.{name} {inert(text, 40)!r} is no style") from None


def _textual_theme(file: ThemeFile, where: str) -> Theme:
    base = {name: _textual_color(getattr(file.base, name), name, where) for name in _BASE}
    variables = BUILTIN_THEMES["ansi-dark"].variables if file.ansi else {}
    return Theme(
        name=f"memwatch-{file.name}",  # never one of Textual's own
        primary=base["accent"],
        secondary=base["accent"],
        accent=base["accent"],
        warning=base["warning"],
        error=base["error"],
        success=base["success"],
        foreground=base["foreground"],
        background=base["background"],
        surface=base["background"],
        panel=base["background"],
        dark=file.dark,
        ansi=file.ansi,
        variables=variables
        | {f"frame-{name}": base[name] for name in ("border", "focus", "muted")},
    )


_BASE = BaseColors.__struct_fields__


def _textual_color(text: str, name: str, where: str) -> str:
    """Textual writes the 16 colours of the terminal as `ansi_red`."""
    try:
        number = Color.parse(text).number
    except ColorParseError:
        raise ConfigError(f"{where}: base.{name} {inert(text, 40)!r} is no colour") from None
    return f"ansi_{text}" if number is not None or text == "default" else text
