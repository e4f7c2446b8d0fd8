"""`python -m tests.faults.guard_kill_campaign --kills N --seed S`: kill a guard on and on.

Each round is an agent that works under a policy of short times while its memory is pressed over
one threshold after another. Each of its guards dies by SIGKILL, most between a decision and the
record of its answer; now and then the agent dies as well. Then a last guard brings all to its end,
and both logs and the history are held against what was promised. Prints one JSON object; ends with
1 at the first round that broke a promise, and keeps its directory.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import duckdb
from msgspec import Struct, to_builtins

from memwatch.domain.command import FINAL_STATES
from memwatch.domain.record import Record
from memwatch.runtime.runs.attach import Attachment
from memwatch.wal.segment import segments
from tests.e2e.night import (
    MB,
    agent_records,
    ask,
    guard_records,
    nothing_lost,
    run_id_of,
    short_policy,
    state_of,
    viewer,
    wait_mode,
)
from tests.e2e.stage import Process, Puppet, Stage, still
from tests.faults.learnt_once import efficacy_told_once, restarts_counted_once
from tests.waiting import wait_for

LIMIT = 250 * MB
KILLS_A_ROUND = 8
MOST_CALLS = 30_000
"""About as many as a guard makes from a decision to the end of its plan."""
LONGEST_S = 5.0
"""A guard that did not die by its count by then is killed from outside."""
SHARES = (0.62, 0.8, 0.8, 0.93, 0.93, 0.97)
POLICY = """
pause: {lease_s: 6, longest_s: 60}
levels:
  warn: {cooldown_s: 2}
  intervene: {cooldown_s: 2}
  emergency: {cooldown_s: 2}
  hard: {cooldown_s: 2}
