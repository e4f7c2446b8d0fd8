"""`memwatch tonight`: the check before bed. Asks, and changes nothing. Source: D5 to D7."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memwatch.cli.asking import ask, status_of
from memwatch.cli.nightly import judge
from memwatch.cli.nightly_facts import Check, NightFacts
from memwatch.config.load import named_profile
from memwatch.config.locations import run_home
from memwatch.config.policy import Action, Policy
from memwatch.config.policy_load import load_policy
from memwatch.domain.clock import SystemClock
from memwatch.domain.command import Command, CommandInfo
from memwatch.domain.errors import ConfigError, SessionError
from memwatch.domain.text import inert
from memwatch.host.logout import Logout, logout_facts
from memwatch.host.procfs import PROC, read_arguments
from memwatch.ingest.open_run import OpenedRun, open_run
from memwatch.runtime.guard.reserve import RESERVE_FILE
from memwatch.runtime.runs.attach import Attachment
from memwatch.runtime.runs.keeper import keeper_of
from memwatch.runtime.runs.target import newest_live, resolve
from memwatch.wal.spool_format import MAX_BYTES, STATE_FILE, parse_state

_EXAMPLE = """examples:
  memwatch tonight night-7
  memwatch tonight night-7 --test-notify    sends a test through every channel
  memwatch tonight --json | jq '.checks[] | select(.verdict == "NO")'

Each point is ok, look (it may do), or NO (it would not hold until the morning), with what to do.

