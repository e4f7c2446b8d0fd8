"""Whatever is named wrongly: one sentence on stderr, exit 2, nothing written anywhere."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Command, tree
from tests.e2e.stage import Stage

COMMANDS = ("status", "guard", "report", "inspect", "drill", "ctl", "tonight")
MORE = {"ctl": ["pause"]}
"""Words behind the place, where a command needs them."""
OTHER_UID = 12_345


def nothing(place: Path) -> None:
    """Leave the place as it is: missing."""


def empty(place: Path) -> None:
    place.mkdir()


def a_file(place: Path) -> None:
    place.write_text("no directory")


def no_run(place: Path) -> None:
    place.mkdir()
    (place / "notes.txt").write_text("hello")


def run_json(text: str) -> Callable[[Path], None]:
    def make(place: Path) -> None:
        (place / "wal").mkdir(parents=True)
        (place / "run.json").write_text(text)

    return make


def no_wal(place: Path) -> None:
    place.mkdir()
    (place / "run.json").write_text(json.dumps({"format": 1, "run_id": "r", "agent": "a"}))


def several(place: Path) -> None:
    for name in ("night-1", "night-2"):
        run_json(json.dumps({"format": 1, "run_id": name, "agent": "a"}))(place / name)


def linked_run_json(place: Path) -> None:
    no_run(place)
    (place / "wal").mkdir()
    (place / "run.json").symlink_to("/etc/passwd")


def a_loop(place: Path) -> None:
    place.symlink_to(place)


CASES: dict[str, tuple[Callable[[Path], None], str]] = {
    "missing": (nothing, "does not exist; `memwatch ls` lists the runs"),
    "empty": (empty, "is empty; name a run directory"),
    "a file": (a_file, "is no run directory, nor a file that memwatch knows"),
    "no run": (no_run, "is not a run: it holds no run.json"),
    "no wal": (no_wal, "holds run.json but no wal/"),
    "garbage": (run_json("\x00\x1b[31m{"), "not a manifest"),
    "a list": (run_json("[1]"), "not a manifest"),
    "newer": (run_json('{"format": 2, "run_id": "r"}'), "upgrade memwatch"),
    "no id": (run_json('{"format": 1, "run_id": "", "agent": "a"}'), "no usable run_id"),
    "long id": (
        run_json(json.dumps({"format": 1, "run_id": "x" * 300, "agent": "a"})),
        "no usable run_id",
    ),
    "nested": (run_json("[" * 50_000), "not a manifest"),
    "several": (several, "holds several runs; name one of them: night-2, night-1"),
    "linked": (linked_run_json, "cannot be opened"),
    "loop": (a_loop, "cannot be opened"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("case", CASES)
def test_one_sentence_and_nothing_written(
    stage: Stage, memwatch: Command, command: str, case: str
) -> None:
    make, words = CASES[case]
    place = stage.folder / "place"
    make(place)
    before = tree(stage.folder)
    done = memwatch(command, str(place), *MORE.get(command, []))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("memwatch: ")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.rstrip("\n").isprintable()
    assert tree(stage.folder) == before, "nothing is written, not even a home"
    assert not stage.home.exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_run_of_somebody_else(stage: Stage, memwatch: Command, command: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    place = stage.folder / "place"
    run_json(json.dumps({"format": 1, "run_id": "r", "agent": "a"}))(place)
    os.chown(place, OTHER_UID, OTHER_UID)
    before = tree(stage.folder)
    done = memwatch(command, str(place), *MORE.get(command, []))
    assert done.returncode == 2
    assert "belongs to another user; run memwatch as its owner" in done.stderr
    assert tree(stage.folder) == before


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("closed", ["", "run.json", "wal"])
def test_what_may_not_be_read(stage: Stage, memwatch: Command, command: str, closed: str) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    place = stage.folder / "place"
    run_json(json.dumps({"format": 1, "run_id": "r", "agent": "a"}))(place)
    (place / closed).chmod(0)
    try:
        done = memwatch(command, str(place), *MORE.get(command, []))
    finally:
        (place / closed).chmod(0o700)
    assert done.returncode == 2
    assert "cannot be read; give yourself read permission" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["status", "no-such-run"],
        ["status", "x" * 5000],
        ["status", "~nobody-at-all/x"],
        ["status"],
        ["status", ""],
        ["guard", "--stop", ""],
        ["guard"],
        ["guard", "--stop"],
        ["guard", "--stop", "no-such-run"],
        ["guard", ".", "--for", "8h"],
        ["guard", ".", "--mode", "shadow", "--for", "8h"],
        ["guard", ".", "--stop", "--mode", "act"],
        ["guard", ".", "--policy", "no-such-file"],
        ["guard", ".", "--unit", "--mode", "act", "--for", "8h"],
        ["ctl", "no-such-run", "pause"],
        ["ctl", ".", "pause"],
        ["tonight"],
        ["tonight", "no-such-run"],
        ["inspect", "/proc/self/mem"],
        ["demo", "leak"],
        ["demo", "leak", "60"],
        ["demo", "--json"],
        ["demo", "--headless"],
        ["demo"],
        [],
        ["no-such-run"],
        ["\x1b]0;title\x07"],
    ],
    ids=lambda words: " ".join(words)[:30].encode("unicode_escape").decode() or "nothing",
)
def test_wrong_words_are_one_printable_sentence(
    stage: Stage, memwatch: Command, words: list[str]
) -> None:
    done = memwatch(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.rstrip("\n").isprintable()
    assert len(done.stderr) <= 420
    assert not stage.home.exists()


@pytest.mark.parametrize(
    "words",
    [
        ["status", "--nonsense"],
        ["status", "--json", "--line"],
        ["status", "a", "b"],
        ["ls", "--nonsense"],
        ["guard", "x", "--detach", "--stop"],
        ["guard", "x", "--detach", "--unit"],
        ["guard", "x", "--mode", "wild"],
        ["guard", "x", "--mode", "act", "--for", "0h"],
        ["ctl"],
        ["ctl", "x"],
        ["ctl", "x", "dance"],
        ["tonight", "--nonsense"],
        ["inspect"],
        ["demo", "dance"],
        ["demo", "leak", "much"],
        ["demo", "leak", "nan"],
        ["demo", "leak", "inf"],
        ["demo", "--leak", "nan"],
        ["demo", "--headless", "--seconds", "nan"],
        ["demo", "--headless", "--seconds", "-5"],
        ["demo", "--headless", "--seconds", "0"],
        ["--refresh", "nan"],
        ["--refresh", "-1"],
        ["demo", "--leak-in", "nowhere"],
        [".", "--nonsense"],
        ["--refresh", "often"],
    ],
    ids=" ".join,
)
def test_unknown_options_end_with_2(stage: Stage, memwatch: Command, words: list[str]) -> None:
    done = memwatch(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "usage: " in done.stderr
    assert not stage.home.exists()


def test_a_dashboard_without_a_terminal_says_what_else_there_is(memwatch: Command) -> None:
    done = memwatch()
    assert done.stderr == (
        "memwatch: the dashboard needs a terminal; without one there are "
        "`memwatch status --json` and `memwatch demo --headless`\n"
    )