"""
GUARDS_TO_REBUILD = 5
JOBS = frozenset({"checkpoint", "purge", "reclaim", "abort_experiment", "retain"})
COMPARED = ("start", "experiment", "checkpoint_event", "intervention_event", "decision", "event")


class BrokenError(Exception):
    """A promise that was not kept."""


class Tally(Struct):
    """What was done."""

    rounds: int = 0
    kills: int = 0
    by_count: int = 0
    """Kills between a decision and its end; the others came from outside, at any moment."""
    agents: int = 0
    """Agents that were killed, too."""
    plans: int = 0
    requests: int = 0
    answered: int = 0
    """Requests that came to `done`."""
    unknown: int = 0
    """Plans or requests that ended so."""
    read_only: int = 0
    """Rounds at whose end only a person could let the agent write."""
    learnt: int = 0
    """Restarts, and stages of what interventions did."""
    rows: int = 0
    """Of the histories that were compared with those built anew."""


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    dice, tally = random.Random(options.seed), Tally()
    while tally.kills < options.kills:
        with Stage() as stage:
            try:
                Round(stage, dice, tally).play(min(KILLS_A_ROUND, options.kills - tally.kills))
            except (BrokenError, AssertionError) as error:
                kept = stage.folder.with_suffix(".broken")
                for process in stage.processes:
                    process.end()
                stage.folder.rename(kept)
                print(f"{error}\nseed {options.seed}, {tally}, kept in {kept}", file=sys.stderr)
                return 1
    print(json.dumps(to_builtins(tally)))
    return 0


class Round:
    """One run, its agents and its guards."""

    def __init__(self, stage: Stage, dice: random.Random, tally: Tally) -> None:
        self.stage, self.dice, self.tally = stage, dice, tally
        self.puppet = self._agent()
        self.run_dir = self.puppet.run_dir
        short_policy(stage, self.run_dir, POLICY)
        self.said: dict[int, Record] = {}
        """Answers by the agent's log, which forgets what a checkpoint holds."""
        self.recovered: dict[int, None] = {}
        """Times of what agents recovered, likewise."""

    def play(self, kills: int) -> None:
        for _ in range(kills):
            self._kill_one()
        last = self.stage.guard(self.run_dir)
        self._settle()
        self.puppet.ask("rest")  # nothing comes after what the last guard read
        rows = viewer(self.stage, self.run_dir, "ann").rows("interventions", 500)
        last.end()
        self.puppet.kill()
        self.puppet.wait()
        told = guard_records(self.stage, self.run_dir)
        one_plan_at_a_time(told)
        self._count(told)
        epochs_rise(told)
        self._listen()
        nothing_done_twice(told, self.said.values(), self._acks())
        efficacy_told_once(told, rows)
        restarts_counted_once(self._home, told, list(self.recovered))
        self.tally.learnt += sum(record.kind in ("efficacy", "restart") for record in told)
        nothing_lost(self.run_dir)
        self._history_is_rebuilt(max(record.t_us for record in told))
        self.tally.rounds += 1

    def _agent(self) -> Puppet:
        puppet = self.stage.puppet("night", memory_limit_bytes=LIMIT)
        puppet.ask("work", self.dice.choice([8, 8, 500]))
        return puppet

    def _kill_one(self) -> None:
        calls = round(MOST_CALLS ** self.dice.random())
        words = ["-m", "tests.faults.doomed_guard", str(self.run_dir), str(calls)]
        guard = self.stage.start(words)
        wait_for(lambda: self._serves(guard), "the guard to serve")
        self._press(self.dice.choice(SHARES))
        before = self._is_read_only()
        by_agent = self.dice.random() < 0.2
        until = time.monotonic() + self.dice.uniform(0.2, LONGEST_S)
        while guard.alive and time.monotonic() < until:
            time.sleep(0.005)
        self.tally.by_count += not guard.alive
        guard.kill()
        guard.wait()
        self.tally.kills += 1
        self._listen()
        if before and not by_agent:
            _hold(self._is_read_only(), "read-only was left by nobody")
        if self.dice.random() < 0.5:
            self.puppet.ask("release")
        if by_agent:
            self.tally.agents += 1
            self.puppet.kill()
            self.puppet.wait()
            self.puppet = self._agent()

    def _is_read_only(self) -> bool:
        """Whether it is held so; the mode may be `aborting` for a moment meanwhile."""
        return any(one["op"] == "read_only" for one in state_of(self.run_dir)["holds"])

    @property
    def _home(self) -> Path:
        return self.stage.home / "runs" / run_id_of(self.run_dir)

    def _listen(self) -> None:
        found = agent_records(self.run_dir, "recovery")
        self.recovered |= {record.t_us: None for record in found if "terms" in record.members}
        self.said |= {record.lsn: record for record in agent_records(self.run_dir, "command")}

    def _acks(self) -> dict[str, str]:
        files = (self.run_dir / "control" / "ack").glob("*.json")
        acks = [json.loads(file.read_bytes()) for file in files]
        return {ack["id"]: ack["state"] for ack in acks}

    def _serves(self, guard: Process) -> bool:
        """Whether the guard serves, or is dead already: it goes on with what the last one began."""
        attached = Attachment(self.run_dir)
        return not guard.alive or (attached.guard_pid == guard.pid and attached.socket.exists())

    def _press(self, share: float) -> None:
        status = Path(f"/proc/{self.puppet.pid}/status").read_text()
        rss = next(int(line.split()[1]) for line in status.splitlines() if "VmRSS" in line) * 1024
        self.puppet.ask("hold", max(round(share * LIMIT) - rss, 0))

    def _settle(self) -> None:
        """Let all come to its end: what is held, planned, asked."""
        self.puppet.ask("release")
        person = viewer(self.stage, self.run_dir, "ann")
        is_over = self.stage.wait_status(
            self.run_dir,
            lambda s: s["level"] == "normal" and s["engine"]["plan"] is None,
            "all plans to end",
        )
        held = [one["op"] for one in is_over["holds"] if one["owner"] == "engine"]
        asked = guard_records(self.stage, self.run_dir, "intervention")
        was_hard = any(r.text("op") == "read_only" and r.text("state") == "done" for r in asked)
        _hold(was_hard == ("read_only" in held), f"read-only was asked: {was_hard}, holds: {held}")
        if was_hard:
            self.tally.read_only += 1
            ask(person, "read_write", args={"owner": "engine"})
        wait_mode(self.run_dir, "running", seconds=30)
        _hold(state_of(self.run_dir)["holds"] == [], "a hold is left")
        wait_for(lambda: not _open_requests(self._asked()), "an end of each request", 120)

    def _asked(self) -> list[Record]:
        return guard_records(self.stage, self.run_dir, "intervention")

    def _count(self, told: list[Record]) -> None:
        plans = {r.text("id"): r.text("state") for r in told if r.kind == "plan"}
        requests = {r.text("id"): r.text("state") for r in told if r.kind == "intervention"}
        self.tally.plans += len(plans)
        self.tally.requests += len(requests)
        ends = Counter([*plans.values(), *requests.values()])
        self.tally.answered += Counter(requests.values())["done"]
        self.tally.unknown += ends["unknown"]

    def _history_is_rebuilt(self, until_us: int) -> None:
        """Hold the history that all these guards wrote against one that is made of the logs."""
        path = self._home / "history.duckdb"
        gone = min(segments(file.name for file in (self.run_dir / "wal").iterdir()))
        before = _rows(path, until_us, gone)
        path.rename(path.with_suffix(".first"))
        path.with_name(path.name + ".wal").unlink(missing_ok=True)
        for _ in range(GUARDS_TO_REBUILD):  # one that is told to end leaves the rest to the next
            guard = self.stage.guard(self.run_dir)
            with still(1.0):
                pass
            guard.end()
            again = _rows(path, until_us, gone)
            if again == before:
                break
        for table in COMPARED:
            missing, more = before[table] - again[table], again[table] - before[table]
            _hold(not missing and not more, f"{table} differs: lacks {missing}, has also {more}")
        self.tally.rows += sum(rows.total() for rows in before.values())


