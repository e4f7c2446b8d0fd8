"""Values come back equal, or are refused with the place named."""

from __future__ import annotations

import enum
import json
import math
import sys
from collections import OrderedDict, namedtuple
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.agent.memory.values import MAX_DEPTH, Types, digest, plain
from memwatch.domain.errors import DamagedError, UnkeepableError
from tests.wal.strategies import values

PLAIN = Types()


class Shot(msgspec.Struct):
    pixels: bytes
    tags: tuple[str, ...] = ()


class Result(msgspec.Struct):
    loss: float
    note: str | None = None
    by_step: dict[int, float] = {}
    shots: list[Shot] = []


@dataclass
class Attempt:
    model: str
    weights: bytes
    seen: set[str] = field(default_factory=set)
    anything: Any = None


class Level(enum.IntEnum):
    LOW = 1


class Colour(enum.StrEnum):
    RED = "red"


class Metres(float):
    pass


class ByIdentity(msgspec.Struct, eq=False):
    x: int = 0


class Plainest:
    pass


TYPES = Types([Shot, Result, Attempt])
Pair = namedtuple("Pair", "a b")


def back(types: Types, value: Any) -> Any:
    """Return what is read back; the text of that must be the same text again."""
    encoded = types.encode(value)
    again = types.decode(encoded.type, encoded.canonical)
    assert types.encode(again) == encoded
    return again


@given(values)
def test_plain_values_come_back_equal_and_of_the_same_types(value: Any) -> None:
    encoded = PLAIN.encode(value)
    assert encoded.type == ""
    assert repr(sort(back(PLAIN, value))) == repr(sort(value))
    assert json.loads(encoded.canonical) == value
    assert sort(plain(encoded.canonical)) == sort(value)


def sort(value: Any) -> Any:
    """Return a value whose members are in one order at every depth."""
    if isinstance(value, dict):
        return {name: sort(value[name]) for name in sorted(value)}
    return [sort(item) for item in value] if isinstance(value, list) else value


@given(st.dictionaries(st.text(), values, min_size=2))
def test_the_order_of_members_does_not_matter(members: dict[str, Any]) -> None:
    turned = dict(reversed(members.items()))
    assert PLAIN.encode(turned) == PLAIN.encode(members)


@given(st.binary())
def test_bytes_come_back(data: bytes) -> None:
    assert back(PLAIN, data) == data
    assert PLAIN.encode(data).type == "bytes"
    assert PLAIN.decode("bytes", PLAIN.encode(bytearray(data)).canonical) == data


shots = st.builds(Shot, st.binary(), st.lists(st.text()).map(tuple))
finite = st.floats(allow_nan=False, allow_infinity=False)
results = st.builds(
    Result,
    finite,
    st.none() | st.text(),
    st.dictionaries(st.integers(), finite),
    st.lists(shots, max_size=3),
)
attempts = st.builds(Attempt, st.text(), st.binary(), st.sets(st.text()), values)


@given(results | attempts)
def test_objects_of_the_runs_classes_come_back_equal(value: Any) -> None:
    again = back(TYPES, value)
    assert type(again) is type(value)
    assert again == value
    assert TYPES.encode(value).type == type(value).__name__


def test_equal_objects_have_one_text() -> None:
    assert TYPES.encode(Result(1)) == TYPES.encode(Result(1.0))
    assert TYPES.encode(Attempt("m", b"", {"a", "b"})) == TYPES.encode(
        Attempt("m", b"", {"b", "a"})
    )


def test_a_class_of_the_standard_library_may_be_listed() -> None:
    types = Types([datetime, frozenset])
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    assert back(types, moment) == moment
    assert back(types, frozenset({1, 2})) == {1, 2}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, {"a": (2, [3])}), [1, {"a": [2, [3]]}]),
        ({"a": Level.LOW, "b": (Level.LOW,)}, {"a": 1, "b": [1]}),
        ({Colour.RED: (Colour.RED,)}, {"red": ["red"]}),
        (OrderedDict(b=1, a=()), {"a": [], "b": 1}),
        ({"height": Metres(1.5)}, {"height": 1.5}),
        ([True, 1, 1.0, -0.0], [True, 1, 1.0, -0.0]),
        ([-(1 << 63), (1 << 64) - 1], [-(1 << 63), (1 << 64) - 1]),
        ("12345678901234567890123", "12345678901234567890123"),
    ],
)
def test_what_is_equal_comes_back_as_plain_types(value: Any, expected: Any) -> None:
    again = back(PLAIN, value)
    assert repr(again) == repr(expected)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (math.nan, "$ is nan, which JSON cannot hold"),
        ({"loss": math.nan}, "$.loss is nan, which JSON cannot hold"),
        ({"a": [0, -math.inf]}, "$.a[1] is -inf, which JSON cannot hold"),
        ({"a": [0, 1, 2, b"x"]}, "$.a[3] holds bytes inside a plain value: list its class"),
        ({"a b": {"": {1, 2}}}, '$["a b"][""] is of class set: put plain values'),
        ({"\x1b[2J": {1}}, '$["\\u001b[2J"] is of class set'),
        ({"p": Pair(1, 2)}, "$.p is of class Pair"),
        (Shot(b""), "$ is of class Shot: put plain values, or an object of a class listed in"),
        ([Plainest()], "$[0] is of class Plainest"),
        ({"r": msgspec.Raw(b"{}")}, "$.r is of class Raw"),
        ({"m": memoryview(b"x")}, "$.m is of class memoryview"),
        ({"a": {3: 1}}, "$.a has the key 3, which is not text"),
        ({None: 1}, "$ has the key None, which is not text"),
        ({"a": "\ud800"}, "$.a holds half of a surrogate pair"),
        ("\ud800", "$ holds half of a surrogate pair"),
        ({"\udfff": 1}, "$ holds half of a surrogate pair"),
        ({"n": 1 << 64}, "$.n is an integer beyond 64 bits"),
        ([-(1 << 63) - 1], "$[0] is an integer beyond 64 bits"),
        ({"n": 10**5000}, "$.n is an integer beyond 64 bits"),
        (TYPES, "$ is of class Types"),
    ],
)
def test_what_would_not_come_back_is_refused_at_its_place(value: Any, sentence: str) -> None:
    with pytest.raises(UnkeepableError) as caught:
        PLAIN.encode(value)
    assert str(caught.value).startswith(sentence)
    assert isinstance(caught.value, TypeError)


