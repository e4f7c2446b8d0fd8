"""The difference of two JSON values, and how it is applied: requirement R6.

A difference is a list of operations in the order in which they are carried out; equal values have
an empty one. Three are those of RFC 6902, with JSON pointers (RFC 6901) as paths:

    {"op":"add","path":"/calls/17","value":…}      into a list before that index, or a new member
    {"op":"remove","path":"/calls/0"}
    {"op":"replace","path":"/loss","value":0.31}   the whole value has the path ""

and one of ours edits text, in Unicode code points:

    {"op":"splice","path":"/notes","at":12,"del":3,"text":"four"}

Values are plain: what a JSON decoder returns. 1, 1.0 and true are three different values.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import msgspec

Op = dict[str, Any]

_SPLICE_FROM = 40
"""Text shorter than this is replaced: the members of a splice are as long."""

_encode = msgspec.json.Encoder(order="sorted").encode


class DiffError(ValueError):
    """An operation that does not fit the value; the text says which and why."""


def difference(before: Any, after: Any) -> list[Op]:
    """Return the operations that make `after` of `before`; they share values with `after`."""
    ops: list[Op] = []
    try:
        if not _same(before, after):
            _compare(before, after, "", ops)
    except RecursionError:
        return [_replace("", after)]
    return ops


def _compare(before: Any, after: Any, path: str, ops: list[Op]) -> None:
    """Append the operations for two values that are not the same."""
    kind = type(after)
    if type(before) is not kind or kind not in (dict, list, str):
        ops.append(_replace(path, after))
    elif kind is str:
        ops.append(_edit(before, after, path))
    else:
        start = len(ops)
        (_compare_members if kind is dict else _compare_items)(before, after, path, ops)
        if len(ops) - start > 1:
            whole = _replace(path, after)
            if len(_encode(ops[start:])) > len(_encode(whole)):
                ops[start:] = [whole]


def _compare_members(
    before: dict[str, Any], after: dict[str, Any], path: str, ops: list[Op]
) -> None:
    ops += [{"op": "remove", "path": _join(path, name)} for name in before if name not in after]
    for name, value in after.items():
        if name not in before:
            ops.append({"op": "add", "path": _join(path, name), "value": value})
        elif not _same(before[name], value):
            _compare(before[name], value, _join(path, name), ops)


def _compare_items(before: list[Any], after: list[Any], path: str, ops: list[Op]) -> None:
    head = _common(before, after)
    before, after = before[head:], after[head:]
    tail = _common(before[::-1], after[::-1])
    before, after = before[: len(before) - tail], after[: len(after) - tail]
    done = 0
    at = 0
    for old, new in [*_kept(before, after), (len(before), len(after))]:
        # Everything left of `at` is as it will be, so an index is that of the list to be.
        paired = min(old - done, new - at)
        for offset in range(paired):
            if not _same(before[done + offset], after[at + offset]):
                place = f"{path}/{head + at + offset}"
                _compare(before[done + offset], after[at + offset], place, ops)
        ops += [
            {"op": "add", "path": f"{path}/{head + index}", "value": after[index]}
            for index in range(at + paired, new)
        ]
        gone = f"{path}/{head + new}"
        ops += [{"op": "remove", "path": gone} for _ in range(old - done - paired)]
        done, at = old + 1, new + 1


def _kept(before: list[Any], after: list[Any]) -> list[tuple[int, int]]:
    """Return index pairs of items that stay, rising in both: a longest such run of them."""
    if not before or not after:
        return []
    places: dict[bytes, list[int]] = {}
    for index in range(len(before) - 1, -1, -1):
        places.setdefault(_encode(before[index]), []).append(index)
    ends: list[int] = []
    chain: list[tuple[int, int, Any]] = []
    tops: list[int] = []
    for new, item in enumerate(after):
        free = places.get(_encode(item))
        if free:
            old = free.pop()
            length = bisect_left(ends, old)
            link = (old, new, chain[tops[length - 1]] if length else None)
            ends[length : length + 1] = [old]
            tops[length : length + 1] = [len(chain)]
            chain.append(link)
    pairs: list[tuple[int, int]] = []
    last = chain[tops[-1]] if tops else None
    while last is not None:
        pairs.append(last[:2])
        last = last[2]
    return pairs[::-1]


def _edit(before: str, after: str, path: str) -> Op:
    whole = _replace(path, after)
    if len(after) < _SPLICE_FROM:
        return whole
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    splice = {
        "op": "splice",
        "path": path,
        "at": head,
        "del": len(before) - head - tail,
        "text": after[head : len(after) - tail],
    }
    return splice if len(_encode(splice)) < len(_encode(whole)) else whole


def _common(left: Any, right: Any) -> int:
    """Return how long a beginning two lists or texts share; slices are compared in C."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if _same(left[low:middle], right[low:middle]):
            low = middle
        else:
            high = middle - 1
    return low


