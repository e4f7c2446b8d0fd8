"""The systemd unit: whatever stands in a path, systemd reads back just that."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.cli.unit import command_line, quoted, unit, unit_name
from memwatch.domain.text import inert

ODD = "a b/5%h $HOME \"quoted\" 'single' back\\slash \t;#é\n$$ %% \\x41 ${X} [u"
WORDS = st.text(st.characters(exclude_characters="\0"), max_size=30).filter(
    lambda word: not any(0xD800 <= ord(one) < 0xDC80 or 0xDD00 <= ord(one) < 0xE000 for one in word)
)
"""What can stand in an argument: bytes that are no UTF-8 are surrogates from DC80 to DCFF."""


def split(line: str) -> list[bytes]:
    """Read a command line as systemd.syntax(7) and systemd.service(5) say: unquote, then %, $."""
    words: list[bytes] = []
    rest = line.encode("utf-8", "surrogateescape")
    while rest:
        if rest[:1] != b'"':
            word, _, rest = rest.partition(b" ")
        else:
            word, rest = unquoted(rest[1:])
        words.append(word.replace(b"%%", b"%").replace(b"$$", b"$"))
    return words


def unquoted(text: bytes) -> tuple[bytes, bytes]:
    found = bytearray()
    at = 0
    while text[at : at + 1] != b'"':
        if text[at : at + 1] != b"\\":
            found += text[at : at + 1]
            at += 1
        elif text[at + 1 : at + 2] == b"x":
            found.append(int(text[at + 2 : at + 4], 16))
            at += 4
        else:
            assert text[at + 1 : at + 2] in (b'"', b"\\")
            found += text[at + 1 : at + 2]
            at += 2
    return bytes(found), text[at + 1 :].removeprefix(b" ")


@given(st.lists(WORDS, max_size=4))
def test_any_arguments_come_back(words: list[str]) -> None:
    line = command_line(["/usr/bin/python3", *words])
    assert line.isprintable(), "one line, whatever is in it"
    assert split(line) == [b"/usr/bin/python3", *map(os.fsencode, words)]
    ours = line.removeprefix("/usr/bin/python3")
    assert "%" not in ours.replace("%%", "")
    assert "$" not in ours.replace("$$", "")


def test_a_program_with_an_odd_name_is_started_by_a_shell() -> None:
    words = [f"/opt/{ODD}/python", "-m", "memwatch"]
    read = split(command_line(words))
    assert read[:3] == [b"/bin/sh", b"-c", b'exec "$0" "$@"']
    assert read[3:] == list(map(os.fsencode, words))


def test_a_name_for_the_file_of_any_run() -> None:
    assert unit_name("night-7") == "memwatch-night-7.service"
    assert unit_name("../../etc/x@%i").startswith("memwatch-etc-x-i-")
    assert "/" not in unit_name("../../etc/x@%i")


def make(monkeypatch: pytest.MonkeyPatch, folder: Path, **environment: str) -> str:
    monkeypatch.setenv("MEMWATCH_HOME", str(folder / ODD))
    return unit(folder / ODD, f"run\n{ODD}", f"run\n{ODD}", ["--mode", "act"], environment)


def test_it_says_how_to_install_it_and_holds_no_secret(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("API_TOKEN", "very-secret")
    text = make(monkeypatch, tmp_path, API_TOKEN="very-secret", XDG_CONFIG_HOME="/c 5%")
    assert "secret" not in text
    assert "# " in text
    assert "loginctl enable-linger" in text
    assert "systemctl --user enable --now memwatch-run-a-b" in text
    assert "\nRestart=on-failure\n" in text
    assert '\nEnvironment="XDG_CONFIG_HOME=/c 5%%"\n' in text
    assert all(line == inert(line, 10_000) for line in text.splitlines())
    (start,) = (line for line in text.splitlines() if line.startswith("ExecStart="))
    words = [os.fsdecode(word) for word in split(start.removeprefix("ExecStart="))]
    assert words[-6:] == ["-m", "memwatch", "guard", str(tmp_path / ODD), "--mode", "act"]
    assert words[-7] == sys.executable
    assert not any(line.endswith("\\") for line in text.splitlines())


@pytest.mark.parametrize("odd_program", [False, True])
def test_systemd_takes_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, odd_program: bool
) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd here")
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    if odd_program:
        program = tmp_path / 'python "%h" $HOME \\x41'
        program.symlink_to(sys.executable)
        monkeypatch.setattr(sys, "executable", str(program))
    place = tmp_path / unit_name("night-7")
    place.write_text(make(monkeypatch, tmp_path))
    done = subprocess.run(
        [analyze, "verify", "--user", "--man=no", str(place)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "Failed to initialize manager" in done.stderr:
        pytest.skip(f"systemd-analyze does not work here: {done.stderr.strip()}")
    assert (done.returncode, done.stderr) == (0, "")


def test_quoted_keeps_plain_words_plain() -> None:
    assert quoted("plain") == '"plain"'
