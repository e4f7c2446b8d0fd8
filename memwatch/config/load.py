"""A profile by name or path: YAML text -> typed settings.

Anything wrong is a ConfigError that names file, line and, for an unknown key, the nearest name:
a setting with a typing error must never pass in silence.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path
from stat import S_ISREG
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec
import yaml

from memwatch.config.check import contradiction
from memwatch.config.locations import profile_dirs
from memwatch.config.schema import Profile
from memwatch.domain.errors import ConfigError
from memwatch.domain.text import inert

MAX_BYTES = 256_000
"""Longest settings file."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
_AT = re.compile(r" - at `\$(.*)`$")

_Settings = TypeVar("_Settings", bound=msgspec.Struct)


def load_profile(name_or_path: str) -> Profile:
    """Return the profile of a name, or of a file when a path is given (it holds a `/`).

    Raises ConfigError. A name that a run directory states goes to `named_profile`: a stranger's
    run.json must not make us read a file of its choice.
    """
    return _profile(Path(name_or_path)) if "/" in name_or_path else named_profile(name_or_path)


def named_profile(name: str) -> Profile:
    """Return a profile by name: the user's own before the one we ship. Raises ConfigError."""
    if _NAME.fullmatch(name):
        for folder in profile_dirs():
            path = folder / f"{name}.yaml"
            if path.is_file():
                return _profile(path)
    known = profile_names()
    raise ConfigError(f"there is no profile {inert(name, 60)!r}{_nearest(name, known)}")


def profile_names() -> list[str]:
    """Return the names of all profiles, the user's and ours."""
    return sorted({path.stem for folder in profile_dirs() for path in folder.glob("*.yaml")})


def _profile(path: Path) -> Profile:
    return load_settings(path, Profile)


def load_settings(path: Path, shape: type[_Settings]) -> _Settings:
    """Read a YAML file into a settings struct; raises ConfigError with file and line."""
    where = inert(str(path), 120)
    root, values = _parse(_read(path), where)
    _check_keys(root, shape, where)
    try:
        settings = msgspec.convert(_completed(values, shape), shape)
    except msgspec.ValidationError as error:
        place = _AT.search(str(error))
        line = _line(root, place[1] if place else "")
        raise ConfigError(f"{where} line {line}: {inert(str(error), 160)}") from None
    found = contradiction(settings)
    if found:
        raise ConfigError(f"{where} line {_line(root, '.' + found.key)}: {found.text}")
    return settings


class _Loader(yaml.SafeLoader):
    """Plain values only, and no aliases: a few nested ones unfold to gigabytes."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.current_event.start_mark
            problem = "aliases are not read, write the value out"
            raise yaml.composer.ComposerError(None, None, problem, mark)
        return super().compose_node(parent, index)


def _parse(text: str, where: str) -> tuple[yaml.MappingNode, Any]:
    """Return the tree with its lines, and the plain values of it."""
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        if isinstance(root, yaml.MappingNode):
            return root, loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{where} line {line}: {inert(str(error.problem), 120)}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{where} is not YAML: {inert(str(error), 120)}") from None
    raise ConfigError(f"{where} line 1: settings are lines of `key: value`")


def _read(path: Path) -> str:
    where = inert(str(path), 120)
    try:
        if not S_ISREG(path.stat().st_mode):
            raise ConfigError(f"{where} is no file")
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise ConfigError(f"{where} is over the {MAX_BYTES // 1000} kB of a settings file")
        return raw.decode("utf-8")
    except OSError as error:
        raise ConfigError(f"{where} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{where} is not UTF-8 text") from None


def _check_keys(node: yaml.MappingNode, shape: type[msgspec.Struct], where: str) -> None:
    types = get_type_hints(shape)
    seen: set[str] = set()
    for key, value in node.value:
        line = key.start_mark.line + 1
        name = key.value if isinstance(key, yaml.ScalarNode) else "?"
        if name not in types:
            near = _nearest(name, list(types))
            raise ConfigError(f"{where} line {line}: unknown key {inert(name, 40)!r}{near}")
        if name in seen:
            raise ConfigError(f"{where} line {line}: {name!r} is set twice")
        seen.add(name)
        if not isinstance(value, yaml.MappingNode):
            continue
        inner, named = types[name], _named(types[name])
        if named is not None:
            for _, one in value.value:
                if isinstance(one, yaml.MappingNode):
                    _check_keys(one, named, where)
        elif isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            _check_keys(value, inner, where)


def _named(hint: Any) -> type[msgspec.Struct] | None:
    """Return the struct of a setting that holds one for each of several names."""
    if get_origin(hint) is not dict:
        return None
    inner = get_args(hint)[1]
    return inner if isinstance(inner, type) and issubclass(inner, msgspec.Struct) else None


def _completed(values: Any, shape: type[msgspec.Struct]) -> Any:
    """Add to structs by name what the file does not say of them: it changes what it names."""
    for setting in msgspec.structs.fields(shape):
        given = values.get(setting.name)
        if _named(setting.type) is None or not isinstance(given, dict):
            continue
        usual = msgspec.to_builtins(setting.default_factory())
        merged = {
            name: {**usual.get(name, {}), **one} if isinstance(one, dict) else one
            for name, one in given.items()
        }
        values = {**values, setting.name: {**usual, **merged}}
    return values


def _nearest(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(known)}"


def _line(root: yaml.MappingNode, path: str) -> int:
    """Return the line of `.a.b[2]`, or of the deepest part of it that the file holds."""
    node: yaml.Node = root
    line = 1
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
