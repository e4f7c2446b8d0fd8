"""`python -m tests.faults.kill_campaign DIR --kills N --seed S`: kill an agent again and again.

Each round is a run directory with several starts; each start dies by SIGKILL at a random system
call of whatever thread makes it (log, blobs, checkpoints, pruning, spool): before it, after it, or
half-way through. Then the run is recovered and compared with what the agent itself noted. Prints
one JSON object; ends with 1 at the first state that differs, and keeps that run's directory.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import traceback
from pathlib import Path

from msgspec import Struct

from memwatch.actuators.spool import Spool
from memwatch.agent import recover
from memwatch.agent.memory.values import Types, digest
from memwatch.agent.recovery.report import Report
from memwatch.agent.recovery.state import State
from memwatch.domain.clock import SystemClock
from memwatch.domain.command import Command
from memwatch.domain.record import Record
from memwatch.wal.manifest import parse_run
from tests.agent.reading import read_log
from tests.faults.killing_files import MOMENTS, KillingFiles
from tests.faults.struggling_agent import Agent, Finding, Witness, state_hash

STARTS = 4
LONGEST = 400
"""Calls that a start lives at most, about what an agent makes that is left alone."""
REQUESTS = (
    Command(op="checkpoint", args={"kind": "full"}),
    Command(op="checkpoint", args={"kind": "experiment"}),
    Command(op="purge", args={"tier": "recent", "how": "reclaim"}),
    Command(op="purge", args={"how": "compress", "tier": "history"}),
    Command(op="abort_experiment"),
    Command(op="reclaim"),
)
CHANGES = frozenset({"put", "update", "delete"})


class WrongError(Exception):
    """A recovery that did not arrive where it should."""


class Tally(Struct):
    """What was done."""

    kills: int = 0
    ended: int = 0
    """Starts that came to their end before their call did."""
    exact: int = 0
    """Recoveries that were compared at the very record that came last."""
    one_back: int = 0
    """Recoveries whose last record had no note yet: compared without it as well."""
    unchecked: int = 0
    """Recoveries behind which nothing could be compared: killed while opening."""


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    tally, chance, number = Tally(), random.Random(args.seed), 0
    while tally.kills < args.kills:
        number += 1
        home = args.directory / f"round-{number}"
        try:
            _round(home, chance, tally)
        except WrongError as error:
            print(f"round {number} ({home}): {error}", file=sys.stderr)
            return 1
        shutil.rmtree(home)
    print(json.dumps({name: getattr(tally, name) for name in tally.__struct_fields__}))
    return 0


def _round(home: Path, chance: random.Random, tally: Tally) -> None:
    (home / "workspace").mkdir(parents=True)
    for _ in range(STARTS):
        _ask(home, chance)
        at, moment = chance.randint(1, LONGEST), chance.choice(MOMENTS)
        died = _start(home, chance.getrandbits(32), KillingFiles(at, moment))
        tally.kills += died
        tally.ended += not died
        if (home / "run" / "run.json").exists():
            _check(home, tally)


def _ask(home: Path, chance: random.Random) -> None:
    """Leave a request for the next start."""
    run = home / "run"
    if not (run / "control" / "new").exists():
        return
    wanted = chance.choice(REQUESTS)
    run_id = parse_run((run / "run.json").read_bytes()).run_id
    name = f"request-{chance.getrandbits(32):x}"
    Spool(run, run_id).publish(name, wanted, SystemClock().wall_us())


def _start(home: Path, seed: int, files: KillingFiles) -> bool:
    """Run one start in a child; returns whether it was killed."""
    child = os.fork()
    if child == 0:
        try:
            Agent(home, seed, files, Witness(home / "notes")).work()
            os._exit(0)
        except BaseException:  # noqa: BLE001 - the child must end here, whatever happened
            traceback.print_exc()
            os._exit(3)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    if status:
        raise WrongError(f"the agent ended with status {status}")
    return False


def _check(home: Path, tally: Tally) -> None:
    notes = _notes(home / "notes")
    state, report = _recover(home / "run")
    if notes and state.last_lsn < max(notes):
        raise WrongError(f"{max(notes)} was acknowledged, {state.last_lsn} recovered")
    noted = max((lsn for lsn in notes if lsn <= state.last_lsn), default=0)
    if not noted:
        tally.unchecked += 1
        return
    behind = [r for r in read_log(home / "run" / "wal")[0] if r.lsn > noted]
    changes = [record for record in behind if record.kind in CHANGES]
    if not changes:
        _compare(state, notes[noted], report)
        tally.exact += 1
    elif len(changes) == 1 and changes[0] is behind[-1]:
        _check_without(home, changes[0], notes[noted])
        tally.one_back += 1
    else:
        tally.unchecked += 1


def _check_without(home: Path, last: Record, expected: str) -> None:
    """Recover a copy that lacks the newest record."""
    copy = home / "copy"
    shutil.copytree(home / "run", copy)
    newest = max((copy / "wal").iterdir())
    text = newest.read_bytes()
    whole = text[: text.rindex(b"\n")]
    newest.write_bytes(whole[: whole.rfind(b"\n") + 1])
    state, report = _recover(copy)
    if state.last_lsn != last.lsn - 1:
        raise WrongError(f"without record {last.lsn} the recovery ends at {state.last_lsn}")
    _compare(state, expected, report)
    shutil.rmtree(copy)


def _recover(run: Path) -> tuple[State, Report]:
    state, report = recover(run, types=(Finding,))
    if report.lossy:
        raise WrongError(f"lost: {report.lost}")
    types = Types((Finding,))
    for name, entries in state.tiers.items():
        for key, entry in entries.items():
            if entry.source is None:
                value = state[name][key]
                if digest(types.encode(value).canonical) != entry.digest:
                    raise WrongError(f"{name} {key} came back with another value")
    return state, report


def _compare(state: State, expected: str, report: Report) -> None:
    if state_hash(state.tiers) != expected:
        raise WrongError(f"the state at {state.last_lsn} differs from the agent's own ({report})")


def _notes(path: Path) -> dict[int, str]:
    if not path.exists():
        return {}
    lines = path.read_text().split("\n")[:-1]
    return {int(lsn): state for lsn, state in (line.split() for line in lines)}


if __name__ == "__main__":
    sys.exit(main())
