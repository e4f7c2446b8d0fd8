"""The layers of a policy: each is a file, checked by itself, with the lines of what it says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from msgspec import Struct, field, to_builtins

from memwatch.config.policy import PhasePolicy, Policy, ResourceRule
from memwatch.config.schema import Profile
from memwatch.config.settings import Settings
from memwatch.config.shape import check_keys, converted, leaves, members, overlaid
from memwatch.config.yaml_file import Tree, Trust, UntrustedError, dump, line_of, parse, read_tree
from memwatch.domain.errors import ConfigError
from memwatch.domain.policy import Keep
from memwatch.domain.text import inert

SECTION = "policy"
"""The key under which a policy stands in a file of more than that."""

_AUTHORITY = ("mode", "allow")


class Document(Policy, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a layer may hold."""

    phases: dict[str, PhasePolicy] = field(default_factory=dict)


class Layer(NamedTuple):
    """What one file says: plain values of a `Document`, few of them."""

    tree: Tree
    below: str
    """Path in the tree under which the policy stands: `.policy`, or nothing."""
    values: dict[str, Any]

    def line(self, key: str) -> int:
        """Return the line of a dotted key, or of the deepest part of it that is there."""
        return line_of(self.tree.root, f"{self.below}.{key}")


class Origins:
    """Which layer said which key last."""

    def __init__(self, layers: Iterable[Layer]) -> None:
        self._layer: dict[str, tuple[int, Layer]] = {}
        for place, layer in enumerate(layers):
            for key, _ in leaves(layer.values, Document):
                self._layer[key] = (place, layer)

    def said(self, key: str) -> bool:
        """Return whether a file says this key."""
        return key in self._layer

    def source(self, key: str) -> str:
        """Return where a value comes from."""
        if key not in self._layer:
            return "default"
        layer = self._layer[key][1]
        return f"{layer.tree.where} line {layer.line(key)}"

    def last(self, keys: Iterable[str]) -> tuple[str, int] | None:
        """Return file and line of the one of some keys that the highest layer said.

        A key may lead into a list: `levels.warn.steps[1].op`.
        """
        found = [
            (*self._layer[head], key)
            for key in keys
            for head in (key, key.partition("[")[0])
            if head in self._layer
        ]
        if not found:
            return None
        _, layer, key = max(found, key=lambda one: one[0])
        return layer.tree.where, layer.line(key)


def completed(
    under: Mapping[str, Any], said: Mapping[str, Any], profile: Profile
) -> dict[str, Any]:
    """Return the plain values of a whole policy: `under`, changed by what was said.

    A resource begins with its own defaults, not with those of memory; what is kept of a tier begins
    with what the profile keeps.
    """
    usual: dict[str, Any] = dict(under)
    for member in ("resources", "retention"):
        names = said.get(member)
        if isinstance(names, Mapping):
            usual[member] = {
                **{one: _usual(member, one, profile) for one in names},
                **under[member],
            }
    return overlaid(usual, said, Policy)


def file_layer(path: Path, trust: Trust, shape: type[Struct] | None = None) -> Layer | None:
    """Read a layer; None when there is no such file. Raises ConfigError.

    `shape` is that of a file which holds a policy as one section among others.
    """
    tree = read_tree(path, trust, may_be_empty=True)
    return None if tree is None else _layer(tree, shape)


def text_layer(text: str, where: str) -> Layer:
    """Return the layer that a text would be; raises ConfigError."""
    return _layer(parse(text, where, may_be_empty=True), None)


def any_layer(path: Path) -> Layer:
    """Read a file that a person named: a policy, or settings of which it is one section."""
    tree = read_tree(path, may_be_empty=True)
    if tree is None:
        raise ConfigError(f"{inert(str(path), 120)} cannot be read: No such file or directory")
    return _layer(tree, Settings if tree.values.keys() & members(Settings).keys() else None)


def profile_layer(profile: Profile) -> Layer | None:
    """Return what a profile says of the policy; read again where it comes from a file."""
    tree = read_tree(Path(profile.file)) if profile.file else None
    if tree is None:
        tree = parse(dump({SECTION: profile.policy}), f"profile {profile.name}")
        return _layer(tree, None, SECTION)
    return _layer(tree, Profile)


