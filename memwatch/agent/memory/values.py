"""Values of a tier <-> canonical text: JSON in UTF-8, members sorted, bytes in base64.

What is kept comes back equal, or it is refused at the call: None, bool, integers of 64 bits,
finite floats, text, lists and dicts with text as keys (together *plain*), bytes, and objects of
the classes that the run was told of, which may hold whatever msgspec decodes by their annotations.
A tuple in a plain value comes back as a list. Equal values have equal text, so that their SHA-256
tells whether a value changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from math import isfinite
from types import UnionType
from typing import Any, Final, NoReturn, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from memwatch.agent.memory.entry import Text
from memwatch.domain.errors import DamagedError, UnkeepableError

MAX_DEPTH: Final = 100
"""Lists and dicts within each other that are always kept; more only while the stack is short."""

RESERVED_DEPTH: Final = 200
"""Levels that a reader of a value may stand deeper in its stack than the writer did."""

_NAMED_STEPS: Final = 12
"""A message names the way to a place so far."""

_FIXED = frozenset((bytes, str, int, float, bool, type(None)))
_BYTES = "bytes"
_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode
_refuse_long_integers = msgspec.msgpack.Encoder().encode
"""Raises OverflowError for one beyond 64 bits, at the speed of C."""
_decode_bytes = msgspec.json.Decoder(bytes).decode

_Place = tuple["_Place", str | int] | None


class Encoded(Struct, frozen=True, gc=False):
    """A value as text, and what is needed to read it back."""

    type: str
    """Empty for a plain value, `bytes`, or the name of one of the run's classes."""
    canonical: Text


class Types:
    """The classes whose objects a run keeps, by name; plain values and bytes need none."""

    def __init__(self, types: Iterable[type] = ()) -> None:
        """Raise UnkeepableError for a class whose objects could not come back equal."""
        self._by_class: dict[type, _Known] = {}
        self._by_name: dict[str, _Known] = {}
        for kind in types:
            known = _Known(kind)
            if known.name == _BYTES or self._by_name.setdefault(known.name, known).kind is not kind:
                raise UnkeepableError(f"two classes are named {known.name}: rename one")
            self._by_class[kind] = known

    def encode(self, value: Any) -> Encoded:
        """Return a value as text; raises UnkeepableError, which names the place."""
        kind = type(value)
        known = self._by_class.get(kind)
        if known is not None:
            return Encoded(known.name, known.encode(value))
        if kind is bytes or kind is bytearray:
            return Encoded(_BYTES, _encode(value))
        return Encoded("", _encode_plain(value))

    def decode(self, name: str, canonical: Text) -> Any:
        """Return the value of a text; one of an unknown class as a plain value.

        Raises DamagedError for text that is no JSON, or that does not fit the class.
        """
        known = self._by_name.get(name)
        try:
            if known is not None:
                return known.decode(canonical)
            return _decode_bytes(canonical) if name == _BYTES else _decode(canonical)
        except (ValueError, RecursionError) as error:
            what = f"a value of class {name}" if name else "a value"
            raise DamagedError(f"{what} cannot be read back: {error}") from error

    def is_fixed(self, value: Any) -> bool:
        """Say whether a value can never change in place: bytes, text, or frozen all through."""
        kind = type(value)
        known = self._by_class.get(kind)
        return kind in _FIXED if known is None else known.is_fixed


def plain(canonical: Text) -> Any:
    """Return a text as a plain value, whatever its class; raises DamagedError."""
    try:
        return _decode(canonical)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"a value cannot be read back: {error}") from error


def digest(canonical: Text) -> str:
    """Return the SHA-256 of a text in hexadecimal."""
    import hashlib  # its library costs two milliseconds that an import need not pay

    return hashlib.sha256(canonical).hexdigest()


