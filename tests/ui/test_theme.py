"""Themes are read whole, or refused with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.style import Style
from textual.color import Color

from memwatch.domain.errors import ConfigError
from memwatch.ui.theme import Look, Styles, chosen_name, load_look
from tests.ui.harness import THEMES

SHIPPED = sorted(path.stem for path in THEMES.glob("*.yaml"))


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_theme_has_a_style_for_every_name(name: str) -> None:
    look = load_look(name, [THEMES])
    wanted = {*Styles.__struct_fields__, *(f"tier{n}" for n in range(5)), "unaccounted"}
    assert set(look.styles) == wanted
    assert isinstance(look.styles["warn"], Style)


@pytest.mark.parametrize("name", SHIPPED)
def test_layers_are_told_apart_without_colour(name: str) -> None:
    look = load_look(name, [THEMES])
    for glyphs in (look.glyphs, look.ascii_glyphs):
        drawn = [*glyphs.tiers, glyphs.unaccounted, glyphs.line, glyphs.peak, " "]
        assert len(set(drawn)) == len(drawn)
    assert "".join(look.ascii_glyphs.tiers).isascii()


def test_the_plain_theme_uses_the_sixteen_colours_and_no_backgrounds() -> None:
    look = load_look("plain16", [THEMES])
    for style in look.styles.values():
        assert style.bgcolor is None
        assert style.color is None or style.color.number is None or style.color.number < 16
    assert Color.parse(str(look.textual.background)).ansi is not None


def broken(tmp_path: Path, old: str, new: str) -> str:
    text = (THEMES / "memwatch.yaml").read_text()
    assert old in text
    (tmp_path / "mine.yaml").write_text(text.replace(old, new))
    with pytest.raises(ConfigError) as refused:
        load_look("mine", [tmp_path, THEMES])
    return str(refused.value)


def test_an_unknown_key_names_file_line_and_nearest_name(tmp_path: Path) -> None:
    message = broken(tmp_path, "  watch:", "  watsh:")
    assert "mine.yaml line " in message
    assert "unknown key 'watsh'; did you mean 'watch'?" in message


def test_a_missing_key_is_an_error(tmp_path: Path) -> None:
    assert "warn" in broken(tmp_path, "  warn: bold color(179)\n", "")


def test_a_colour_that_is_none_is_an_error(tmp_path: Path) -> None:
    assert "'blod red' is no style" in broken(tmp_path, "bold color(179)", "blod red")
    assert "base.focus 'sky' is no colour" in broken(tmp_path, 'focus: "#7f9fbf"', "focus: sky")


def test_two_layers_with_one_glyph_are_an_error(tmp_path: Path) -> None:
    assert "glyph of its own" in broken(tmp_path, 'glyph: "▓"', 'glyph: "█"')
    assert "plain character" in broken(tmp_path, 'ascii: "="', 'ascii: "é"')


def test_the_users_own_theme_comes_first(tmp_path: Path) -> None:
    text = (THEMES / "memwatch.yaml").read_text()
    (tmp_path / "memwatch.yaml").write_text(text.replace("  ok: color(108)", "  ok: red"))
    look: Look = load_look("memwatch", [tmp_path, THEMES])
    assert look.styles["ok"] == Style.parse("red")


@pytest.mark.parametrize("name", ["nope", "../memwatch", "", "a/b"])
def test_a_theme_that_is_not_there_names_those_that_are(name: str) -> None:
    with pytest.raises(ConfigError, match="there are memwatch, plain16"):
        load_look(name, [THEMES])


def test_the_terminal_chooses_when_nobody_does() -> None:
    assert chosen_name("auto", {"TERM": "xterm-256color"}) == "memwatch"
    assert chosen_name("auto", {"TERM": "linux"}) == "plain16"
    assert chosen_name("auto", {"TERM": "xterm", "COLORTERM": "truecolor"}) == "memwatch"
    assert chosen_name("mine", {"TERM": "linux"}) == "mine"
    assert chosen_name("mine", {"TERM": "xterm-256color", "NO_COLOR": "1"}) == "plain16"
