"""Differences: there and back on any JSON, small where the change is small, strict when applied."""

from __future__ import annotations

import base64
import copy
import json
import random
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memwatch.wal.diff import DiffError, Op, apply, difference

_encode = msgspec.json.Encoder(order="sorted").encode

keys = st.sampled_from(["", "a", "b", "~", "/", "~1", "a/b", "0", "-", "ü", "\x00"]) | st.text()
scalars = (
    st.sampled_from([None, False, True, 0, 1, 0.0, -0.0, 1.0, "", "0", "1"])
    | st.integers(-(1 << 63), 1 << 63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.text(min_size=50)
    | st.binary(max_size=80).map(lambda data: base64.b64encode(data).decode())
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=20,
)


def changed(before: Any) -> st.SearchStrategy[Any]:
    """Return values that are like `before`: one, or a few, of its parts replaced, added, gone."""
    options = [values, st.just(copy.deepcopy(before))]
    if isinstance(before, dict):
        options += [st.fixed_dictionaries({key: changed(part) for key, part in before.items()})]
        options += [st.dictionaries(keys, values, max_size=2).map(lambda more: before | more)]
        options += [st.sets(st.sampled_from(list(before))).map(lambda out: less(before, out))] * (
            1 if before else 0
        )
    elif isinstance(before, list):
        options += [st.tuples(*map(changed, before)).map(list), st.permutations(before)]
        cut = st.integers(0, len(before))
        options += [st.builds(spliced, st.just(before), cut, cut, st.lists(values, max_size=3))]
    elif isinstance(before, str):
        cut = st.integers(0, len(before))
        options += [st.builds(spliced, st.just(before), cut, cut, st.text(max_size=5))]
    elif isinstance(before, (bool, int, float)):
        options += [st.just(bool(before)), st.just(float(before)), st.just(-before)]
    return st.one_of(options)


def less(before: dict[str, Any], out: set[str]) -> dict[str, Any]:
    return {key: part for key, part in before.items() if key not in out}


def spliced(before: Any, start: int, end: int, middle: Any) -> Any:
    start, end = sorted((start, end))
    return before[:start] + middle + before[end:]


pairs = st.tuples(values, values) | values.flatmap(
    lambda before: st.tuples(st.just(before), changed(before))
)


def check(before: Any, after: Any) -> list[Op]:
    """Hold that the difference leads from one to the other, changes neither, and is JSON."""
    text_before, text_after = _encode(before), _encode(after)
    ops = difference(before, after)
    made = apply(before, msgspec.json.decode(_encode(ops)))
    assert _encode(made) == text_after
    assert _encode(before) == text_before
    assert _encode(after) == text_after
    assert bool(ops) == (text_before != text_after)
    return ops


@settings(max_examples=400)
@given(pairs)
def test_applying_the_difference_gives_the_other_value(pair: tuple[Any, Any]) -> None:
    ops = check(*pair)
    whole = [{"op": "replace", "path": "", "value": pair[1]}]
    assert len(ops) < 2 or len(_encode(ops)) <= len(_encode(whole))


def padded(value: Any) -> Any:
    """Return a value whose containers are so long that no difference replaces one whole."""
    if isinstance(value, dict):
        return {name: padded(part) for name, part in value.items()} | {"pad": "p" * 2_000}
    return ["p" * 2_000, *map(padded, value)] if isinstance(value, list) else value


@settings(max_examples=400)
@given(pairs)
def test_every_kind_of_change_applies_where_it_is(pair: tuple[Any, Any]) -> None:
    before, after = map(padded, pair)
    if type(before) is type(after) and isinstance(before, (dict, list)):
        assert all(op["path"] for op in check(before, after))


@given(values, st.lists(values, max_size=4))
def test_differences_of_several_steps_apply_as_one_list(first: Any, more: list[Any]) -> None:
    ops: list[Op] = []
    last = first
    for value in more:
        ops += difference(last, value)
        last = value
    frozen = copy.deepcopy(ops)
    assert _encode(apply(first, ops)) == _encode(last)
    assert ops == frozen


@pytest.mark.parametrize(
    ("before", "after"),
    [(1, 1.0), (1, True), (0.0, -0.0), (0, False), ("1", 1), (None, 0), ([], {}), ("", None)],
)
def test_equal_for_python_is_not_equal_for_json(before: Any, after: Any) -> None:
    assert check(before, after) == [{"op": "replace", "path": "", "value": after}]
    around = [call(1), call(2)]
    ops = check({"a": [*around, before, *around]}, {"a": [*around, after, *around]})
    assert ops == [{"op": "replace", "path": "/a/2", "value": after}]
    check([[before]] * 5, [[before]] * 4 + [[after]])


def test_equal_values_have_no_difference() -> None:
    value = {"a": [1, {"b": None}], "c": "x" * 100}
    assert difference(value, copy.deepcopy(value)) == []


def call(number: int, size: int = 200) -> dict[str, Any]:
    text = "".join(random.Random(number).choices("abcdef \n", k=size))
    return {"id": number, "tool": "bash", "ok": True, "ms": number / 7, "out": text}


class TestSmall:
    """Lengths in bytes of the difference as it stands in a record."""

    def length(self, before: Any, after: Any) -> int:
        return len(_encode(check(before, after)))

    def test_an_item_more(self) -> None:
        before = [call(number) for number in range(500)]
        for after in (
            [*before, call(500)],
            [call(500), *before],
            [*before[:9], call(500), *before[9:]],
        ):
            assert self.length(before, after) <= len(_encode(call(500))) + 60
        deep_before, deep_after = {"state": {"calls": before}}, {"state": {"calls": after}}
        assert self.length(deep_before, deep_after) <= len(_encode(call(500))) + 80

    def test_the_last_items_slide(self) -> None:
        before = [call(number) for number in range(200)]
        after = [*before[1:], call(200)]
        assert self.length(before, after) <= len(_encode(call(200))) + 100

    def test_an_item_changed_in_place_while_the_window_slides(self) -> None:
        before = [call(number) for number in range(200)]
        after = [*before[1:-1], before[-1] | {"ok": False}, call(200)]
        assert self.length(before, after) <= 2 * len(_encode(call(200))) + 150

    def test_equal_items_that_slide(self) -> None:
        before = [call(number % 3) for number in range(60)]
        assert self.length(before, [*before[1:], call(60)]) <= len(_encode(call(60))) + 100

    def test_one_character_of_a_long_text(self) -> None:
        before = "".join(random.Random(1).choices("abc é\n", k=100_000))
        for at in (0, 50_000, 99_999):
            assert self.length(before, before[:at] + "Z" + before[at + 1 :]) <= 80
            assert self.length({"a": [before]}, {"a": [before[:at] + before[at + 1 :]]}) <= 80

    def test_a_text_appended_to(self) -> None:
        before = "line\n" * 20_000
        assert self.length(before, before + "one more line\n") <= 100

    def test_bytes_appended_to(self) -> None:
        data = random.Random(2).randbytes(90_001)
        before, after = (base64.b64encode(part).decode() for part in (data, data + b"more"))
        assert self.length(before, after) <= 80

    def test_a_member_of_many(self) -> None:
        before = {f"metric {number}": {"mean": number / 3} for number in range(1_000)}
        after = before | {"metric 7": {"mean": 0.5}}
        assert self.length(before, after) <= 70

    def test_two_items_that_change_places(self) -> None:
        before = [call(number) for number in range(100)]
        after = [before[1], before[0], *before[2:]]
        assert self.length(before, after) <= 2 * len(_encode(call(0))) + 100

    def test_all_new_is_the_value_itself(self) -> None:
        before, after = list(range(1_000)), list(range(5_000, 6_000))
        assert check(before, after) == [{"op": "replace", "path": "", "value": after}]


def test_too_deep_for_the_stack_is_the_value_itself() -> None:
    before = after = 0
    for _ in range(900):
        before, after = {"a": before, "b": 1}, {"a": after, "b": 2}  # type: ignore[assignment]
    assert difference(before, after) == [{"op": "replace", "path": "", "value": after}]


VALUE: dict[str, Any] = {"a": [1, 2, [3]], "t": "text", "": {"~/": 0}}


@pytest.mark.parametrize(
    ("op", "result"),
    [
        ({"op": "add", "path": "/a/-", "value": 4}, VALUE | {"a": [1, 2, [3], 4]}),
        ({"op": "add", "path": "/a/3", "value": 4}, VALUE | {"a": [1, 2, [3], 4]}),
        ({"op": "add", "path": "/a/0", "value": 4}, VALUE | {"a": [4, 1, 2, [3]]}),
        ({"op": "add", "path": "/a", "value": 4}, VALUE | {"a": 4}),
        ({"op": "add", "path": "", "value": None}, None),
        ({"op": "replace", "path": "", "value": []}, []),
        ({"op": "replace", "path": "//~0~1", "value": 1}, VALUE | {"": {"~/": 1}}),
        ({"op": "remove", "path": "/"}, less(VALUE, {""})),
        ({"op": "splice", "path": "/t", "at": 4, "del": 0, "text": "s"}, VALUE | {"t": "texts"}),
        ({"op": "splice", "path": "/t", "at": 0, "del": 4, "text": ""}, VALUE | {"t": ""}),
    ],
)
def test_operations_of_the_rfc(op: Op, result: Any) -> None:
    frozen = copy.deepcopy(VALUE)
    assert apply(VALUE, [op]) == result
    assert frozen == VALUE


HOSTILE: list[Any] = [
    None,
    3,
    "add",
    [],
    {},
    {"op": "add", "value": 1},
    {"op": "add", "path": None, "value": 1},
    {"op": "add", "path": ["a"], "value": 1},
    {"op": "add", "path": "a", "value": 1},
    {"op": "add", "path": "/a/0"},
    {"op": "replace", "path": "/a"},
    {"op": "move", "path": "/a", "from": "/t"},
    {"op": ["add"], "path": "/a", "value": 1},
    {"path": "/a", "value": 1},
    {"op": "remove", "path": ""},
    {"op": "remove", "path": "/b"},
    {"op": "remove", "path": "/a/3"},
    {"op": "remove", "path": "/a/-"},
    {"op": "replace", "path": "/b", "value": 1},
    {"op": "replace", "path": "/t/0", "value": 1},
    {"op": "add", "path": "/t/0", "value": 1},
    {"op": "add", "path": "/b/c", "value": 1},
    {"op": "add", "path": "/a/-/0", "value": 1},
    {"op": "remove", "path": "/" * 100_000},
    *(
        {"op": name, "path": f"/a/{index}", "value": 1}
        for name in ("add", "replace", "remove")
        for index in (
            "-1",
            "4",
            "00",
            "01",
            "+1",
            " 1",
            "1.0",
            "1e0",
            "²",
            "١",
            "9" * 5000,
            "",
            "~",
        )
    ),
    *(
        {"op": "splice", "path": "/t", "at": at, "del": count, "text": text}
        for at, count, text in [
            (-1, 0, ""),
            (0, -1, ""),
            (5, 0, ""),
            (0, 5, ""),
            (1 << 70, 0, ""),
            (0, 1 << 70, ""),
            (True, 0, ""),
            (0, False, ""),
            (0.0, 0, ""),
            (None, 0, ""),
            ("0", 0, ""),
            (0, 0, None),
            (0, 0, b""),
            (0, 0, 3),
        ]
    ),
    {"op": "splice", "path": "/t"},
    {"op": "splice", "path": "/a", "at": 0, "del": 0, "text": ""},
    {"op": "splice", "path": "/x", "at": 0, "del": 0, "text": ""},
    {"op": "splice", "path": "", "at": 0, "del": 0, "text": ""},
]


@pytest.mark.parametrize("op", HOSTILE, ids=lambda op: json.dumps(op, default=str)[:60])
def test_what_is_no_operation_on_this_value_is_refused(op: Any) -> None:
    frozen = copy.deepcopy(VALUE)
    good = {"op": "replace", "path": "/a/2/0", "value": 5}
    with pytest.raises(DiffError) as caught:
        apply(VALUE, [good, op])
    assert len(str(caught.value)) < 200
    assert frozen == VALUE


@pytest.mark.parametrize("ops", [None, {}, "[]", (), 3])
def test_a_difference_is_a_list(ops: Any) -> None:
    with pytest.raises(DiffError):
        apply(VALUE, ops)


any_op = st.fixed_dictionaries(
    {},
    optional={
        "op": st.sampled_from(["add", "remove", "replace", "splice"]) | scalars,
        "path": st.sampled_from(["", "/", "/a", "/a/0", "/a/2/0", "/a/-", "/t", "//~0~1"]) | values,
        "value": values,
        "at": st.integers(-2, 6) | values,
        "del": st.integers(-2, 6) | values,
        "text": values,
    },
)


@settings(max_examples=300)
@given(st.lists(any_op | values, max_size=5))
def test_any_operations_give_a_value_or_an_error_and_change_nothing(ops: list[Any]) -> None:
    frozen, frozen_ops = copy.deepcopy(VALUE), copy.deepcopy(ops)
    with suppress(DiffError):
        apply(VALUE, ops)
    assert frozen == VALUE
    assert frozen_ops == ops