exit status: 0 no point says NO; 1 one does; 2 no such run."""
_STEP_WAIT_S = 15.0
_TEST_WAIT_S = 30.0
_LOOK_S = 0.2
_MOST_STEPS = 8
_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def run(words: list[str]) -> int:
    """Check a run before bed; returns 1 when something would not hold until the morning."""
    options = _parser().parse_args(words)
    path = newest_live() if options.target is None else resolve(options.target)
    attachment, opened = Attachment(path), open_run(path)
    if options.test_notify and status_of(attachment):
        _test_notify(attachment)
    checks = judge(_facts(attachment, opened))
    well = all(check.verdict != "NO" for check in checks)
    if options.json:
        told = [check._asdict() for check in checks]
        print(json.dumps({"run": attachment.run_id, "ok": well, "checks": told}))
    else:
        print("\n".join(_lines(checks)))
    return int(not well)


def _lines(checks: list[Check]) -> list[str]:
    lines = []
    for check in checks:
        lines.append(f"{check.verdict:<5}{check.name:<10}{check.text}")
        if check.do and check.verdict != "ok":
            lines.append(f"{'':<15}→ {check.do}")
    wrong = sum(check.verdict == "NO" for check in checks)
    last = f"NO: {wrong} to mend before bed" if wrong else "ok: it would hold until the morning"
    return [*lines, "", last]


def _facts(attachment: Attachment, opened: OpenedRun) -> NightFacts:
    policy, error = _policy(attachment, opened)
    status, pid = status_of(attachment), attachment.guard_pid
    logout = logout_facts(pid) if pid else Logout()
    dry_runs: dict[str, CommandInfo] = {}
    untried: tuple[str, ...] = ()
    age_s = _agent_age_s(opened)
    if status and policy is not None and age_s is not None:
        dry_runs, untried = _dry_runs(attachment, opened, policy)
    return NightFacts(
        shown=attachment.shown,
        now_us=SystemClock().wall_us(),
        status=status,
        guard_pid=pid,
        kept=bool(pid) and (keeper_of(pid or 0) is not None or bool(logout.unit)),
        logout=logout,
        policy=policy,
        policy_error=error,
        agent_age_s=age_s,
        dry_runs=dry_runs,
        untried=untried,
        reserve_bytes=_reserve_bytes(run_home(attachment.key)),
        source=opened.source,
        no_commands=attachment.no_commands,
    )


def _policy(attachment: Attachment, opened: OpenedRun) -> tuple[Policy | None, str]:
    try:
        profile = named_profile(opened.manifest.profile)
        home, extra = run_home(attachment.key), _policy_of_guard(attachment.guard_pid)
        book = load_policy(profile, run_dir=opened.path, run_home=home, extra=extra, ops=opened.ops)
    except ConfigError as error:
        return None, str(error)
    return book.base, ""


def _policy_of_guard(pid: int | None) -> Path | None:
    """Return the file that the guard was started with (`--policy`), None without one."""
    words = read_arguments(PROC, pid) if pid else []
    after = words[words.index("--policy") + 1 :][:1] if "--policy" in words else []
    return Path(after[0]) if after and after[0].startswith("/") else None


def _dry_runs(
    attachment: Attachment, opened: OpenedRun, policy: Policy
) -> tuple[dict[str, CommandInfo], tuple[str, ...]]:
    """Ask the agent what each step of the policy would do now; it does nothing."""
    found: dict[str, CommandInfo] = {}
    untried: dict[str, None] = {}
    for action in _actions(policy):
        told = opened.manifest.ops.get(action.op)
        if not isinstance(told, dict) or told.get("dry_run") is not True:
            untried[action.op.replace("_", " ")] = None
            continue
        name = " ".join([action.op, *(inert(str(one), 20) for one in action.args.values())])
        if name in found or len(found) == _MOST_STEPS:
            continue
        why = "memwatch tonight"
        command = Command(op=action.op, args=action.args, dry_run=True, by="tonight", why=why)
        try:
            found[name] = ask(attachment, command, _STEP_WAIT_S)
        except SessionError:
            break  # the guard has gone meanwhile: the next look says so
    return found, tuple(untried)


def _actions(policy: Policy) -> Iterator[Action]:
    levels = policy.levels
    for rule in (levels.warn, levels.intervene, levels.emergency, levels.hard):
        yield from rule.steps
        yield from rule.escalate


def _agent_age_s(opened: OpenedRun) -> float | None:
    """Return how old the agent's own word is; None when there is none that is its own."""
    try:
        fd = os.open(opened.control_dir / STATE_FILE, _OPEN_FLAGS)
        with os.fdopen(fd, "rb") as file:
            state = parse_state(file.read(MAX_BYTES))
    except (OSError, ValueError):
        return None
    if state.run_id != opened.manifest.run_id or not state.boot_us:
        return None
    age_s = (SystemClock().boot_us() - state.boot_us) / 1e6
    return age_s if age_s >= 0 else None


def _reserve_bytes(home: Path) -> int:
    sizes = [0]
    for path in (home / "wal" / RESERVE_FILE, home / RESERVE_FILE):
        try:
            sizes.append(path.lstat().st_size)
        except OSError:
            continue
    return max(sizes)


def _test_notify(attachment: Attachment) -> None:
    """Have a test sent through every channel, and wait for what becomes of it."""
    began_us = SystemClock().wall_us()
    if ask(attachment, Command(op="notify.test", by="tonight"), _TEST_WAIT_S).state != "done":
        return
    until = time.monotonic() + _TEST_WAIT_S
    while time.monotonic() < until:
        channels = (status_of(attachment).get("notify") or {}).get("channels") or []
        if all(_was_tested(channel, began_us) for channel in channels):
            return
        time.sleep(_LOOK_S)


def _was_tested(channel: dict[str, Any], since_us: int) -> bool:
    failed = channel["state"] == "failed" and (channel["at_us"] or 0) >= since_us
    return failed or (channel["tested_us"] or 0) >= since_us


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="memwatch tonight",
        description="The check before bed: would the guard hold until the morning?",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "target", nargs="?", help="run directory, checkpoint store or run id; default: the newest"
    )
    parser.add_argument("--test-notify", action="store_true", help="send a test notice first")
    parser.add_argument("--json", action="store_true", help="one JSON object, stable names")
    return parser
