"""`memwatch report`: the night in ten lines, then tables; Markdown or JSON."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from memwatch.analytics.report.markdown import markdown
from memwatch.cli.amounts import duration
from memwatch.cli.report_sources import find, read_report
from memwatch.domain.clock import SystemClock
from memwatch.domain.errors import UsageError
from memwatch.domain.text import inert
from memwatch.runtime.runs.target import newest

_EXAMPLE = """examples:
  memwatch report night-7                      to the terminal
  memwatch report night-7 -o night-7.md
  memwatch report night-7 --since 10h          the last ten hours
  memwatch report night-7 --since 23:00        since eleven last night
  memwatch report night-7 --json | jq .lines

It reads the run's log, its guard's and the checkpoints; of a run without a guard, of one that is
over, and of checkpoint stores of other programs it tells what there is, and says what is missing.
exit status: 0 it is told; 2 no such run."""
_FORMS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d")
_CLOCK_FORMS = ("%H:%M:%S", "%H:%M")
_DAY_S = 86_400


def run(words: list[str]) -> int:
    """Print or write the report; returns 0."""
    parser = argparse.ArgumentParser(
        prog="memwatch report",
        description="The morning report of a run: ten lines, then tables, as Markdown.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    which = "run directory, checkpoint store or run id; default: the newest"
    parser.add_argument("run", nargs="?", help=which)
    parser.add_argument("-o", "--output", metavar="FILE", help="write it there")
    parser.add_argument("--since", metavar="T", help="10h, 23:00 or 2026-11-30 23:00")
    parser.add_argument("--json", action="store_true", help="one JSON object, stable names")
    options = parser.parse_args(words)
    since_us = since(options.since, SystemClock().wall_us() / 1e6) if options.since else 0
    found = find(options.run if options.run is not None else str(newest()))
    report = read_report(found, since_us)
    text = json.dumps(msgspec.to_builtins(report)) + "\n" if options.json else markdown(report)
    if options.output is None:
        sys.stdout.write(text)
    else:
        _write(Path(options.output), text)
    return 0


def since(text: str, now_s: float) -> int:
    """Return the wall time in microseconds that a person means; raises UsageError.

    A time of day is the newest one that is past.
    """
    found_us = _time(text, now_s)
    if found_us is None:
        shown = inert(text, 40)
        raise UsageError(f"--since {shown!r} is no time; write 10h, 23:00 or 2026-11-30 23:00")
    if found_us > now_s * 1e6:
        raise UsageError(f"--since {inert(text, 40)!r} is still to come")
    return found_us


def _time(text: str, now_s: float) -> int | None:
    try:
        return round((now_s - duration(text)) * 1e6)
    except argparse.ArgumentTypeError:
        pass
    for form in _FORMS:
        try:
            return round(time.mktime(time.strptime(text, form)) * 1e6)
        except (ValueError, OverflowError):
            continue
    today = time.strftime("%Y-%m-%d ", time.localtime(now_s))
    for form in _CLOCK_FORMS:
        try:
            at_s = time.mktime(time.strptime(today + text, f"%Y-%m-%d {form}"))
        except (ValueError, OverflowError):
            continue
        return round((at_s if at_s <= now_s else at_s - _DAY_S) * 1e6)
    return None


def _write(path: Path, text: str) -> None:
    """Replace a file, whole or not at all; raises OSError."""
    draft = path.with_name(f".{path.name[:200]}.{os.getpid()}")
    try:
        draft.write_text(text)
        draft.replace(path)
    except OSError as error:  # a person knows the file by the name that was given
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    finally:
        with suppress(OSError):
            draft.unlink()
