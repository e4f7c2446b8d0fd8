"""`key=value` on a file of policy: what is set is there, what is unset is as if it never was."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.config.policy_edit import parts_of, with_values, without_keys
from memwatch.config.yaml_file import parse
from memwatch.domain.errors import ConfigError

KEYS = st.sampled_from(
    [
        "limit_bytes",
        "thresholds.warn",
        "thresholds.hard",
        "phases.verification.thresholds.warn",
        "phases.deep search.exit.dwell_s",
        'resources."tier:a.b".warn',
        "resources.disk.levels.warn.cooldown_s",
    ]
)
VALUES = st.integers(0, 9) | st.floats(0, 1) | st.booleans() | st.just("off")


def read(text: str) -> dict[str, Any]:
    return parse(text, "it", may_be_empty=True).values


def at(values: dict[str, Any], key: str) -> Any:
    for part in parts_of(key):
        values = values[part]
    return values


@given(st.dictionaries(KEYS, VALUES), st.lists(st.tuples(KEYS, VALUES), max_size=5))
def test_set_then_unset(before: dict[str, Any], changes: list[tuple[str, Any]]) -> None:
    def typed(values: dict[str, Any]) -> dict[str, str]:
        return {key: msgspec.json.encode(value).decode() for key, value in values.items()}

    start = with_values("# mine\n", "it", typed(before))
    text, wanted = start, dict(before)
    for key, value in changes:
        text = with_values(text, "it", typed({key: value}))
        wanted[key] = value
        assert {one: at(read(text), one) for one in wanted} == wanted
    added = list({key: None for key, _ in changes if key not in before})
    text = without_keys(text, "it", added)
    text = with_values(text, "it", typed(before))
    assert read(text) == read(start), "what is empty goes, too"


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("threshold.warn", "unknown key 'threshold'; did you mean 'thresholds'?"),
        ("thresholds.wran", "unknown key 'wran'; did you mean 'warn'?"),
        ("phases.x.mode", "unknown key 'mode'"),
        ("thresholds.warn.high", "thresholds.warn is one value; set it as a whole"),
        ("levels.warn.steps.0", "levels.warn.steps is one value"),
        ("", "is no key"),
        ("thresholds..warn", "is no key"),
        ('resources."a', "is no key"),
        ("\x1b[31m", "unknown key"),
    ],
)
def test_a_wrong_key_is_refused_with_the_nearest(key: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        with_values("", "it", {key: "1"})
    assert words in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_values_are_yaml() -> None:
    text = with_values("", "it", {"allow": "[pause, purge]", "thresholds": "{warn: 0.5}"})
    assert read(text) == {"allow": ["pause", "purge"], "thresholds": {"warn": 0.5}}
    for wrong in ("[pause", "a: b: c", "0.5\nmode: act", "&a 3\n"):
        with pytest.raises(ConfigError):
            with_values("", "it", {"thresholds.warn": wrong})


def test_what_is_not_set_cannot_be_unset() -> None:
    for key in ("thresholds.warn", "limit_bytes", "phases.a.thresholds.warn"):
        with pytest.raises(ConfigError, match="is not set in it"):
            without_keys("thresholds: {hard: 0.9}\n", "it", [key])
