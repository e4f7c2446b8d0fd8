"""A profile by name or path: YAML text -> typed settings.

Anything wrong is a ConfigError that names file, line and, for an unknown key, the nearest name:
a setting with a typing error must never pass in silence.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from memwatch.config.check import contradiction
from memwatch.config.locations import profile_dirs
from memwatch.config.policy_layers import check_place
from memwatch.config.schema import Profile
from memwatch.config.shape import check_keys, converted, named_struct_of, sections
from memwatch.config.yaml_file import MAX_BYTES, Trust, line_of, nearest, read_tree
from memwatch.domain.errors import ConfigError
from memwatch.domain.text import inert

__all__ = ["MAX_BYTES", "load_profile", "load_settings", "named_profile", "profile_names"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

_Settings = TypeVar("_Settings", bound=Struct)


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
    raise ConfigError(f"there is no profile {inert(name, 60)!r}{nearest(name, known)}")


def profile_names() -> list[str]:
    """Return the names of all profiles, the user's and ours."""
    return sorted({path.stem for folder in profile_dirs() for path in folder.glob("*.yaml")})


def _profile(path: Path) -> Profile:
    tree = read_tree(path, may_be_empty=True)
    if tree is not None:
        check_place(tree, Profile)
    return msgspec.structs.replace(load_settings(path, Profile), file=str(path))


def load_settings(path: Path, shape: type[_Settings], trust: Trust = "any") -> _Settings:
    """Read a YAML file into a settings struct; raises ConfigError with file and line."""
    tree = read_tree(path, trust)
    if tree is None:
        raise ConfigError(f"{inert(str(path), 120)} cannot be read: No such file or directory")
    check_keys(tree.root, shape, tree.where)
    settings = converted(_completed(sections(tree.values, shape), shape), shape, tree)
    found = contradiction(settings)
    if found:
        line = line_of(tree.root, "." + found.key)
        raise ConfigError(f"{tree.where} line {line}: {found.text}")
    return settings


def _completed(values: Any, shape: type[Struct]) -> Any:
    """Add to structs by name what the file does not say of them: it changes what it names."""
    for setting in msgspec.structs.fields(shape):
        given = values.get(setting.name)
        if named_struct_of(setting.type) is None or not isinstance(given, dict):
            continue
        usual = msgspec.to_builtins(setting.default_factory())
        merged = {
            name: {**usual.get(name, {}), **one} if isinstance(one, dict) else one
            for name, one in given.items()
        }
        values = {**values, setting.name: {**usual, **merged}}
    return values
