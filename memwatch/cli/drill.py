"""`memwatch drill`: recover a run for practice, in a process of its own, and say how it went."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from memwatch.config.locations import lasting_environment, run_home
from memwatch.domain.clock import SystemClock
from memwatch.domain.errors import MemwatchError
from memwatch.domain.recovery import PastRecovery
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text, duration_text
from memwatch.ingest.open_run import open_run
from memwatch.runtime.runs.drill_file import append_drill
from memwatch.runtime.runs.target import resolve, run_key

_EXAMPLE = """examples:
  memwatch drill night-7
  memwatch drill ./runs/night-7 --json | jq '.total_s'

The run may be alive: nothing in its directory is written. The result is shown by the dashboard.

exit status: 0 all was had back; 1 something was lost, or the state is not the one that the agent
logged; 2 no such run, or one that cannot be recovered."""

Result = dict[str, Any]


def run(words: list[str]) -> int:
    """PastRecovery a run; returns 1 when not everything was had back as it was."""
    parser = argparse.ArgumentParser(
        prog="memwatch drill",
        description="Recovers a run for practice: proves and measures it, writes nothing to it.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", help="run directory or run id")
    parser.add_argument("--json", action="store_true", help="one JSON object, stable names")
    options = parser.parse_args(words)
    path = open_run(resolve(options.target)).path
    result = {"t_us": SystemClock().wall_us(), **_drilled(path)}
    why_unkept = _keep(path, result)
    print(json.dumps(result) if options.json else "\n".join(_lines(result)))
    if why_unkept:
        print(f"memwatch: the result is not kept: {why_unkept}", file=sys.stderr)
    return int(result["lossy"] or result["matches"] is False)


def _drilled(path: Path) -> Result:
    """PastRecovery in a fresh process: its memory is that of the recovery alone."""
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


def _keep(path: Path, result: Result) -> str:
    """Add the result to the drills of the run; returns why that could not be."""
    if not result["run_id"]:
        return "no file of the run says which it is"
    try:
        home = run_home(run_key(path, result["run_id"]), create=True)
        append_drill(home, msgspec.convert(result, PastRecovery))
    except OSError as error:
        return inert(f"{error.strerror or error} ({error.filename})", 300)
    return ""


def _lines(result: Result) -> list[str]:
    """Return the result for people, in eight lines."""
    terms = {term["name"]: term for term in result["terms"]}
    full, deltas, count = result["full"], len(result["deltas"]), result["records"]
    what = {
        "load": inert(full, 40) if full else "no full checkpoint: the log alone",
        "read": f"{deltas} increment{_s(deltas)}, {count} record{_s(count)} of the log",
        "decode": f"{result['values']} value{_s(result['values'])}",
        "replay": "",
    }
    cache = "cold" if result["cold_cache"] else "warm"
    rows = [(name, terms[name]["seconds"], terms[name]["bytes"], what[name]) for name in what]
    rows.append(("total", result["total_s"], result["bytes"], f"from disk, {cache} cache"))
    lines = [
        f"{name:<8}{duration_text(seconds):>7} {bytes_text(size):>6}  {text}".rstrip()
        for name, seconds, size, text in rows
    ]
    peak = f"{bytes_text(result['memory_bytes'])} at most"
    return [*lines, f"memory  {peak}", f"state   {_state(result)}", f"lost    {_lost(result)}"]


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


def _s(count: int) -> str:
    return "" if count == 1 else "s"