def _same(left: Any, right: Any) -> bool:
    """Whether two values are the same JSON: for Python, 1 equals 1.0 and true at any depth."""
    if left is right:
        return True
    kind = type(left)
    if kind is not type(right) or left != right:
        return False
    return kind in (str, int, bool) or _encode(left) == _encode(right)


def _replace(path: str, value: Any) -> Op:
    return {"op": "replace", "path": path, "value": value}


def _join(path: str, name: str) -> str:
    return f"{path}/{name.replace('~', '~0').replace('/', '~1')}"


def apply(value: Any, ops: list[Op]) -> Any:
    """Return what the operations make of a value, which stays as it is.

    The result shares what did not change with `value` and `ops`. Raises DiffError for anything
    that is not an operation on this value.
    """
    if type(ops) is not list:
        raise DiffError("a difference is a list")
    edit = _Edit(value)
    for op in ops:
        edit.carry_out(op)
    return edit.root


class _Edit:
    """A value under change: containers are copied once, when first written to."""

    def __init__(self, value: Any) -> None:
        self.root = value
        self._copies: set[int] = set()
        """Identities of our own containers: no others come to be while we work, so none is reused
        for one that is not ours."""

    def carry_out(self, op: Any) -> None:
        name, path = (op.get("op"), op.get("path")) if type(op) is dict else (None, None)
        if type(path) is not str or (path and path[0] != "/"):
            raise DiffError("an operation without a path")
        if name not in ("add", "remove", "replace", "splice"):
            raise DiffError(f"an unknown operation at {path!r:.80}")
        if name in ("add", "replace") and "value" not in op:
            raise DiffError(f"{name} without a value at {path!r:.80}")
        if path:
            self._change(name, path, op)
        elif name == "remove":
            raise DiffError("the whole value cannot be removed")
        else:
            self.root = _spliced(self.root, op) if name == "splice" else op["value"]

    def _change(self, name: str, path: str, op: Op) -> None:
        *parents, last = map(_name, path[1:].split("/"))
        self.root = target = self._own(self.root)
        for parent in parents:
            place = _existing(target, parent, path)
            target[place] = child = self._own(target[place])
            target = child
        if name == "add":
            _add(target, last, op)
        else:
            place = _existing(target, last, path)
            if name == "remove":
                del target[place]
            else:
                target[place] = op["value"] if name == "replace" else _spliced(target[place], op)

    def _own(self, value: Any) -> Any:
        """Return a container that may be written to: itself if it is a copy of ours."""
        if id(value) in self._copies or type(value) not in (dict, list):
            return value
        copy = value.copy()
        self._copies.add(id(copy))
        return copy


def _name(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~") if "~" in token else token


def _existing(target: Any, name: str, path: str) -> Any:
    """Return the key or index of what is there."""
    if type(target) is dict and name in target:
        return name
    if type(target) is list:
        index = _index(name)
        if index is not None and index < len(target):
            return index
    raise DiffError(f"nothing is at {path!r:.80}")


def _add(target: Any, name: str, op: Op) -> None:
    if type(target) is dict:
        target[name] = op["value"]
        return
    if type(target) is list:
        index = len(target) if name == "-" else _index(name)
        if index is not None and index <= len(target):
            target.insert(index, op["value"])
            return
    raise DiffError(f"nothing can be added at {op['path']!r:.80}")


def _index(name: str) -> int | None:
    """Return an index as RFC 6901 spells it: digits, no sign, no leading zero."""
    if not (name.isascii() and name.isdigit()) or len(name) > 18:
        return None
    return None if name[0] == "0" and name != "0" else int(name)


def _spliced(value: Any, op: Op) -> str:
    at, count, text = op.get("at"), op.get("del"), op.get("text")
    if type(value) is not str or type(text) is not str:
        raise DiffError(f"no text to splice at {op['path']!r:.80}")
    if type(at) is not int or type(count) is not int or at < 0 or count < 0:
        raise DiffError(f"no place to splice at {op['path']!r:.80}")
    if at + count > len(value):
        raise DiffError(f"a splice beyond the end of {op['path']!r:.80}")
    return value[:at] + text + value[at + count :]
