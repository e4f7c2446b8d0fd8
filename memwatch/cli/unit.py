"""A systemd user unit for the guard of one run, as text (systemd.syntax(7), .service(5))."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from memwatch.config.locations import home, run_folder
from memwatch.domain.text import inert
from memwatch.runtime.runs.keeper import MOST_RESTARTS, WINDOW_S

_PLAIN_PATH = re.compile(r"/[A-Za-z0-9_./+@:-]*", re.ASCII)
_ANY_PROGRAM = ("/bin/sh", "-c", 'exec "$0" "$@"')
"""systemd starts no program with quotes or backslashes in its name; a shell does."""
_HANDED_ON = ("XDG_CONFIG_HOME",)
"""Beside MEMWATCH_HOME all that a guard needs of our environment: places, no secrets."""

_UNIT = """\
# A guard for {shown} that begins again after a crash and at each login of yours.
# Install it and start it:
#   mkdir -p ~/.config/systemd/user && {again} > ~/.config/systemd/user/{name}
#   systemctl --user daemon-reload && systemctl --user enable --now {name}
# Let it begin at boot and stay when you log out:
#   loginctl enable-linger

[Unit]
Description={about}
StartLimitIntervalSec={window_s}
StartLimitBurst={most}

[Service]
Type=exec
{environment}
ExecStart={command}
Restart=on-failure
RestartPreventExitStatus=2
RestartSec=2

[Install]
WantedBy=default.target
"""


def quoted(word: str, *, variables: bool = False) -> str:
    r"""Return a word as systemd reads it back; `variables` where `$` would mean one.

    >>> print(quoted('a "b" 5% $c \\ d', variables=True))
    "a \"b\" 5%% $$c \\ d"
    """
    text = "".join(map(_escaped, os.fsencode(word).decode("utf-8", "surrogateescape")))
    return f'"{text.replace("$", "$$") if variables else text}"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character == "%":
        return "%%"
    if character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(character))


def command_line(words: Sequence[str]) -> str:
    """Return the value of ExecStart= that runs a program with exactly these arguments."""
    program, *arguments = words
    if not _PLAIN_PATH.fullmatch(program):
        program, *arguments = (*_ANY_PROGRAM, *words)
    return " ".join([program, *(quoted(word, variables=True) for word in arguments)])


def unit_name(run_key: str) -> str:
    """Return the file name of the unit for a run."""
    return f"memwatch-{run_folder(run_key)}.service"


def unit(
    run_dir: Path,
    run_key: str,
    shown: str,
    options: Sequence[str],
    environment: Mapping[str, str] = os.environ,
) -> str:
    """Return the unit; `options` are words for `memwatch guard`, `shown` names the run."""
    python, path = sys.executable, os.fspath(run_dir)
    own = [("MEMWATCH_HOME", os.fspath(home()))]
    own += [(name, environment[name]) for name in _HANDED_ON if environment.get(name)]
    again = shlex.join([python, "-m", "memwatch", "guard", path, *options, "--unit"])
    return _UNIT.format(
        shown=inert(shown),
        again=inert(again, 4000),
        name=unit_name(run_key),
        about=inert(f"memwatch guard of {run_key}", 120).replace("%", "%%").rstrip("\\"),
        window_s=WINDOW_S,
        most=MOST_RESTARTS,
        environment="\n".join(f"Environment={quoted(f'{name}={value}')}" for name, value in own),
        command=command_line([python, "-m", "memwatch", "guard", path, *options]),
    )
