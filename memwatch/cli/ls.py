"""`memwatch ls`: runs on this machine, live ones first."""

from __future__ import annotations

import argparse
import json
from typing import Any

from memwatch.cli.engine_text import mode_word
from memwatch.domain.text import inert
from memwatch.domain.units import arrival_text, bytes_text, local_time_text
from memwatch.runtime.runs.catalog import Listed, list_runs

_EXAMPLE = """example:
  memwatch ls
  memwatch ls --json | jq '.runs[0].id'"""


def run(words: list[str]) -> int:
    """List the runs that guards of this user have seen."""
    parser = argparse.ArgumentParser(
        prog="memwatch ls",
        description="Lists live and past runs: state, level, growth, time to limit, who acts.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="one JSON object, stable names")
    options = parser.parse_args(words)
    runs = list_runs()
    if options.json:
        print(json.dumps({"runs": [_object(run) for run in runs]}))
    elif not runs:
        print("no run was ever watched here; try: memwatch demo")
    else:
        _print_table(runs)
    return 0


def _object(listed: Listed) -> dict[str, Any]:
    meta = listed.meta
    return {
        "id": meta.run_key,
        "path": meta.path,
        "agent": meta.agent,
        "source": meta.source,
        "profile": meta.profile,
        "state": listed.state,
        "live": listed.live,
        "level": meta.level,
        "guarded": listed.guard_pid is not None,
        "silent": listed.silent,
        "engine": meta.engine if listed.guard_pid is not None else "off",
        "started_us": meta.started_us,
        "ended_us": meta.ended_us,
        "end": meta.end,
        "seen_us": meta.seen_us,
        "peak_bytes": meta.peak_bytes,
        "limit_bytes": meta.limit_bytes,
        "experiments": meta.experiments,
        "growth_per_min": meta.growth_per_min,
        "time_to_limit_s": meta.time_to_limit_s,
        "checkpoint_age_s": meta.checkpoint_age_s,
        "rto_s": None,
    }


def _print_table(runs: list[Listed]) -> None:
    head = ("run", "agent", "state", "level", "memory", "/min", "limit in", "began", "guard")
    rows = [head, *(_cells(listed) for listed in runs)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    for row in rows:
        cells = zip(row, widths, strict=True)
        print("  ".join(cell.ljust(width) for cell, width in cells).rstrip())


def _cells(listed: Listed) -> tuple[str, ...]:
    meta = listed.meta
    live = listed.live
    arrival = meta.time_to_limit_s if live else None
    memory = meta.last_bytes if live else meta.peak_bytes
    return (
        inert(meta.run_key, 40),
        inert(meta.agent, 20),
        inert(listed.state, 20).replace("_", "-"),
        meta.level if live else "–",
        bytes_text(memory) + ("" if live else " peak"),
        bytes_text(meta.growth_per_min) if live else "–",
        arrival_text(*arrival) if arrival else "–",
        local_time_text(meta.started_us, "%m-%d %H:%M"),
        _guard(listed),
    )


def _guard(listed: Listed) -> str:
    """Return who watches, and whether it acts."""
    if listed.guard_pid is None:
        return "–"
    if listed.silent:
        return f"{listed.guard_pid} SILENT"
    return f"{listed.guard_pid} {mode_word({'engine': {'mode': listed.meta.engine}})}"