def one_plan_at_a_time(told: Iterable[Record]) -> None:
    """Hold plans to it: none is moved while another one is under way, and all have an end."""
    under_way = ""
    for record in told:
        if record.kind != "plan":
            continue
        name, over = record.text("id"), record.text("state") in FINAL_STATES
        _hold(under_way in ("", name), f"{name} was moved while {under_way} was under way")
        under_way = "" if over else name
        _hold(bool(record.text("why")), f"{name} has no reason")
    _hold(not under_way, f"{under_way} has no end")


def epochs_rise(told: Iterable[Record]) -> None:
    """Hold guards to it: each has an epoch above that of the one before."""
    epochs = [record.members["epoch"] for record in told if record.kind == "guard.begin"]
    _hold(epochs == sorted(set(epochs)), f"epochs {epochs}")


def nothing_done_twice(
    told: Iterable[Record], said: Iterable[Record], acks: Mapping[str, str]
) -> None:
    """Hold requests to it: each was on record before it was obeyed, obeyed once, told truly."""
    by_engine = [record for record in said if record.text("origin") == "engine"]
    asked = {r.text("id") for r in told if r.kind == "intervention" and r.text("state") == "asked"}
    done = Counter(record.text("id") for record in by_engine if record.text("state") == "done")
    for name, times in done.items():
        _hold(times == 1, f"{name} was done {times} times")
        _hold(name in asked, f"{name} was not on record")
        _hold(acks.get(name) == "done", f"{name} was done and answered {acks.get(name)}")
    for plan in (r for r in told if r.kind == "plan"):
        for step in plan.members["steps"]:
            told_done = step["op"] in JOBS and step["state"] == "done"
            _hold(not told_done or acks.get(step["id"]) == "done", f"{step['id']} is called done")


def _open_requests(asked: Iterable[Record]) -> list[str]:
    states = {record.text("id"): record.text("state") for record in asked}
    return [name for name, state in states.items() if state not in FINAL_STATES]


def _rows(path: Path, until_us: int, first: int) -> dict[str, Counter[tuple[object, ...]]]:
    """Return what a history holds up to an instant, of segments that are on disk still."""
    with duckdb.connect(str(path), read_only=True) as history:
        return {
            table: Counter(
                history.execute(
                    f"SELECT * FROM {table} WHERE t_us <= ? AND (log = 'guard' OR segment >= ?)",
                    [until_us, first],
                ).fetchall()
            )
            for table in COMPARED
        }


def _hold(so: bool, what: str) -> None:
    if not so:
        raise BrokenError(what)


if __name__ == "__main__":
    sys.exit(main())
