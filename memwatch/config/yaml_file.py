"""A file of YAML -> its tree with lines, and its plain values.

Scalars are read as YAML 1.2 reads them. YAML 1.1 makes `mode: off` a boolean, `from: 23:00` the
number 1380 and `010` the number 8; none of that is ever meant in a file of settings.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from stat import S_ISREG
from typing import Any, Literal, NamedTuple

import yaml

from memwatch.domain.errors import ConfigError
from memwatch.domain.text import inert

MAX_BYTES = 256_000
"""Longest settings file."""

Trust = Literal["any", "user", "run"]
"""Who may have written a file. any: a person named it · user: it is among the user's settings, so
it belongs to them or to root, and not everybody can write it · run: it lies in an agent's folder,
so it is no link, belongs to us, and nobody else can write it (F47)."""

_MOST_DIGITS = 18
"""Of a whole number: more do not fit where it is reckoned with."""

_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
_TAG = "tag:yaml.org,2002:"


class UntrustedError(ConfigError):
    """Somebody else may have written this file."""


class Tree(NamedTuple):
    """A file of settings: `root` knows the lines of what `values` holds."""

    where: str
    """The file, for people."""
    root: yaml.MappingNode
    values: dict[str, Any]


def read_tree(path: Path, trust: Trust = "any", *, may_be_empty: bool = False) -> Tree | None:
    """Read a file; None when it does not exist. Raises ConfigError, which names it and the line."""
    where = inert(str(path), 120)
    text = read_text(path, trust)
    return None if text is None else parse(text, where, may_be_empty=may_be_empty)


def parse(text: str, where: str, *, may_be_empty: bool = False) -> Tree:
    """Return what a text of YAML holds; raises ConfigError with the line."""
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is None and may_be_empty:
            root = yaml.MappingNode(f"{_TAG}map", [], yaml.Mark(where, 0, 0, 0, None, 0))
        if isinstance(root, yaml.MappingNode):
            _check_twice(root, where)
            return Tree(where, root, loader.construct_document(root))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{where} line {line}: {inert(str(error.problem), 120)}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{where} is not YAML: {inert(str(error), 120)}") from None
    raise ConfigError(f"{where} line 1: settings are lines of `key: value`")


def line_of(node: yaml.Node, path: str, line: int = 1) -> int:
    """Return the line of `.a.b[2]` below a node, or of the deepest part of it that is there.

    `line` is that of the node itself.
    """
    for key, index in _STEP.findall(path):
        if key and isinstance(node, yaml.MappingNode):
            found = next(((k, v) for k, v in node.value if k.value == key), None)
            if found is None:
                break
            line, node = found[0].start_mark.line + 1, found[1]
        elif index and isinstance(node, yaml.SequenceNode) and int(index) < len(node.value):
            node = node.value[int(index)]
            line = node.start_mark.line + 1
    return line


def nearest(name: str, known: Sequence[str]) -> str:
    """Return what may have been meant by a name, as the end of a sentence."""
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(known)}"


def read_text(path: Path, trust: Trust = "any") -> str | None:
    """Return the text of a file of settings; None when it does not exist. Raises ConfigError."""
    where = inert(str(path), 120)
    # A pipe under that name keeps nobody waiting.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        if trust == "run" and path.is_symlink():
            raise UntrustedError(f"{where} is a link; a run's own settings are a plain file")
        fd = os.open(path, flags | (os.O_NOFOLLOW if trust == "run" else 0))
        with os.fdopen(fd, "rb") as file:
            status = os.fstat(file.fileno())
            if not S_ISREG(status.st_mode):
                raise ConfigError(f"{where} is no file")
            _check_writers(status, trust, where)
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise ConfigError(f"{where} is over the {MAX_BYTES // 1000} kB of a settings file")
        return raw.decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except IsADirectoryError:
        raise ConfigError(f"{where} is no file") from None
    except OSError as error:
        raise ConfigError(f"{where} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{where} is not UTF-8 text") from None


def _check_writers(status: os.stat_result, trust: Trust, where: str) -> None:
    owners = {"any": None, "user": {0, os.getuid()}, "run": {os.getuid()}}[trust]
    others = {"any": 0, "user": 0o002, "run": 0o022}[trust]
    if owners is not None and status.st_uid not in owners:
        raise UntrustedError(f"{where} belongs to another user; copy it to have it followed")
    if status.st_mode & others:
        raise UntrustedError(f"{where} can be written by others; chmod go-w it")


class _Loader(yaml.SafeLoader):
    """Plain values only, and no aliases: a few nested ones unfold to gigabytes."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - the parent's, of YAML 1.1, are not taken over

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.current_event.start_mark
            problem = "aliases are not read, write the value out"
            raise yaml.composer.ComposerError(None, None, problem, mark)
        return super().compose_node(parent, index)


class _Dumper(yaml.SafeDumper):
    """Quotes what any reader might take for something else than text: 1.1 and 1.2 alike."""


def dump(values: Mapping[str, Any]) -> str:
    """Return settings as text of YAML, in their order; `parse` reads the same values back."""
    text: str = yaml.dump(
        dict(values), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=96
    )
    return text


def _integer(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    digits = str(loader.construct_scalar(node)).replace("_", "")
    if len(digits) <= _MOST_DIGITS:
        return int(digits)
    raise yaml.constructor.ConstructorError(
        None, None, "a number beyond all bounds", node.start_mark
    )


def _number(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    """Return a number; `50e6` is a whole one, so that it may be a number of bytes."""
    number = loader.construct_yaml_float(node)
    whole = "e" in node.value.lower() and number.is_integer() and abs(number) < 10**_MOST_DIGITS
    return int(number) if whole else number


for _name, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9][0-9_]*", "-+0123456789"),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
):
    _firsts = [*_first, ""] if _name == "null" else list(_first)
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(f"{_TAG}{_name}", re.compile(f"^(?:{_pattern})$"), _firsts)
_Loader.add_constructor(f"{_TAG}int", _integer)
_Loader.add_constructor(f"{_TAG}float", _number)


def _check_twice(node: yaml.Node, where: str) -> None:
    """Refuse a key that is set twice: which one was meant, nobody knows."""
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _check_twice(item, where)
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    line = key.start_mark.line + 1
                    name = inert(key.value, 40)
                    raise ConfigError(f"{where} line {line}: {name!r} is set twice")
                seen.add(key.value)
            _check_twice(value, where)
