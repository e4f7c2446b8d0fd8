"""`python -m tests.faults.kill_campaign DIR --kills N --seed S`: kill an agent again and again.

Each round is a run directory with several starts; each start dies by SIGKILL at a random system
call of whatever thread makes it (log, blobs, checkpoints, pruning, spool): before it, after it, or
half-way through; some checkpoints meet a full disk before. Every other death is a power loss: what
no fsync covered is gone, or a part of it. Then the run is recovered and compared with what the
agent itself noted, now and then without its newest full checkpoint as well. Prints one JSON
object; ends with 1 at the first state that differs, and keeps that run's directory.
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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from memwatch.actuators.folder import ControlFolder
from memwatch.actuators.spool import Spool
from memwatch.agent import log, recover
from memwatch.agent.journal import JOURNAL_KINDS
from memwatch.agent.memory.values import Types, digest
from memwatch.agent.recovery.report import Report
from memwatch.agent.recovery.state import State
from memwatch.domain.clock import SystemClock
from memwatch.domain.command import Command
from memwatch.domain.errors import LogError
from memwatch.wal.codec import DamagedLineError, decode
from memwatch.wal.manifest import parse_run
from memwatch.wal.segment import delta_range, full_lsn
from tests.agent.reading import read_log
from tests.faults.forgetful_disk import ForgetfulDisk
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
CHANGES = frozenset({"put", "update", "delete"}) | JOURNAL_KINDS
DISK_FULL_SHARE = 0.05
"""Of the calls that name a file of a checkpoint."""
WITHOUT_NEWEST_SHARE = 0.25
"""Of the recoveries, how many are done without the newest full checkpoint, too."""


class WrongError(Exception):
    """A recovery that did not arrive where it should."""


class Tally(Struct):
    """What was done."""

    kills: int = 0
    """Deaths, of both kinds."""
    power_losses: int = 0
    ended: int = 0
    """Starts that came to their end before their call did."""
    exact: int = 0
    """Recoveries that were compared at the very record that came last."""
    earlier: int = 0
    """Recoveries whose last records had no note yet: compared as of the last one that has."""
    unlucky: int = 0
    """Power losses that left records which were not durable, and not what they need."""
    without_newest: int = 0
    """Recoveries that the older chain had to do."""
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
    disk = home / "disk"
    (disk / "workspace").mkdir(parents=True)
    (disk / "run").mkdir()
    for _ in range(STARTS):
        _ask(disk / "run", chance)
        power_loss = chance.random() < 0.5
        died = _start(home, chance.getrandbits(32), power_loss=power_loss)
        tally.kills += died
        tally.ended += not died
        if died and power_loss:
            tally.power_losses += 1
            _lose_power(home)
        if (disk / "run" / "run.json").exists():
            _check(home, chance, tally, power_loss=died and power_loss)
        elif max(_notes(home / "notes").durable, default=0):
            raise WrongError("the run is gone")


def _lose_power(home: Path) -> None:
    shutil.rmtree(home / "disk")
    (home / "image").rename(home / "disk")
    (home / "memory").unlink(missing_ok=True)
    (home / "power-was-lost").touch()


def _ask(run: Path, chance: random.Random) -> None:
    """Leave a request for the next start."""
    if not (run / "control" / "new").exists() or not (run / "run.json").exists():
        return
    wanted = chance.choice(REQUESTS)
    run_id = parse_run((run / "run.json").read_bytes()).run_id
    name = f"request-{chance.getrandbits(32):x}"
    Spool(ControlFolder(run, run_id)).publish(name, wanted, SystemClock().wall_us())


def _start(home: Path, seed: int, *, power_loss: bool) -> bool:
    """Run one start in a child; returns whether it was killed."""
    child = os.fork()
    if child == 0:
        try:
            with suppress(LogError):  # a full disk where a hole must be closed: it does not start
                _live(home, random.Random(seed), power_loss=power_loss)
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


def _live(home: Path, chance: random.Random, *, power_loss: bool) -> None:
    """Work until the end; leaves what the disk knows, or has after the power loss."""
    disk = ForgetfulDisk(home / "disk", home / "memory")
    chances = random.Random(chance.getrandbits(32))

    def save() -> None:
        if power_loss:
            shutil.rmtree(home / "safe", ignore_errors=True)
            disk.save(home / "image", chances)
            disk.save(home / "safe")
            durable = max((writer.durable_lsn for writer in log._writers), default=0)
            (home / "durable").write_text(str(durable))
        else:
            disk.remember(home / "memory")

    def is_full(file: object) -> bool:
        ours = isinstance(file, Path) and file.is_relative_to(home / "disk/run/checkpoints")
        return ours and chances.random() < DISK_FULL_SHARE

    at, moment = chance.randint(1, LONGEST), chance.choice(MOMENTS)
    files = KillingFiles(at, moment, disk=disk, last_words=save, fails=is_full)
    witness, was_lost = Witness(home / "notes"), (home / "power-was-lost").exists()
    Agent(home / "disk", chance.getrandbits(32), files, witness, power_was_lost=was_lost).work()
    with files.lock:
        disk.remember(home / "memory")


def _check(home: Path, chance: random.Random, tally: Tally, *, power_loss: bool) -> None:
    run, notes = home / "disk" / "run", _notes(home / "notes")
    if power_loss and not _is_fine(recover(run)[1]):
        # By luck a record may survive without its blob. What was promised must do without luck.
        shutil.rmtree(home / "disk")
        (home / "safe").rename(home / "disk")
        tally.unlucky += 1
        durable = max(int((home / "durable").read_text()), *notes.durable, 0)
        _cut(run, durable)
        if not durable:  # it begins anew
            shutil.rmtree(run)
            run.mkdir()
            _forget_behind(home / "notes", 0)
            return
    shutil.rmtree(home / "safe", ignore_errors=True)
    state, report = _recover(run)
    _check_reach(state.last_lsn, notes, power_loss=power_loss)
    if power_loss:  # the numbers behind it come again, with other content
        _forget_behind(home / "notes", state.last_lsn)
    if report.lossy:
        (home / "had-a-hole").touch()  # an older chain ends there
    if (
        chance.random() < WITHOUT_NEWEST_SHARE
        and report.full is not None
        and not (home / "had-a-hole").exists()
    ):
        _check_older(home, state, report.full)
        tally.without_newest += 1
    noted = max((lsn for lsn in notes.states if lsn <= state.last_lsn), default=0)
    behind = [r for r in read_log(run / "wal")[0] if noted < r.lsn <= state.last_lsn]
    if not noted:
        tally.unchecked += 1
    elif not any(record.kind in CHANGES for record in behind):
        _compare(state, notes.states[noted], report)
        tally.exact += 1
    elif _check_earlier(home, noted, notes.states[noted], power_loss=power_loss):
        tally.earlier += 1
    else:
        tally.unlucky += 1


def _check_reach(last_lsn: int, notes: Notes, *, power_loss: bool) -> None:
    promised = max(notes.durable if power_loss else notes.states, default=0)
    if last_lsn < promised:
        what = "durable" if power_loss else "acknowledged"
        raise WrongError(f"{promised} was {what}, {last_lsn} recovered")


def _check_older(home: Path, state: State, full: str) -> None:
    """Recover a copy whose newest full checkpoint is gone."""
    with _copy(home) as copy:
        shutil.rmtree(copy / "checkpoints" / full)
        older, report = recover(copy)
        if older.last_lsn != state.last_lsn:
            raise WrongError(f"without {full} the recovery ends at {older.last_lsn}")
        _compare(older, state_hash(state.tiers, state.journal), report)


def _check_earlier(home: Path, lsn: int, expected: str, *, power_loss: bool) -> bool:
    """Recover a copy that ends with a record; False where bad luck leaves nothing to check."""
    with _copy(home) as copy:
        _cut(copy, lsn)
        if power_loss and not _is_fine(recover(copy)[1]):
            return False
        state, report = _recover(copy)
        if state.last_lsn != lsn:
            raise WrongError(f"cut behind record {lsn} the recovery ends at {state.last_lsn}")
        _compare(state, expected, report)
    return True


def _cut(run: Path, last_lsn: int) -> None:
    """Take away all behind a record: others, what is none, and checkpoints that reach further."""
    for segment in (run / "wal").iterdir():
        kept = b""
        for line in segment.read_bytes().splitlines(keepends=True):
            with suppress(DamagedLineError):
                kept += line if decode(line.removesuffix(b"\n")).lsn <= last_lsn else b""
        if kept:
            segment.write_bytes(kept)
        else:
            segment.unlink()
    for checkpoint in run.glob("checkpoints/*"):
        reached = full_lsn(checkpoint.name)
        span = delta_range(checkpoint.name)
        if reached is not None and reached > last_lsn:
            shutil.rmtree(checkpoint)
        elif span is not None and span[1] > last_lsn:
            checkpoint.unlink()


@contextmanager
def _copy(home: Path) -> Iterator[Path]:
    copy = home / "copy"
    shutil.copytree(home / "disk" / "run", copy)
    try:
        yield copy
    finally:
        shutil.rmtree(copy)


def _recover(run: Path) -> tuple[State, Report]:
    state, report = recover(run, types=(Finding,))
    if not _is_fine(report):
        raise WrongError(f"lost: {report.lost}")
    if any(" is missing" in told and told.startswith("checkpoints/") for told in report.damaged):
        raise WrongError(f"committed, and not there: {report.damaged}")
    types = Types((Finding,))
    for name, entries in state.tiers.items():
        for key, entry in entries.items():
            if entry.source is None:
                value = state[name][key]
                if digest(types.encode(value).canonical) != entry.digest:
                    raise WrongError(f"{name} {key} came back with another value")
    return state, report


def _is_fine(report: Report) -> bool:
    """Whether nothing is lost but records: which of them may be, the agent's notes tell."""
    return report.matches is not False and all(" cannot be had (" in lost for lost in report.lost)


def _compare(state: State, expected: str, report: Report) -> None:
    found = state_hash(state.tiers, state.journal)
    if found != expected:
        raise WrongError(f"{found} at {state.last_lsn}, the agent had {expected} ({report})")


class Notes(Struct):
    """What the agent wrote down."""

    states: dict[int, str]
    """Hash of the state, by lsn."""
    durable: list[int]
    """Each `durable_lsn` that it was told."""


def _notes(path: Path) -> Notes:
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    words = [line.split() for line in lines]
    return Notes({int(lsn): state for lsn, state, _ in words}, [int(d) for *_, d in words])


def _forget_behind(path: Path, lsn: int) -> None:
    if path.exists():
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if int(line.split()[0]) <= lsn))


if __name__ == "__main__":
    sys.exit(main())
