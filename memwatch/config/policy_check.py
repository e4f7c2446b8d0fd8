"""Policies that contradict themselves or cannot be meant: refused when they are loaded."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple, Protocol

from memwatch.config.policy import Action, Levels, Policy
from memwatch.config.shape import numbers_of
from memwatch.config.yaml_file import nearest
from memwatch.domain.level import PLANNED
from memwatch.domain.operations import CHECKPOINT_KINDS, OPERATIONS, PURGE_HOWS
from memwatch.domain.text import inert

_WORDS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "checkpoint": {"kind": CHECKPOINT_KINDS},
    "purge": {
        "tier": (),
        "keys": (),
        "how": PURGE_HOWS,
        "target_bytes": (),
    },
    "compact": {"thread": ()},
    "retain": {"tier": (), "keep": ()},
    "abort_experiment": {"save": ("best_effort", "none")},
    "end_run": {"save": ("required", "best_effort", "none"), "grace_us": ()},
}
"""Arguments of an operation, and their words where only some are known."""

_KINDS: Final[Mapping[str, tuple[type, str]]] = {
    "tier": (str, "a name"),
    "keys": (list, "a list"),
    "how": (str, "a word"),
    "kind": (str, "a word"),
    "save": (str, "a word"),
    "thread": (str, "a name"),
    "keep": (dict, "lines of `key: value`"),
    "target_bytes": (int, "a number of bytes"),
    "grace_us": (int, "a number of microseconds"),
}

_RISING = (
    tuple(f"thresholds.{level}" for level in PLANNED),
    ("pressure.full_intervene", "pressure.full_emergency"),
    *((f"exit.{level}", f"thresholds.{level}") for level in ("warn", "intervene", "emergency")),
)
"""Each must be below the next."""

_AT_MOST = (
    ("exit.emergency", "thresholds.warn"),  # R8: the next experiment starts only under warn
    ("soft.start", "thresholds.intervene"),
    ("soft.floor", "soft.start"),
    ("soft.floor", "thresholds.warn"),
    ("budget.apart_s", "budget.work_s"),  # else it could not be held
)
"""The first is not above the second."""

_RESOURCE = r"resources\..*\.(warn|intervene|emergency"
_SHARES = re.compile(
    r"(thresholds|exit)\.(warn|intervene|emergency|hard)"
    r"|soft\.(start|points|max_above|floor|relax_share|growth_share_per_min)"
    r"|soft\.forecast\[\d+\]\.points|measure\..*_share|outlook\.reserve_share"
    rf"|{_RESOURCE}|exit_points)",
    re.DOTALL,
)
_ABOVE_ZERO = re.compile(
    r"limit_bytes|(thresholds|exit)\.(warn|intervene|emergency|hard)|.*\.patience_s|ask_s"
    r"|enter\.samples|soft\.(growth_.*|window_s|relax_windows|forecast\[\d+\]\.under_s)|breaker\.after"
    rf"|pause\.longest_s|budget\..*|pressure\.(some|full_.*)|{_RESOURCE})",
    re.DOTALL,
)
_MOST_S, _MOST_OF_ALL = 1e9, 1e18
"""So that microseconds and bytes stay what 64 bits hold."""
_MOST = {"disk_reserve_bytes": 1_000_000_000, "pressure.some": 100.0, "pressure.full_": 100.0}


class Wrong(NamedTuple):
    """What is wrong: the keys it comes from, and what to do about it."""

    keys: tuple[str, ...]
    text: str


class Said(Protocol):
    """What files said."""

    def said(self, key: str) -> bool:
        """Return whether a file says this key; the built-in policy does not count."""


def wrongs(policy: Policy, origins: Said, ops: Collection[str] | None) -> Iterator[Wrong]:
    """Yield everything wrong with a complete policy.

    `ops` is what the agent takes, holds included; None where that is not known.
    """
    numbers = dict(numbers_of(policy, ["args"]))  # those of steps are judged elsewhere
    for key, value in numbers.items():
        if (said := _out_of_range(key, value)) is not None:
            yield Wrong((key,), said)
    yield from _order(numbers, origins)
    yield from _operations(policy, origins, ops)
    yield from _resources(policy)


def steps_of(policy: Policy) -> Iterator[tuple[str, tuple[Action, ...]]]:
    """Yield each list of steps with its key."""
    yield "outlook.steps", policy.outlook.steps
    yield "pause.relief", policy.pause.relief
    rules = {"levels": policy.levels}
    rules |= {f"resources.{name}.levels": rule.levels for name, rule in policy.resources.items()}
    for key, levels in rules.items():
        for level in PLANNED:
            rule = getattr(levels, level)
            yield f"{key}.{level}.steps", rule.steps
            yield f"{key}.{level}.escalate", rule.escalate


def _out_of_range(key: str, value: float) -> str | None:
    name = key.rpartition(".")[2]
    bound = _MOST_S if name.endswith("_s") else _MOST_OF_ALL
    if not 0 <= value <= bound:  # nor is nan
        return f"{key} must be a number from 0 to {bound:g}, not {value:g}"
    if value == 0 and _ABOVE_ZERO.fullmatch(key):
        return f"{key} must be above 0"
    if key == "pause.lease_s" and value < 1:
        return f"{key} ({value:g}) must be at least 1: a lease is renewed each quarter of it"
    if key.startswith("retention."):
        return _of_keep(key, name, value)
    if value > 1 and _SHARES.fullmatch(key):
        return f"{key} is a share of a limit, at most 1, not {value:g}"
    most = next((most for start, most in _MOST.items() if key.startswith(start)), None)
    return f"{key} is at most {most:,.0f}, not {value:g}" if most and value > most else None


def _of_keep(key: str, name: str, value: float) -> str | None:
    if name == "importance" and value > 1:
        return f"{key} is at most 1, not {value:g}"
    if name in ("count", "experiments") and value == 0:
        return f"{key} must be above 0; null is without limit"
    return None


def _order(numbers: Mapping[str, float], origins: Said) -> Iterator[Wrong]:
    def shown(key: str) -> str:
        return f"{key} ({numbers[key]:g}{'' if origins.said(key) else ', the default'})"

    for chain in _RISING:
        for low, high in pairwise(chain):
            if numbers[low] >= numbers[high]:
                text = (
                    f"{shown(low)} must be below {shown(high)}: lower the first or raise the other"
                )
                yield Wrong((low, high), text)
    for low, high in _AT_MOST:
        if low in numbers and high in numbers and numbers[low] > numbers[high]:
            if high == "thresholds.warn" and low == "soft.floor" and "soft.start" in numbers:
                continue
            text = (
                f"{shown(low)} must not be above {shown(high)}: lower the first or raise the other"
            )
            yield Wrong((low, high), text)


def _operations(policy: Policy, origins: Said, ops: Collection[str] | None) -> Iterator[Wrong]:
    yield from _allowed(policy, origins, ops)
    for key, steps in steps_of(policy):
        for place, step in enumerate(steps):
            at = f"{key}[{place}]"
            if step.op not in OPERATIONS:
                yield Wrong((f"{at}.op",), _unknown(f"{at}.op", step.op))
                continue
            if ops is not None and step.op not in ops:  # what nobody said was dropped before
                yield Wrong(
                    (f"{at}.op",), f"{at}.op: this agent has no {step.op}; it has {_list(ops)}"
                )
            if policy.mode == "act" and step.op not in policy.allow and origins.said(key):
                text = (
                    f"{at}.op: {step.op} is not in allow, so it would never be done: add it there"
                )
                yield Wrong((f"{at}.op", "allow"), text)
            yield from _arguments(at, step)
    for key, steps in steps_of(policy):
        head = key.removesuffix(".escalate")
        if head != key and steps and not getattr(_rule(policy, head), "steps", ()):
            text = f"{key} is what comes after steps without effect, and {head} has no steps"
            yield Wrong((key, f"{head}.steps"), text)


def _allowed(policy: Policy, origins: Said, ops: Collection[str] | None) -> Iterator[Wrong]:
    for place, op in enumerate(policy.allow):
        key = f"allow[{place}]"
        if op not in OPERATIONS:
            yield Wrong((key,), _unknown(key, op))
        elif op in policy.allow[:place]:
            yield Wrong((key,), f"{key}: {op} is there twice")
        elif ops is not None and op not in ops and origins.said("allow"):
            yield Wrong((key,), f"{key}: this agent has no {op}; it has {_list(ops)}")


def _rule(policy: Policy, key: str) -> Any:
    """Return the rule of a level by its key."""
    head, _, level = key.rpartition(".")
    levels: Levels = policy.levels
    if head != "levels":
        name = head.removeprefix("resources.").removesuffix(".levels")
        levels = policy.resources[name].levels
    return getattr(levels, level)


def _unknown(key: str, op: str) -> str:
    return inert(f"{key}: there is no operation {op!r}{nearest(op, OPERATIONS)}", 220)


def _list(ops: Collection[str]) -> str:
    return inert(", ".join(sorted(ops)) or "none", 160)


def _arguments(at: str, step: Action) -> Iterator[Wrong]:
    known = _WORDS.get(step.op, {})
    for name, value in step.args.items():
        key = f"{at}.args.{name}"
        if name not in known:
            near = nearest(name, list(known)) if known else "; it takes none"
            yield Wrong((key,), inert(f"{key}: {step.op} has no argument {name!r}{near}", 220))
            continue
        kind, words = _KINDS[name]
        wrong_kind = not isinstance(value, kind) or isinstance(value, bool)
        if wrong_kind or (kind is int and value <= 0 and name == "target_bytes"):
            yield Wrong((key,), f"{key} must be {words}")
        elif known[name] and value not in known[name]:
            close = nearest(str(value), known[name])
            text = f"{key}: {value!r} is none of {', '.join(known[name])}"
            yield Wrong((key,), inert(text + (close if "mean" in close else ""), 220))


def _resources(policy: Policy) -> Iterator[Wrong]:
    for name, rule in policy.resources.items():
        at = inert(f"resources.{name}", 80)
        given = [
            (level, value)
            for level in ("warn", "intervene", "emergency")
            if (value := getattr(rule, level)) is not None
        ]
        for (low, a), (high, b) in pairwise(given):
            if a >= b:
                text = f"{at}.{low} ({a:g}) must be below {at}.{high} ({b:g})"
                yield Wrong((f"{at}.{low}", f"{at}.{high}"), text)
        if given and rule.exit_points >= given[0][1]:
            text = f"{at}.exit_points ({rule.exit_points:g}) must be below {at}.{given[0][0]}"
            yield Wrong((f"{at}.exit_points", f"{at}.{given[0][0]}"), text)
        for level in PLANNED:
            if getattr(rule.levels, level).steps and level not in dict(given):
                key = f"{at}.levels.{level}.steps"
                need = f"set {at}.{level}" if level != "hard" else "only memory has a hard limit"
                yield Wrong((key,), f"{key} would never be done: {need}")
