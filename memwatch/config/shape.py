"""Plain values -> structs: an unknown key is refused with the nearest name, a value with its line.

Maps merge by key and lists replace, by the types of the struct: see `overlaid`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec
import yaml
from msgspec import Struct
from msgspec.structs import FieldInfo

from memwatch.config.yaml_file import Tree, line_of, nearest
from memwatch.domain.errors import ConfigError
from memwatch.domain.text import inert

_TYPES = re.compile(r"`((?:float|int|str|bool|array|object|null)(?: \| [a-z]+)*)`")
_AT = re.compile(r" - at `\$(.*)`$")
_WORDS = {
    "float": "a number",
    "int": "a whole number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "lines of `key: value`",
}
_Settings = TypeVar("_Settings", bound=Struct)


def members(shape: type[Struct]) -> dict[str, FieldInfo]:
    """Return the settings of a struct by their name in a file; one like `<this>` is none."""
    found = {member.encode_name: member for member in msgspec.structs.fields(shape)}
    return {name: member for name, member in found.items() if not name.startswith("<")}


def struct_of(hint: Any) -> type[Struct] | None:
    """Return the struct that a type is, or may be besides None."""
    if get_origin(hint) in (Union, UnionType):
        inner = [one for one in get_args(hint) if one is not NoneType]
        hint = inner[0] if len(inner) == 1 else None
    return hint if isinstance(hint, type) and issubclass(hint, Struct) else None


def named_struct_of(hint: Any) -> type[Struct] | None:
    """Return the struct of a setting that holds one for each of several names."""
    return struct_of(get_args(hint)[1]) if get_origin(hint) is dict else None


def numbers_of(
    value: Any, unseen: Collection[str] = (), path: str = ""
) -> Iterator[tuple[str, float]]:
    """Walk settings: every number with its key; members called as in `unseen` are left out."""
    if isinstance(value, Struct):
        for member in value.__struct_fields__:
            if member not in unseen:
                inner = f"{path}.{member}" if path else member
                yield from numbers_of(getattr(value, member), unseen, inner)
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from numbers_of(item, unseen, f"{path}[{index}]")
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from numbers_of(item, unseen, f"{path}.{name}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value


def check_keys(node: yaml.Node, hint: Any, where: str) -> None:
    """Refuse keys that a type does not have; raises ConfigError with line and nearest name."""
    shape, named = struct_of(hint), named_struct_of(hint)
    if isinstance(node, yaml.SequenceNode) and get_origin(hint) is tuple:
        for item in node.value:
            check_keys(item, get_args(hint)[0], where)
    if not isinstance(node, yaml.MappingNode):
        return
    known = members(shape) if shape else {}
    for key, value in node.value:
        name = key.value if isinstance(key, yaml.ScalarNode) else "?"
        if shape and name not in known:
            said = f"{where} line {key.start_mark.line + 1}: unknown key {inert(name, 40)!r}"
            raise ConfigError(said + nearest(name, list(known)))
        if shape or named:
            check_keys(value, known[name].type if shape else named, where)


def converted(values: Any, shape: type[_Settings], tree: Tree, below: str = "") -> _Settings:
    """Return values as a struct; raises ConfigError that names the line of the wrong one.

    `below` is the path in the tree under which the values stand.
    """
    try:
        return msgspec.convert(values, shape)
    except msgspec.ValidationError as error:
        found = _AT.search(str(error))
        place = _exact(values, shape, found[1]) if found else ""
        line = line_of(tree.root, below + place)
        said = _worded(_AT.sub("", str(error)), _hint_at(shape, place))
        key = (below + place).lstrip(".")
        raise ConfigError(
            f"{tree.where} line {line}: {inert(key, 80)}{': ' * bool(key)}{said}"
        ) from None


def sections(values: Mapping[str, Any], shape: type[Struct]) -> dict[str, Any]:
    """Return plain values of a file without sections that have nothing under them."""
    known = members(shape)

    def is_section(name: str) -> bool:
        hint = known[name].type
        return struct_of(hint) is hint or get_origin(hint) is dict

    return {name: one for name, one in values.items() if one is not None or not is_section(name)}


def overlaid(
    under: Mapping[str, Any], over: Mapping[str, Any], shape: type[Struct]
) -> dict[str, Any]:
    """Return plain values of a struct, changed by what `over` says: lists and numbers replace."""
    known = members(shape)
    merged = dict(under)
    for name, value in over.items():
        hint = known[name].type if name in known else None
        inner, named = struct_of(hint), named_struct_of(hint)
        before = merged.get(name)
        if value is None and (named or inner is hint):
            continue  # a key with nothing under it says nothing
        if not isinstance(value, Mapping) or not isinstance(before, Mapping | NoneType):
            merged[name] = value
        elif inner is not None:
            merged[name] = overlaid(before or {}, value, inner)
        elif named is not None:
            merged[name] = {**(before or {})}
            for one, said in value.items():
                old = (before or {}).get(one, {})
                if said is None:
                    continue
                whole = isinstance(said, Mapping) and isinstance(old, Mapping)
                merged[name][one] = overlaid(old, said, named) if whole else said
        else:
            merged[name] = value
    return merged


def leaves(
    values: Mapping[str, Any], shape: type[Struct], below: str = ""
) -> Iterator[tuple[str, Any]]:
    """Walk plain values of a struct: each setting by its dotted key; a list is one setting."""
    known = members(shape)
    for name, value in values.items():
        hint = known[name].type
        inner, named = struct_of(hint), named_struct_of(hint)
        if inner is not None and isinstance(value, Mapping):
            yield from leaves(value, inner, f"{below}{name}.")
        elif named is not None and isinstance(value, Mapping):
            for one, said in value.items():
                yield from leaves(said or {}, named, f"{below}{name}.{one}.")
        elif value is not None or not (named or inner is hint):
            yield f"{below}{name}", value


def _exact(values: Any, shape: type[Struct], place: str) -> str:
    """Return the place of a wrong value; msgspec says `[...]` for the key of a map."""
    head, dots, tail = place.partition("[...]")
    if not dots:
        return place
    chain = head.lstrip(".").split(".")
    entries = values
    for key in chain:
        entries = entries[key]
    for name, one in entries.items():
        alone: Any = {name: one}
        for key in reversed(chain):
            alone = {key: alone}
        try:
            msgspec.convert({**values, **alone}, shape)
        except msgspec.ValidationError:
            return f"{head}.{name}{tail}"
    return place


def _hint_at(shape: type[Struct], place: str) -> Any:
    """Return the type of what stands at a place, or None."""
    hint: Any = shape
    for step in re.findall(r"\.([^.\[]+)|\[", place):
        inner, named = struct_of(hint), named_struct_of(hint)
        if inner is not None and step in members(inner):
            hint = members(inner)[step].type
        elif named is not None:
            hint = named
        else:
            hint = get_args(hint)[0] if get_origin(hint) is tuple else None
    return hint


def _worded(said: str, hint: Any) -> str:
    """Return what msgspec says in words for somebody who writes a file of settings."""
    if said.startswith("Invalid enum value"):
        choices = [hint, *get_args(hint)]
        literal = next((one for one in choices if get_origin(one) is Literal), None)
        name = said.removeprefix("Invalid enum value ").strip("'")
        words = list(get_args(literal)) if literal is not None else []
        close = nearest(name, words) if words else ""
        return inert(
            f"{name!r} is none of {', '.join(words)}{close if 'mean' in close else ''}", 160
        )

    def plain(found: re.Match[str]) -> str:
        return " or ".join(_WORDS.get(word, word) for word in found[1].split(" | "))

    return inert(_TYPES.sub(plain, said), 160)
