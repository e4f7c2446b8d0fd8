"""What an agent returns with `done`, made small and inert: it goes into logs and onto screens."""

from __future__ import annotations

from typing import Any

from memwatch.domain.record import figure
from memwatch.domain.text import inert

_DEEP = 4
_MANY = 32
_WIDE = 200


def inert_result(result: dict[str, Any]) -> dict[str, Any]:
    """Return a copy without what a terminal acts on, without depth and length.

    >>> inert_result({"path": "a\\x1bb", "steps": [1, 0.5, None, float("inf")]})
    {'path': 'a\\ufffdb', 'steps': [1, 0.5, None, None]}
    """
    return {inert(str(k), 60): _inert(v, _DEEP) for k, v in list(result.items())[:_MANY]}


def _inert(value: Any, deep: int) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, str):
        return inert(value, _WIDE)
    if isinstance(value, dict | list) and not deep:
        return "…"
    if isinstance(value, dict):
        return {inert(str(k), 60): _inert(v, deep - 1) for k, v in list(value.items())[:_MANY]}
    if isinstance(value, list):
        return [_inert(one, deep - 1) for one in value[:_MANY]]
    return figure(value)
