"""All files that may hold a layer of a policy, in a folder of their own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memwatch.config.load import load_profile
from memwatch.config.policy_load import PolicyBook, load_policy
from memwatch.domain.errors import ConfigError

ORDER = ("profile", "config", "policies", "run", "set", "extra")
"""Lowest first."""
SECTIONED = ("profile", "config", "run")
"""Files in which the policy is one section."""


class Layers:
    """Where they lie."""

    def __init__(self, folder: Path) -> None:
        config = folder / "config" / "memwatch"
        self.home = folder / "home" / "runs" / "night-7"
        self.run_dir = folder / "night-7"
        self.paths = {
            "profile": config / "profiles" / "mine.yaml",
            "config": config / "config.yaml",
            "policies": config / "policies" / "mine.yaml",
            "run": self.run_dir / "memwatch.yaml",
            "set": self.home / "policy.yaml",
            "extra": folder / "extra.yaml",
        }
        for path in self.paths.values():
            path.parent.mkdir(parents=True, exist_ok=True)
        self.paths["profile"].write_text("name: mine\n")

    def write(self, layer: str, text: str) -> None:
        self.paths[layer].write_text(text)

    def load(self, **options: Any) -> PolicyBook:
        extra = self.paths["extra"]
        return load_policy(
            load_profile("mine"),
            run_dir=self.run_dir,
            run_home=self.home,
            extra=extra if extra.exists() else None,
            **options,
        )

    def refusal(self, layer: str, text: str, **options: Any) -> str:
        """Return what is said of a file after its name."""
        self.write(layer, text)
        with pytest.raises(ConfigError) as caught:
            self.load(**options)
        said = str(caught.value)
        assert "\n" not in said
        assert said.startswith(f"{self.paths[layer]} "), said
        return said.removeprefix(f"{self.paths[layer]} ")


@contextmanager
def some_layers() -> Iterator[Layers]:
    """Make a folder for one example of a property."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", f"{folder}/config")
        yield Layers(Path(folder))


def written(values: Mapping[str, Any], layer: str = "extra") -> tuple[str, dict[str, int]]:
    """Return dotted keys as a file of YAML, and the line of each key."""
    tree: dict[str, Any] = {}
    for key, value in values.items():
        *parents, last = key.split(".")
        inner = tree
        for part in parents:
            inner = inner.setdefault(part, {})
        inner[last] = value
    lines = ["name: mine"] if layer == "profile" else []
    lines += ["# only what it changes"]
    lines += ["policy:"] if layer in SECTIONED else []
    places: dict[str, int] = {}
    _put(tree, "  " if layer in SECTIONED else "", "", lines, places)
    return "\n".join(lines) + "\n", places


def _put(
    tree: Mapping[str, Any], indent: str, below: str, lines: list[str], places: dict[str, int]
) -> None:
    for name, value in tree.items():
        places[below + name] = len(lines) + 1
        if isinstance(value, dict):
            lines.append(f"{indent}{name}:")
            _put(value, indent + "  ", f"{below}{name}.", lines, places)
        else:
            lines.append(f"{indent}{name}: {msgspec.json.encode(value).decode()}")
