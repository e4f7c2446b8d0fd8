"""A night on short clocks: policies, what the guard wrote down of it, and what was not lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memwatch.agent.recovery.recover import recover
from memwatch.domain.command import FINAL_STATES, Command, CommandInfo
from memwatch.domain.record import Record
from memwatch.runtime.protocol.client import GuardSession
from memwatch.runtime.runs.attach import Attachment
from memwatch.wal.manifest import parse_run
from tests.agent.reading import read_log
from tests.e2e.stage import Puppet, Stage, memory
from tests.waiting import wait_for

MB = 1_000_000
SHORT = """
mode: act
enter: {warn_s: 1, intervene_s: 1, samples: 2}
exit: {dwell_s: 1}
soft: {window_s: 20, step_s: 10, forecast: []}
outlook: {assumed_s: 0.01, margin_s: 0.01, reserve_share: 0.01}
measure: {after_s: 1}
pause: {lease_s: 20, longest_s: 60}
levels:
  warn: {cooldown_s: 10}
  intervene: {cooldown_s: 10}
  emergency: {cooldown_s: 10}
  hard: {cooldown_s: 10}
"""
"""A policy that decides in seconds what the usual one decides in minutes."""


def short_policy(stage: Stage, run_dir: Path, more: str = "") -> None:
    """Give a run a policy of its own: `SHORT`, or `more` in place of the sections it names."""
    sections = _sections(SHORT) | _sections(more)
    path = stage.home / "runs" / run_id_of(run_dir) / "policy.yaml"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text("\n".join(sections.values()) + "\n")
    path.chmod(0o600)


def _sections(text: str) -> dict[str, str]:
    """Return the top-level members of a block of YAML, each with its lines."""
    sections: dict[str, str] = {}
    for line in text.strip("\n").splitlines():
        if line[:1].isalpha():
            name = line.partition(":")[0]
        sections[name] = f"{sections[name]}\n{line}" if line[:1].isspace() else line
    return sections


def run_id_of(run_dir: Path) -> str:
    """Return the id of a run, once it introduced itself."""
    path = run_dir / "run.json"
    wait_for(path.exists, "the run's introduction")
    return parse_run(path.read_bytes()).run_id


def used_bytes(stage: Stage, run_dir: Path) -> float:
    """Return what the guard measures now, once it does."""
    status = stage.wait_status(
        run_dir, lambda s: any(r["name"] == "memory" for r in s["resources"]), "a measurement"
    )
    return float(memory(status)["used"])


def press(stage: Stage, puppet: Puppet, share: float, limit_bytes: float) -> None:
    """Really occupy memory until usage is at a share of the limit."""
    puppet.ask("hold", max(round(share * limit_bytes - used_bytes(stage, puppet.run_dir)), 0))


def guard_records(stage: Stage, run_dir: Path, *kinds: str) -> list[Record]:
    """Return what guards wrote down of a run, of these kinds if any are named."""
    records, _ = read_log(stage.home / "runs" / run_id_of(run_dir) / "wal")
    return [record for record in records if not kinds or record.kind in kinds]


def agent_records(run_dir: Path, *kinds: str) -> list[Record]:
    """Return what the agent's log holds."""
    records, _ = read_log(run_dir / "wal")
    return [record for record in records if not kinds or record.kind in kinds]


def plans(stage: Stage, run_dir: Path, level: str) -> list[Record]:
    """Return the newest record of each plan of a level."""
    found: dict[str, Record] = {}
    for record in guard_records(stage, run_dir, "plan"):
        if record.text("level") == level:
            found[record.text("id")] = record
    return list(found.values())


def steps_of(plan: Record) -> dict[str, str]:
    """Return how each step of a plan ended, by operation."""
    return {step["op"]: step["state"] for step in plan.members["steps"]}


def wait_plan(
    stage: Stage,
    run_dir: Path,
    level: str,
    holds: Callable[[Record], Any],
    what: str,
    seconds: float = 30.0,
) -> Record:
    """Return the first plan of a level for which `holds` is true."""

    def look() -> Record | None:
        return next((plan for plan in plans(stage, run_dir, level) if holds(plan)), None)

    try:
        return wait_for(look, what, seconds)
    except AssertionError as error:
        told = [
            (r.kind, {k: v for k, v in r.members.items() if k in _TOLD})
            for r in guard_records(
                stage, run_dir, "plan", "level", "intervention", "engine.decision"
            )
        ]
        raise AssertionError(f"{error}: {json.dumps(told[-30:], indent=1)}") from None


_TOLD = ("id", "level", "state", "detail", "why", "op", "steps", "what", "effect")


def is_over(plan: Record) -> bool:
    """Say whether a plan has its last state."""
    return plan.text("state") in FINAL_STATES


def ask(session: GuardSession, op: str, wait_s: float = 20.0, **members: Any) -> CommandInfo:
    """Ask for something as a viewer does; returns what became of it."""
    command_id = session.submit(Command(op=op, **members))

    def look() -> CommandInfo | None:
        info = session.command(command_id)
        return info if info.state in FINAL_STATES else None

    return wait_for(look, f"the answer to {op}", wait_s)


def viewer(stage: Stage, run_dir: Path, name: str) -> GuardSession:
    """Open a session as a viewer with a name."""
    session = wait_for(lambda: _session(run_dir, name), "a session with the guard")
    stage.keep(session)
    return session


def _session(run_dir: Path, name: str) -> GuardSession | None:
    attachment = Attachment(run_dir)
    return GuardSession(attachment.socket, viewer=name) if attachment.guard_pid else None


def mode_of(run_dir: Path) -> str:
    """Return the mode that the agent itself states."""
    return str(state_of(run_dir)["mode"])


def state_of(run_dir: Path) -> dict[str, Any]:
    """Return what the agent says of itself."""
    found: dict[str, Any] = json.loads((run_dir / "control" / "state.json").read_bytes())
    return found


def wait_mode(run_dir: Path, *modes: str, seconds: float = 20.0) -> str:
    """Return the first of these modes that the agent states."""
    return wait_for(
        lambda: mode if (mode := mode_of(run_dir)) in modes else None,
        f"the agent to be {' or '.join(modes)}",
        seconds,
    )


def nothing_lost(run_dir: Path, types: tuple[type, ...] = ()) -> Any:
    """Recover a run that has no process any more; returns its state, which is whole."""
    state, report = recover(run_dir, types=types)
    assert not report.lost
    assert not report.damaged
    return state
