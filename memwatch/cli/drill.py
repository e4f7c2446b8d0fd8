"""`memwatch drill`: recover a run for practice, in a process of its own, and say how it went."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from memwatch.analytics.recovery.costs import costs_of, learn, shared
from memwatch.analytics.recovery.estimate import comparable, expected
from memwatch.cli.status import read_status
from memwatch.config.locations import home, lasting_environment, run_home
from memwatch.domain.clock import SystemClock
from memwatch.domain.errors import MemwatchError, UsageError
from memwatch.domain.recovery import MeasuredTerm, PastRecovery, Recovery
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text, change_text, counted, duration_text, estimate_text
from memwatch.host.lock import LockHeldError
from memwatch.ingest.open_run import open_run
from memwatch.runtime.runs.host_file import HostFile
from memwatch.runtime.runs.recovery_file import append_recovery
from memwatch.runtime.runs.target import resolve, run_key

_EXAMPLE = """examples:
  memwatch drill night-7
  memwatch drill ./runs/night-7 --json | jq '.total_s'

The run may be alive: nothing in its directory is written. The result is held against what was
estimated just before (--json: estimate, error_share; work_error_share without the start, which no
drill measures), is shown by the dashboard, and teaches the estimate of what a crash would cost.

exit status: 0 all was had back; 1 something was lost, or the state is not the one that the agent
logged; 2 no such run, or one that cannot be recovered."""

_WAITED_SHARE = 0.05
"""Waiting for others is said above this share of the time: the next drill will differ."""

Result = dict[str, Any]

_STARTS = {
    "agent": "the agent's, as its last ones took",
    "drill": "of the drill's process: no start of the agent was seen",
}
_HELD_AGAINST = ("estimate", "expected", "error_share", "work_error_share")


def run(words: list[str]) -> int:
    """Drill a run; returns 1 when not everything was had back as it was."""
    parser = argparse.ArgumentParser(
        prog="memwatch drill",
        description="Recovers a run for practice: proves and measures it, writes nothing to it.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", help="run directory or run id")
    parser.add_argument("--json", action="store_true", help="one JSON object, stable names")
    options = parser.parse_args(words)
    opened = open_run(resolve(options.target))
    if opened.foreign is not None:
        raise UsageError("only the program that wrote these checkpoints can load them: no drill")
    path = opened.path
    known = _estimated(path)
    result = {"t_us": SystemClock().wall_us(), "kind": "drill", **_drilled(path)}
    result |= _with_agents_start(result, known)
    done = msgspec.convert(result, PastRecovery)
    took = {term.name: term.seconds for term in done.terms}
    own_start_s = took.get("start", 0.0) if result["start_of"] == "drill" else None
    done = replace(
        done,
        estimate=comparable(known.terms, took, own_start_s),
        expected=expected(known.terms),
    )
    result |= {name: msgspec.to_builtins(getattr(done, name)) for name in _HELD_AGAINST}
    why_unkept = _keep(path, result["run_id"], done)
    print(json.dumps(result) if options.json else "\n".join(_lines(result, done)))
    if why_unkept:
        print(f"memwatch: the result is not kept: {why_unkept}", file=sys.stderr)
    return int(result["lossy"] or result["matches"] is False)


def _estimated(path: Path) -> Recovery:
    """Return what a crash would cost, as the guard shows it, else by a look of our own."""
    try:
        return msgspec.convert(json.loads(read_status(path))["recovery"], Recovery)
    except (MemwatchError, ValueError, KeyError):  # a guard of another version: drill all the same
        return Recovery()


def _with_agents_start(result: Result, known: Recovery) -> Result:
    """Put the agent's start, as its last ones took, in place of that of the drill's process.

    So the total is what a crash would cost, as is the estimate; a drill cannot start the agent.
    """
    start = next((one for one in known.terms if one.name == "start"), None)
    own = next((one for one in result["terms"] if one["name"] == "start"), None)
    if start is None or start.basis != "measured" or own is None:
        return {"start_of": "drill"}
    others = [one for one in result["terms"] if one is not own]
    return {
        "start_of": "agent",
        "total_s": result["total_s"] - own["seconds"] + start.seconds,
        "terms": [{**own, "seconds": start.seconds}, *others],
    }


def _drilled(path: Path) -> Result:
    """Drill in a fresh process: its memory is that of the recovery alone."""
    command = [sys.executable, "-m", "memwatch.agent.recovery", str(path.absolute())]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=lasting_environment(),
        check=False,
    )
    if done.returncode < 0:
        raise MemwatchError(
            f"the recovery of {path} was ended by signal {-done.returncode}; with signal 9 it "
            "needed more memory than there is: try it where there is more"
        )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise MemwatchError(said[-1] if said else f"{path} cannot be recovered")
    result: Result = json.loads(done.stdout)
    return result


def _keep(path: Path, run_id: str, done: PastRecovery) -> str:
    """Add the result to the recoveries of the run, and to what they cost on this machine.

    Returns why that could not be.
    """
    if not run_id:
        return "no file of the run says which it is"
    try:
        append_recovery(run_home(run_key(path, run_id), create=True), done)
    except OSError as error:
        return inert(f"{error.strerror or error} ({error.filename})", 300)
    with suppress(OSError, LockHeldError):  # then it teaches this run alone
        HostFile(home()).change_costs(lambda kept: shared(learn((done,)), costs_of(kept)))
    return ""


def _lines(result: Result, done: PastRecovery) -> list[str]:
    """Return the result for people, in a dozen lines."""
    terms = {term.name: term for term in done.terms}
    full, deltas, count = result["full"], len(result["deltas"]), result["records"]
    what = {
        "start": _STARTS[result["start_of"]],
        "load": inert(full, 40) if full else "no full checkpoint: the log alone",
        "blobs": counted(terms["blobs"].records, "persisted value"),
        "read": f"{counted(deltas, 'increment')}, {counted(count, 'record')} of the log",
        "replay": counted(terms["replay"].records, "record"),
        "decode": f"{counted(result['values'], 'value')}, not in the total: done as they are used",
    }
    rows = [
        (name, terms[name].seconds, _size(terms[name]), text)
        for name, text in what.items()
        if name in terms
    ]
    came = f"from disk, {'cold' if done.cold_cache else 'warm'} cache"
    if (waited_s := result["waited_s"] or 0.0) > _WAITED_SHARE * done.total_s:
        came += f"; the drill waited {duration_text(waited_s)} for the processor"
    rows.insert(-1, ("total", done.total_s, bytes_text(done.bytes), came))
    lines = [
        f"{name:<8}{duration_text(seconds):>7} {size:>6}  {text}".rstrip()
        for name, seconds, size, text in rows
    ]
    peak = f"{bytes_text(done.memory_bytes)} at most, {bytes_text(done.state_bytes)} of state"
    lines += [f"memory  {peak}", f"state   {_state(result)}", f"lost    {_lost(result)}"]
    return [*lines, *_comparison(done)]


def _size(term: MeasuredTerm) -> str:
    return "" if term.name == "start" else bytes_text(term.bytes)


def _comparison(done: PastRecovery) -> Iterator[str]:
    span, error = done.estimate, done.error_share
    if span is not None and error is not None:
        text = f"estimated {estimate_text(span.low, span.likely, span.high)}"
        yield f"{text}, took {duration_text(done.total_s)}: {change_text(error)}"
    start_s = next((term.seconds for term in done.terms if term.name == "start"), 0.0)
    if span is not None and start_s and (error := done.work_error_share) is not None:
        thought, took = span.likely - start_s, done.total_s - start_s
        text = f"{duration_text(thought)}, took {duration_text(took)}: {change_text(error)}"
        yield f"without the start, which no drill measures: {text}"


def _state(result: Result) -> str:
    at = f"lsn {result['last_lsn']}"
    if result["matches"] is None:
        return f"{at}; the agent logged no state hash yet"
    if not result["matches"]:
        return f"{at}; NOT the one that the agent logged"
    return f"{at}; the hash that the agent logged at lsn {result['checked_lsn']} matches"


def _lost(result: Result) -> str:
    lost, damaged = result["lost"], result["damaged"]
    told = "nothing"
    if lost:
        told = inert(lost[0], 300) + (f" (and {len(lost) - 1} more: --json)" if lost[1:] else "")
    elif damaged:
        told += f"; {len(damaged)} damaged: {inert(damaged[0], 200)}"
    return told
