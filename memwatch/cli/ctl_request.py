"""The words of `memwatch ctl` -> what is asked for. Pure: nothing is looked up, nothing is sent."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from memwatch.domain.command import Command
from memwatch.domain.errors import UsageError
from memwatch.domain.level import ACTING, ENGINE_MODES
from memwatch.domain.operations import RELEASES, must_be_named

OWNER = "ctl"
"""Who asks, and owner of the holds asked for here: one set for all terminals of this user."""


class Action(NamedTuple):
    """One word, the operation that it asks for, and which options make sense with it."""

    op: str
    args: Mapping[str, Any] = MappingProxyType({})
    options: tuple[str, ...] = ()


_DRY = ("dry_run",)
ACTIONS = {
    "checkpoint": Action("checkpoint", options=("kind", *_DRY)),
    "checkpoint-full": Action("checkpoint", {"kind": "full"}, _DRY),
    "purge": Action("purge", options=("tier", "how", "key", "target_bytes", *_DRY)),
    "compact": Action("compact", options=_DRY),
    "reclaim": Action("reclaim", options=_DRY),
    "pause": Action("pause", options=_DRY),
    "resume": Action("resume", options=("all", *_DRY)),
    "read-only": Action("read_only", options=_DRY),
    "read-write": Action("read_write", options=("all", *_DRY)),
    "abort": Action("abort_experiment", options=_DRY),
    "end": Action("end_run", options=_DRY),
    "mode": Action("engine.mode", options=("value", "allow", "until_s")),
    "approve": Action("engine.approve", options=("value",)),
    "decline": Action("engine.decline", options=("value",)),
    "reset": Action("engine.reset"),
}
_SAID = {
    "value": "a further word",
    "tier": "--tier",
    "how": "--how",
    "key": "--key",
    "kind": "--kind",
    "target_bytes": "--target-bytes",
    "all": "--all",
    "allow": "--allow",
    "until_s": "--for",
    "dry_run": "--dry-run",
}


def needs_name(options: argparse.Namespace) -> bool:
    """Say whether the run's name must be typed first."""
    asked = {"tier": options.tier, "keys": options.key}
    return not options.dry_run and must_be_named(ACTIONS[options.action].op, asked)


def request(options: argparse.Namespace, now_us: int, waiting_plan: str = "") -> Command:
    """Return what the words ask for; raises UsageError when they contradict each other.

    `now_us` is the wall clock, `waiting_plan` the plan that waits for a person.
    """
    action = ACTIONS[options.action]
    for name, said in _SAID.items():
        if getattr(options, name) and name not in action.options:
            takes = sorted(word for word, one in ACTIONS.items() if name in one.options)
            raise UsageError(f"{said} does not go with {options.action}, only with {_list(takes)}")
    return Command(
        op=action.op,
        args=dict(action.args) | _args(options, action, now_us, waiting_plan),
        why=options.why or f"memwatch ctl {options.action}",
        by=OWNER,
        dry_run=options.dry_run,
        confirm=options.yes,
    )


def _args(
    options: argparse.Namespace, action: Action, now_us: int, waiting_plan: str
) -> dict[str, Any]:
    if action.op == "engine.mode":
        return _mode_args(options, now_us)
    if action.op in ("engine.approve", "engine.decline"):
        plan = options.value or waiting_plan
        if not plan:
            raise UsageError("no plan waits for a person now; `memwatch status` shows the plans")
        return {"plan": plan}
    if action.op in RELEASES:
        return {"all": True} if options.all else {"owner": OWNER}
    said = {
        "tier": options.tier,
        "how": options.how,
        "keys": options.key,
        "kind": options.kind,
        "target_bytes": options.target_bytes,
    }
    return {name: value for name, value in said.items() if value}


def _mode_args(options: argparse.Namespace, now_us: int) -> dict[str, Any]:
    if options.value not in ENGINE_MODES:
        raise UsageError(f"name the mode of the engine, one of: {', '.join(ENGINE_MODES)}")
    args: dict[str, Any] = {"mode": options.value}
    if options.allow:
        words = (word.strip() for text in options.allow for word in text.split(","))
        args["allow"] = [word.replace("-", "_") for word in words if word]
    if options.until_s:
        if options.value not in ACTING:  # they alone can be over: then the engine is in shadow
            raise UsageError(f"--for goes with {_list(list(ACTING))}, not with {options.value}")
        args["until_us"] = now_us + options.until_s * 1_000_000
    return args


def _list(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)
