"""`memwatch inspect`: read a run or store once and report what it holds, damage included."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from memwatch.cli.inspect_store import is_fine, make_store_report, store_lines
from memwatch.domain.checkpoints import StoreLook
from memwatch.domain.record import Fault
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text, counted, duration_text, local_time_text
from memwatch.ingest.open_run import open_run
from memwatch.runtime.runs.one_look import Look
from memwatch.runtime.runs.target import resolve
from memwatch.wal.segment import segment_lsn

_EXAMPLE = """examples:
  memwatch inspect ./runs/night-7
  memwatch inspect ./runs/night-7 --json
  memwatch inspect ./out/lora            a directory of checkpoints of any trainer
  memwatch inspect graph.sqlite          a database of LangGraph's saver

exit status: 0 readable without damage; 1 damage or gaps were found, or the newest checkpoint of a
store is not complete; 2 no such run."""


def run(words: list[str]) -> int:
    """Report what a run or store holds; returns 1 when something in it is damaged."""
    parser = argparse.ArgumentParser(
        prog="memwatch inspect",
        description="Reads a run, or a store of checkpoints, once and reports what it holds. "
        "Writes nothing.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("path", help="run directory, run id, or checkpoint store")
    parser.add_argument("--json", action="store_true", help="one JSON object, stable names")
    options = parser.parse_args(words)
    opened = open_run(resolve(options.path))
    if opened.foreign is not None:
        return _inspect_store(opened.foreign.look(opened.path, None), as_json=options.json)
    look = Look(opened.path)
    report = make_report(look)
    print(json.dumps(report) if options.json else "\n".join(_lines(report)))
    return int(bool(report["damaged"] or report["gaps"]))


def _inspect_store(look: StoreLook, *, as_json: bool) -> int:
    report = make_store_report(look)
    print(json.dumps(report) if as_json else "\n".join(store_lines(look, report)))
    return int(not is_fine(look))


def make_report(look: Look) -> dict[str, Any]:
    """Return the report as one object of plain values."""
    state, manifest = look.ring.state, look.opened.manifest
    snapshot = look.snapshot()
    segments = list(_segments(look.opened.wal_dir))
    return {
        "kind": "native",
        "run_id": manifest.run_id,
        "agent": manifest.agent,
        "profile": manifest.profile,
        "state": snapshot.run.state,
        "records": state.records,
        "last_lsn": state.last_lsn,
        "starts": state.starts,
        "segments": len(segments),
        "log_bytes": sum(size for _, size in segments),
        "first_segment": min((lsn for lsn, _ in segments), default=None),
        "started_us": snapshot.run.started_us,
        "last_record_us": state.last_t_us or None,
        "phase": state.phase,
        "experiment": state.experiment,
        "experiments": dict(state.experiments),
        "steps": state.steps,
        "tiers": {
            tier.name: {"entries": tier.entries, "bytes": tier.bytes, "tokens": tier.tokens}
            for tier in snapshot.tiers
        },
        "checkpoints": [
            {"id": c.id, "kind": c.kind, "state": c.state, "bytes": c.bytes}
            for c in state.checkpoints.values()
        ],
        "incomplete_checkpoints": list(snapshot.checkpoints.incomplete),
        "checkpoint_counts": dict(state.checkpoint_counts),
        "purges": state.purge_count,
        "unknown_kinds": state.unknown,
        "damaged": snapshot.source.damaged,
        "gaps": snapshot.source.gaps,
        "torn_bytes": look.torn_bytes,
        "faults": [_fault(fault) for fault in look.faults],
        "faults_in_all": look.fault_count,
    }


def _segments(wal_dir: Path) -> list[tuple[int, int]]:
    found = []
    for path in wal_dir.iterdir():
        lsn = segment_lsn(path.name)
        if lsn is not None:
            found.append((lsn, path.lstat().st_size))
    return found


def _fault(fault: Fault) -> dict[str, Any]:
    return {
        "kind": fault.kind,
        "segment": fault.segment,
        "offset": fault.offset,
        "length": fault.length,
        "missing": fault.missing,
        "detail": inert(fault.detail, 160),
    }


def _lines(report: dict[str, Any]) -> list[str]:
    began, last = report["started_us"], report["last_record_us"]
    span = duration_text((last - began) / 1e6) if began and last else "–"
    lines = [
        f"run {inert(report['run_id'], 60)}, {inert(report['agent'], 40)}, {report['state']}",
        f"{counted(report['records'], 'record')} in {counted(report['segments'], 'segment')}, "
        f"{bytes_text(report['log_bytes'])}, {_starts(report)}over {span}"
        + (f", until {_clock(last)}" if last else ""),
        f"experiments: {_counts(report['experiments'])}; steps: {report['steps']}",
    ]
    lines += [
        f"  {inert(name, 20):<12} {tier['entries'] if tier['entries'] is not None else '–':>6} "
        f"entries {bytes_text(tier['bytes']):>6}"
        for name, tier in report["tiers"].items()
    ]
    saved = dict(report["checkpoint_counts"])
    if report["incomplete_checkpoints"]:
        saved["incomplete"] = len(report["incomplete_checkpoints"])
    lines.append(f"checkpoints: {_counts(saved)}; purges: {report['purges']}")
    if report["torn_bytes"]:
        lines.append(f"the last line is not complete yet: {report['torn_bytes']} bytes")
    if report["unknown_kinds"]:
        unknown = counted(report["unknown_kinds"], "record")
        lines.append(f"{unknown} of a kind that this version does not know")
    return lines + _damage(report)


def _starts(report: dict[str, Any]) -> str:
    """Return how often the agent started, as far as the log reaches back; nothing for never."""
    return f"{counted(report['starts'], 'start')}, " if report["starts"] else ""


def _damage(report: dict[str, Any]) -> list[str]:
    """Return what is wrong; what the agent itself dropped is said, and is no damage."""
    lines = [
        f"{counted(fault['missing'], 'older record')} dropped by the agent, behind a checkpoint"
        for fault in report["faults"]
        if fault["kind"] == "pruned"
    ]
    wrong = [fault for fault in report["faults"] if fault["kind"] != "pruned"]
    if not wrong:
        return [*lines, "no damage"]
    damaged, gaps = counted(report["damaged"], "damaged place"), counted(report["gaps"], "gap")
    lines.append(f"{damaged}, {gaps}:")
    for fault in wrong:
        place = f"segment {fault['segment']} offset {fault['offset']}"
        lines.append(f"  {fault['kind']:<9} {place}: {fault['detail']}")
    more = report["faults_in_all"] - len(report["faults"])
    return [*lines, f"  and {more} more"] if more else lines


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{number} {inert(name, 20)}" for name, number in counts.items()) or "none"


def _clock(t_us: int) -> str:
    return local_time_text(t_us, "%Y-%m-%d %H:%M:%S")
