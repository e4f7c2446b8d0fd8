"""Scalars are read as YAML 1.2 reads them: what looks like a word is one."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memwatch.config.yaml_file import dump, parse


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(
            (word, word)
            for word in ("off", "on", "yes", "no", "Off", "NO", "y", "23:00", "1:30:00")
        ),
        *((word, word) for word in ("2026-07-31", "0x1f", "1.2.3", "<<", "=", "e5", ".", "1_a")),
        ("true", True),
        ("False", False),
        ("", None),
        ("~", None),
        ("null", None),
        ("0", 0),
        ("010", 10),
        ("-7", -7),
        ("50_000_000", 50_000_000),
        ("50e6", 50_000_000),
        ("5e-1", 0.5),
        ("1.", 1.0),
        (".5", 0.5),
        ("1.5", 1.5),
    ],
)
def test_a_scalar(text: str, value: object) -> None:
    found = parse(f"a: {text}\n", "it").values["a"]
    assert found == value
    assert type(found) is type(value)


TEXT = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers(-(10**15), 10**15) | TEXT
PLAIN = st.recursive(
    SCALARS | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(TEXT, PLAIN, max_size=4))
@example({"0E0": "1e5"})
def test_what_is_dumped_is_read_back(values: dict[str, object]) -> None:
    text = dump(values)
    assert parse(text, "it", may_be_empty=True).values == values


def test_a_text_without_lines_may_be_empty() -> None:
    assert parse("# nothing\n", "it", may_be_empty=True).values == {}
