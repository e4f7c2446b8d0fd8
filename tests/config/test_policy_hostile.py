"""Whatever a file holds: it is a policy, or refused in one line with its name."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import to_builtins

from memwatch.config.load import load_profile
from memwatch.config.policy import Policy
from memwatch.config.policy_layers import Document
from memwatch.config.policy_load import PolicyBook, load_policy, usable_policy
from memwatch.config.shape import leaves, members, named_struct_of, struct_of
from memwatch.domain.errors import ConfigError
from tests.config.layers import SECTIONED, Layers, some_layers


def names_of(hint: Any) -> set[str]:
    """Return every name that a key may have, at any depth."""
    shape = struct_of(hint) or named_struct_of(hint)
    inner = members(shape) if shape else {}
    return set(inner).union(*(names_of(member.type) for member in inner.values()))


NAMES = st.sampled_from(sorted(names_of(Document))) | st.sampled_from(["verification", "a.b", ""])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([10**40, 10**400, -1, 0, 1, 0.5, 1.0, "act", "purge", "off"])
    | st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=6)
)
WILD = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.integers(0, 3), inner, max_size=4)
    ),
    max_leaves=12,
)
USUAL = to_builtins(Policy())
NEARLY = st.dictionaries(
    st.sampled_from([key for key, _ in leaves(USUAL, Policy)]), WILD, min_size=1, max_size=3
)


@settings(max_examples=150)
@given(
    wild=st.dictionaries(NAMES, WILD, max_size=4),
    nearly=NEARLY,
    phase=st.booleans(),
    layer=st.sampled_from(["config", "run", "set", "profile"]),
)
def test_any_file_is_a_policy_or_is_refused(
    wild: dict[str, Any], nearly: dict[str, Any], phase: bool, layer: str
) -> None:
    for values in (wild, nested(nearly)):
        said = {"phases": {"x": values}} if phase else values
        body: dict[str, Any] = {"policy": said} if layer in SECTIONED else said
        body = {"name": "mine", **body} if layer == "profile" else body
        with some_layers() as layers:
            layers.write(layer, yaml.safe_dump(body))
            judge(layers, layer)


def nested(values: dict[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in values.items():
        *parents, last = key.split(".")
        inner = tree
        for part in parents:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return tree


def judge(layers: Layers, layer: str) -> None:
    said = ""
    try:
        book = layers.load()
    except ConfigError as error:
        said = str(error)
    else:
        assert isinstance(book, PolicyBook)
        assert all(note.isprintable() for note in book.notes)
    if said:
        assert said.startswith(str(layers.paths[layer]))
        assert "\n" not in said
    if said and layer != "profile":  # a profile that is wrong is none: it is refused before
        profile = load_profile("mine")
        book, why = usable_policy(profile, run_dir=layers.run_dir, run_home=layers.home)
        assert why == said
        assert (book.base, book.of("x")) == (Policy(), Policy())


@pytest.mark.parametrize(
    "number",
    ["1e999", "1e300", "9" * 19, "-" + "9" * 5000, ".inf"],
    ids=["e999", "e300", "long", "endless", "inf"],
)
@pytest.mark.parametrize("key", ["limit_bytes", "ask_s", "thresholds: {warn"])
def test_a_number_beyond_all_bounds_is_refused(key: str, number: str) -> None:
    with some_layers() as layers:
        layers.write("set", f"{key}: {number}{'}' if '{' in key else ''}\n")
        with pytest.raises(ConfigError):
            load_policy(load_profile("mine"), run_home=layers.home)
