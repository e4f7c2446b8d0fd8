"""Command line -> the name that a person knows a process by: its program or its script."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memwatch.domain.text import inert

_WIDTH = 60
_INTERPRETER = re.compile(
    r"(?:python|pypy|node|deno|bun|ruby|perl|php|bash|dash|zsh|fish|sh|Rscript|lua)[\d.]*t?"
)
_MODULE_OPTION = "-m"
_CODE_OPTIONS = frozenset({"-c", "-e", "--eval"})
_OPTIONS_WITH_VALUE = frozenset({"-W", "-X", "-r", "--require", "-I"})


def process_name(arguments: Sequence[str], command: bytes) -> str:
    """Return a name as inert text; `command` is the kernel's, for a process without arguments.

    >>> process_name(["/usr/bin/python3.11", "-X", "dev", "/srv/agent.py", "--fast"], b"python3.11")
    'agent.py'
    >>> process_name(["python", "-m", "pytest", "-q"], b"python")
    'python -m pytest'
    >>> process_name(["/bin/sh", "-c", "sleep 9"], b"sh")
    'sh'
    >>> process_name([], b"kworker/0")
    'kworker/0'
    """
    if not arguments:
        return inert(command.decode("utf-8", "replace"), _WIDTH)
    program = _last_part(arguments[0])
    if _INTERPRETER.fullmatch(program):
        return inert(_script(program, arguments[1:]), _WIDTH)
    return inert(program, _WIDTH)


def _script(program: str, arguments: Sequence[str]) -> str:
    rest = iter(arguments)
    for argument in rest:
        if argument == _MODULE_OPTION:
            return f"{program} -m {next(rest, '')}".rstrip()
        if argument in _CODE_OPTIONS:
            break
        if argument in _OPTIONS_WITH_VALUE:
            next(rest, None)
        elif not argument.startswith("-"):
            return _last_part(argument)
    return program


def _last_part(path: str) -> str:
    """Return the base name; a title that a process gave itself may hold spaces and slashes."""
    return path if " " in path else path.rstrip("/").rpartition("/")[2] or path