class _Known:
    """One of the run's classes."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.name = kind.__name__
        if _compares_by_identity(kind):
            raise UnkeepableError(
                f"objects of {self.name} are equal only to themselves, so that nobody could tell "
                f"whether one comes back whole: give the class an __eq__"
            )
        try:
            self.decode: Callable[[Text], Any] = msgspec.json.Decoder(kind).decode
        except TypeError as error:
            raise UnkeepableError(f"{self.name} cannot be read back from JSON: {error}") from error

    @cached_property
    def is_fixed(self) -> bool:
        """Whether its objects, and all that they hold, are immutable, as its annotations say."""
        try:
            return _is_fixed(self.kind, set())
        except (NameError, TypeError):  # annotations that only a checker can read
            return False

    def encode(self, value: Any) -> Text:
        try:
            back = self.decode(self._text(value))
            if back == value:
                # The text of what comes back: 1 in a field of floats is 1.0 from now on.
                return self._text(back)
        except (TypeError, ValueError, RecursionError) as error:
            raise UnkeepableError(f"this {self.name} cannot be kept: {error}") from error
        for field in _fields(value):
            if getattr(back, field) != getattr(value, field):
                raise UnkeepableError(f"$.{field} of this {self.name} does not come back equal")
        raise UnkeepableError(f"this {self.name} does not come back equal")

    def _text(self, value: Any) -> Text:
        try:
            return _encode(value)
        except TypeError:  # keys that are no text: no sorting of them in C
            return _encode(msgspec.to_builtins(value, str_keys=True))


def _is_fixed(hint: Any, above: set[Any]) -> bool:
    if hint in _FIXED or hint is Ellipsis or hint in above:
        return True
    if get_origin(hint) in (tuple, Union, UnionType):
        return all(_is_fixed(part, above) for part in get_args(hint))
    if isinstance(hint, type) and issubclass(hint, Struct) and hint.__struct_config__.frozen:
        parts = get_type_hints(hint).values()
        return all(_is_fixed(part, above | {hint}) for part in parts)
    return False


def _compares_by_identity(kind: type) -> bool:
    if issubclass(kind, Struct):
        return not kind.__struct_config__.eq
    return getattr(kind, "__eq__", None) is getattr(object, "__eq__", None)


def _fields(value: Any) -> list[str]:
    for names in ("__struct_fields__", "__dataclass_fields__"):
        if hasattr(value, names):
            return list(getattr(value, names))
    return []


def _encode_plain(value: Any) -> Text:
    try:
        text = _encode(value)
        if type(value) is str or _comes_back(value, text):
            return text
    except Exception:  # noqa: BLE001 - also of a class's own methods
        pass  # the walk below finds the place and words it
    try:
        return _encode(_normal(value, None, 0))
    except RecursionError:
        raise UnkeepableError("$ is nested too deep for what is left of the stack") from None
    except UnkeepableError:
        raise
    except Exception as error:
        raise UnkeepableError(f"$ cannot be read: {type(error).__name__}: {error}") from error


def _comes_back(value: Any, text: Text) -> bool:
    if text.count(b"[") + text.count(b"{") <= MAX_DEPTH:
        back = _decode(text)
    else:
        back = _decode(b"[" * RESERVED_DEPTH + text + b"]" * RESERVED_DEPTH)
        for _ in range(RESERVED_DEPTH):
            back = back[0]
    _refuse_long_integers(back)
    return bool(back == value)


def _normal(value: Any, place: _Place, depth: int) -> Any:
    """Return a plain value made of the plain types alone, or raise UnkeepableError."""
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return _text(value, place)
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 64:
            _refuse(place, "is an integer beyond 64 bits")
        return int.__int__(value)
    if isinstance(value, float):
        if not isfinite(value):
            _refuse(place, f"is {value}, which JSON cannot hold")
        return float.__float__(value)
    if depth == MAX_DEPTH:
        _refuse(place, f"is nested too deep, over {MAX_DEPTH} levels, or holds itself")
    return _normal_container(value, place, depth + 1)


def _normal_container(value: Any, place: _Place, depth: int) -> Any:
    if isinstance(value, dict):
        members = {}
        for key, member in value.items():
            if not isinstance(key, str):
                _refuse(place, f"has the key {key!r:.60}, which is not text")
            name = _text(key, place)
            members[name] = _normal(member, (place, name), depth)
        return members
    if isinstance(value, list) or type(value) is tuple:
        return [_normal(item, (place, index), depth) for index, item in enumerate(value)]
    if isinstance(value, (bytes, bytearray)):
        _refuse(
            place,
            "holds bytes inside a plain value: list its class in RunOptions(types=…), "
            "or put the bytes under a key of their own",
        )
    _refuse(
        place,
        f"is of class {type(value).__name__}: put plain values, "
        "or an object of a class listed in RunOptions(types=…)",
    )


def _text(value: str, place: _Place) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        _refuse(place, "holds half of a surrogate pair, which UTF-8 cannot hold")
    return str.__str__(value)


def _refuse(place: _Place, why: str) -> NoReturn:
    steps: list[str] = []
    while place is not None:
        place, step = place
        steps.append(_step(step))
    steps.reverse()
    if len(steps) > _NAMED_STEPS:
        steps[_NAMED_STEPS:] = ["…"]
    raise UnkeepableError(f"${''.join(steps)} {why}")


def _step(step: str | int) -> str:
    import json  # to word a refusal only

    if isinstance(step, str) and step.isidentifier() and len(step) <= 60:
        return f".{step}"
    return f"[{json.dumps(step[:60]) if isinstance(step, str) else step}]"
