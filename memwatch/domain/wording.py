"""Operations and requests in words, the same in logs, on the screen and on the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from memwatch.domain.record import figure
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text, duration_text

_WIDTH = 120
_OPS: Final[Mapping[str, str]] = {
    "abort_experiment": "abort the experiment",
    "end_run": "end the run",
    "reclaim": "give memory back",
    "retain": "keep less",
    "engine.mode": "guard mode",
    "engine.approve": "let the plan go",
    "engine.decline": "decline the plan",
    "engine.reset": "let the guard try again",
}
_HOWS: Final[Mapping[str, str]] = {
    "expired": "what is expired",
    "oldest": "oldest first",
    "least_accessed": "least accessed first",
    "compress": "compressed in place",
    "reclaim": "all that may go",
}


def op_text(op: str) -> str:
    """Return an operation as people call it.

    >>> op_text("reclaim"), op_text("read_only")
    ('give memory back', 'read-only')
    """
    return _OPS.get(op, inert(op, 30).replace("_", "-"))


def request_text(op: str, args: Mapping[str, Any]) -> str:
    """Return an operation and what matters of its arguments.

    >>> request_text("purge", {"tier": "history", "how": "compress"})
    'purge history, compressed in place'
    >>> request_text("purge", {"how": "expired"}), request_text("purge", {})
    ('purge what is expired', 'purge all that may go')
    >>> request_text("checkpoint", {}), request_text("checkpoint", {"kind": "experiment"})
    ('incremental checkpoint', 'checkpoint of the experiment')
    """
    return inert(_TEXTS.get(op, _plain)(op, args), _WIDTH)


def _purge(op: str, args: Mapping[str, Any]) -> str:
    keys, tier = args.get("keys"), inert(str(args.get("tier") or ""), 40)
    how = _HOWS.get(str(args.get("how") or ""), inert(str(args.get("how") or ""), 20))
    text = f"{op} {tier or how or 'all that may go'}"
    if isinstance(keys, list | tuple):
        text += f", {len(keys)} key{'s' * (len(keys) != 1)}"
    if tier and how:
        text += f", {how}"
    size = figure(args.get("target_bytes"))
    return text if size is None else f"{text}, until {bytes_text(size)} are free"


def _checkpoint(_: str, args: Mapping[str, Any]) -> str:
    kind = inert(str(args.get("kind") or "incremental"), 20)
    return "checkpoint of the experiment" if kind == "experiment" else f"{kind} checkpoint"


def _abort(op: str, args: Mapping[str, Any]) -> str:
    return op_text(op) + (", nothing saved" if args.get("save") == "none" else "")


def _end(op: str, args: Mapping[str, Any]) -> str:
    save = {"none": "nothing saved", "best_effort": "saved as far as it works"}
    return f"{op_text(op)}, {save.get(str(args.get('save')), 'saved before')}"


def _hold(op: str, args: Mapping[str, Any]) -> str:
    lease_us = figure(args.get("lease_us"))
    if lease_us is None or args.get("on_lease_end") != "release":
        return op_text(op)
    return f"{op_text(op)}, ends {duration_text(lease_us / 1e6)} after the guard does"


def _release(op: str, args: Mapping[str, Any]) -> str:
    holds, owner = args.get("holds"), inert(str(args.get("owner") or ""), 40)
    if args.get("all") is True:
        return f"{op_text(op)}, whoever holds it"
    if isinstance(holds, list | tuple):
        return f"{op_text(op)}, {len(holds)} hold{'s' * (len(holds) != 1)}"
    return f"{op_text(op)}, held by {owner}" if owner else op_text(op)


def _mode(op: str, args: Mapping[str, Any]) -> str:
    allow, text = args.get("allow"), f"{op_text(op)} {inert(str(args.get('mode')), 20)}"
    few = isinstance(allow, list | tuple) and 0 < len(allow) <= 3
    return f"{text} ({', '.join(op_text(str(one)) for one in allow)})" if allow and few else text


def _named(op: str, args: Mapping[str, Any]) -> str:
    name = inert(str(args.get("tier") or args.get("thread") or ""), 40)
    return f"{op_text(op)} ({name})" if name else op_text(op)


def _alone(op: str, _: Mapping[str, Any]) -> str:
    return op_text(op)


def _plain(op: str, args: Mapping[str, Any]) -> str:
    told = ", ".join(
        f"{inert(name, 20)} {inert(str(value), 40)}" for name, value in list(args.items())[:8]
    )
    return f"{op_text(op)} {told}".strip()


_TEXTS: Final[Mapping[str, Callable[[str, Mapping[str, Any]], str]]] = {
    "purge": _purge,
    "checkpoint": _checkpoint,
    "abort_experiment": _abort,
    "end_run": _end,
    "pause": _hold,
    "read_only": _hold,
    "resume": _release,
    "read_write": _release,
    "retain": _named,
    "compact": _named,
    "engine.mode": _mode,
    "engine.approve": _alone,
    "engine.decline": _alone,
    "engine.reset": _alone,
}