def test_a_long_key_is_cut_in_the_sentence() -> None:
    with pytest.raises(UnkeepableError) as caught:
        PLAIN.encode({"k" * 100_000: {1}, 1: 2})
    assert len(str(caught.value)) < 300


def nested(depth: int, make: Any = lambda inner: [inner]) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = make(value)
    return value


def test_depth_is_kept_up_to_the_limit_wherever_the_caller_stands() -> None:
    deep = nested(MAX_DEPTH, lambda inner: (inner,))  # tuples take the walk
    assert at_stack_depth(0, lambda: back(PLAIN, deep)) == nested(MAX_DEPTH)
    deep = nested(MAX_DEPTH, lambda inner: {"a": [1], "b": inner})
    left = sys.getrecursionlimit() - 400  # too little for the reserve: the limit decides
    assert at_stack_depth(left, lambda: back(PLAIN, deep)) == deep


def test_what_the_writer_keeps_is_read_from_deeper_in_the_stack() -> None:
    texts = {}
    for depth in range(MAX_DEPTH, 1000, 50):
        with suppress(UnkeepableError):
            texts[depth] = PLAIN.encode(nested(depth)).canonical
    assert 1 < len(texts) < 18
    for depth, text in texts.items():
        assert at_stack_depth(150, partial(plain, text)) == nested(depth)


@pytest.mark.parametrize("depth", [2_000, 200_000])
def test_what_is_nested_too_deep_is_refused_with_its_place(depth: int) -> None:
    value = nested(depth)
    with pytest.raises(
        UnkeepableError, match=r"^\$(\[0\]){12}… is nested too deep, over 100 levels"
    ):
        PLAIN.encode(value)
    while value:  # freed level by level, in no deep recursion
        value = value[0]


def test_a_value_that_holds_itself_is_refused() -> None:
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(UnkeepableError, match="nested too deep"):
        PLAIN.encode(ring)


def at_stack_depth(depth: int, call: Any) -> Any:
    return call() if depth == 0 else at_stack_depth(depth - 1, call)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (Result(math.nan), "this Result cannot be kept: Expected `float`, got `null`"),
        (Attempt("m", b"", anything=b"x"), "$.anything of this Attempt does not come back equal"),
        (Attempt("m", b"", anything=math.inf), "$.anything of this Attempt does not come back"),
        (Attempt("m", b"", anything=Plainest()), "this Attempt cannot be kept: "),
        (Result("0.5"), "this Result cannot be kept: Expected `float`, got `str`"),  # type: ignore[arg-type]  # annotations do not bind the agent
    ],
)
def test_an_object_that_would_not_come_back_is_refused(value: Any, sentence: str) -> None:
    with pytest.raises(UnkeepableError) as caught:
        TYPES.encode(value)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize(
    ("types", "sentence"),
    [
        ([ByIdentity], "objects of ByIdentity are equal only to themselves"),
        ([Plainest], "objects of Plainest are equal only to themselves"),
        ([Shot, type("Shot", (Shot,), {})], "two classes are named Shot"),
        ([type("bytes", (Shot,), {})], "two classes are named bytes"),
    ],
)
def test_a_class_that_could_not_be_kept_is_refused_at_once(
    types: list[type], sentence: str
) -> None:
    with pytest.raises(UnkeepableError, match=sentence):
        Types(types)


def test_an_object_of_a_class_that_is_gone_is_a_plain_value() -> None:
    encoded = TYPES.encode(Result(0.5))
    assert PLAIN.decode(encoded.type, encoded.canonical) == {
        "loss": 0.5,
        "note": None,
        "by_step": {},
        "shots": [],
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [("", b"{"), ("", b"[" * 100_000), ("", b""), ("bytes", b'"?"'), ("Result", b'{"note":1}')],
)
def test_text_that_is_no_such_value_is_damage(name: str, text: bytes) -> None:
    with pytest.raises(DamagedError, match="cannot be read back"):
        TYPES.decode(name, text)


def test_plain_reads_any_class_and_refuses_damage() -> None:
    assert plain(PLAIN.encode(b"ab").canonical) == "YWI="
    with pytest.raises(DamagedError):
        plain(b"nul")


def test_the_digest_is_that_of_the_text() -> None:
    text = PLAIN.encode({"b": 1, "a": 2}).canonical
    assert text == b'{"a":2,"b":1}'
    assert digest(text) == sha256(text).hexdigest()