def run_layer(path: Path, notes: list[str]) -> Layer | None:
    """Read a run's own settings; what would raise the engine's authority is left out and noted."""
    try:
        layer = file_layer(path, "run", Settings)
    except UntrustedError as error:
        notes.append(f"{error}; it is not followed")
        return None
    if layer is None:
        return None

    def note(line: int, what: str) -> None:
        why = "a run's own settings cannot widen what is done or who is told"
        notes.append(f"{layer.tree.where} line {line}: {what} is not followed: {why}")

    for name in layer.tree.values.keys() - {SECTION}:
        note(line_of(layer.tree.root, f".{name}"), name)
    values = dict(layer.values)
    for name in _AUTHORITY:
        if name in values:
            note(layer.line(name), name)
            del values[name]
    for key in _ends_the_run(values):
        note(layer.line(key), "end_run")
    return layer._replace(values=_without_end_run(values))


def _usual(member: str, name: str, profile: Profile) -> Any:
    if member == "resources":
        return to_builtins(ResourceRule())
    return to_builtins(profile.retention.get(name, Keep()))


def _layer(tree: Tree, shape: type[Struct] | None, section: str = "") -> Layer:
    node: yaml.Node = tree.root
    values: Any = tree.values
    below = ""
    if shape is not None:
        check_place(tree, shape)
        check_keys(node, shape, tree.where)
    elif not section and SECTION in values:
        line = line_of(node, f".{SECTION}")
        text = f"this file is a policy as a whole; write what is under {SECTION!r} without it"
        raise ConfigError(f"{tree.where} line {line}: {text}")
    if shape is not None or section:
        below = f".{SECTION}"
        node = next((v for k, v in tree.root.value if k.value == SECTION), node)
        values = values.get(SECTION)
    if values is None:
        return Layer(tree, below, {})
    if not isinstance(values, dict):
        line = line_of(tree.root, below)
        raise ConfigError(f"{tree.where} line {line}: a policy is lines of `key: value`")
    _check_phases(tree, below, values)
    check_keys(node, Document, tree.where)
    layer = Layer(tree, below, values)
    _check_values(layer)
    return layer


def check_place(tree: Tree, shape: type[Struct]) -> None:
    """Say where a setting of the policy belongs that stands at the top of another file."""
    known = members(shape)
    for name in tree.values:
        if name not in known and name in members(Document):
            line = line_of(tree.root, f".{name}")
            text = f"{name!r} is a setting of the policy; write it under `{SECTION}:`"
            raise ConfigError(f"{tree.where} line {line}: {text}")


def _check_phases(tree: Tree, below: str, values: Mapping[str, Any]) -> None:
    phases = values.get("phases")
    for name, said in phases.items() if isinstance(phases, dict) else ():
        for key in (*_AUTHORITY, "phases"):
            if isinstance(said, dict) and key in said:
                line = line_of(tree.root, f"{below}.phases.{name}.{key}")
                text = f"a phase has no {key!r} of its own; set it for the whole run"
                raise ConfigError(f"{tree.where} line {line}: {text}")


def _check_values(layer: Layer) -> None:
    """Refuse a value of a wrong type with its own line, before it is mixed with others."""
    profile = Profile(name="")
    usual = to_builtins(Policy())
    said = dict(layer.values)
    phases = said.pop("phases", None) or {}
    converted(completed(usual, said, profile), Policy, layer.tree, layer.below)
    if not isinstance(phases, dict) or not all(isinstance(one, str) for one in phases):
        line = layer.line("phases")
        raise ConfigError(f"{layer.tree.where} line {line}: phases are lines of `name: …`")
    for name, one in phases.items():
        if not isinstance(one, dict | None):
            line = layer.line(f"phases.{name}")
            raise ConfigError(f"{layer.tree.where} line {line}: a phase is lines of `key: value`")
        below = f"{layer.below}.phases.{name}"
        converted(completed(usual, one or {}, profile), Policy, layer.tree, below)


def _ends_the_run(values: Mapping[str, Any]) -> list[str]:
    """Return the keys of lists of steps that would end the run."""
    return [
        key
        for key, steps in leaves(values, Document)
        if isinstance(steps, list) and any(_is_end(step) for step in steps)
    ]


def _is_end(step: Any) -> bool:
    return isinstance(step, dict) and step.get("op") == "end_run"


def _without_end_run(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_end_run(one) for name, one in value.items()}
    if isinstance(value, list):
        return [one for one in value if not _is_end(one)]
    return value
